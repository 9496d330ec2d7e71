"""What could be two answers, another letter or fewer solutions is not the answer that was asked for."""

from __future__ import annotations

import pytest
from tables import table

from verifiers.answers.spec import AnswerSpec
from verifiers.answers.verifier import AnswerVerifier
from verifiers.contract.verdict import Ground

VERIFIER = AnswerVerifier()


def ground(expected: str, answer: str, **options: str) -> Ground | None:
    spec = AnswerSpec.model_validate({"expected": expected, **options})
    VERIFIER.check(spec, prove=True)
    return VERIFIER.verify(spec, answer).ground


def passes(expected: str, answer: str) -> bool:
    return ground(expected, answer) is Ground.PROVED


COMMAS = [
    ("5", "5,0"),
    ("2", "2,0"),
    ("0", "0,0"),
    ("-3", "-3,0"),
    (r"\sqrt{25}", "5,0"),
    ("5", r"\boxed{5,0}"),
    ("5", "= 5,0"),
    (r"5\text{ cm}", "5,0"),
]


@table(("expected", "answer"), COMMAS)
def test_a_comma_before_zeros_is_refused_for_it_may_separate_two_answers(expected: str, answer: str) -> None:
    assert ground(expected, answer) is Ground.UNREADABLE
    assert ground(expected, answer, units="optional") is Ground.UNREADABLE


@pytest.mark.parametrize(("expected", "answer"), [("5", "5,1"), ("5", "4,5"), ("-5", "-5,1"), ("10/2", "5,2")])
def test_a_comma_beside_the_expected_number_is_no_way_into_a_tolerance(expected: str, answer: str) -> None:
    assert ground(expected, answer, absolute="0.5") is Ground.UNREADABLE


@pytest.mark.parametrize("answer", ["1,5,", "1,5;", "$1,5,$", "1,5 , ", r"\boxed{1,5,}"])
def test_a_comma_with_another_behind_the_number_separates_answers(answer: str) -> None:
    assert ground("1.5", answer) is Ground.UNREADABLE
    assert ground("1.5", answer.replace("1,5", "1.5")) is Ground.PROVED


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("1.5", r"1,5\,"),
        ("0.5", "0,5"),
        (r"\frac52", "2,50"),
        ("5, 0", "5,0"),
        ("0, 5", "5,0"),
        ("10.25", "10,25"),
        ("10.0", "10,00"),
        ("1000", "1000,00"),
    ],
)
def test_a_comma_with_one_reading_still_counts(expected: str, answer: str) -> None:
    assert ground(expected, answer) is Ground.PROVED


def test_a_decimal_with_a_comma_may_be_close() -> None:
    assert ground("3.14159", "3,14", absolute="0.01") is Ground.PROVED


def test_a_comma_behind_thousands_of_digits_is_refused() -> None:
    assert ground("5", "1" * 9_000 + ",5") is Ground.UNREADABLE


@table("letter", "RGFTPNESV")
def test_a_lower_case_letter_is_another_symbol_than_a_capital_that_nothing_marks(letter: str) -> None:
    assert not passes(letter, letter.lower())
    assert not passes(letter, f"${letter.lower()}$")
    assert not passes(letter, rf"\mathrm{{{letter.lower()}}}")
    assert not passes(letter, rf"\textit{{{letter.lower()}}}")
    assert passes(letter, letter)


CHOICES = [
    ("B", "b"),
    ("A", "a"),
    ("D", "$d$"),
    ("E", "(e)"),
    ("E", "e)"),
    ("E", "option e"),
    ("E", r"\text{e}"),
    ("E", r"\text{(E)}"),
    ("(E)", "e"),
    (r"\text{E}", "e"),
    (r"\textbf{(F)}", "f"),
    ("Option G", "g"),
    ("option e", "E"),
]


@table(("expected", "answer"), CHOICES)
def test_the_label_of_a_choice_may_be_in_either_case(expected: str, answer: str) -> None:
    assert passes(expected, answer)
