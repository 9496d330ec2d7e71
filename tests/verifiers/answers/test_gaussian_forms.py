"""A complex number counts as worked out in every form that leaves nothing to do but to divide."""

from __future__ import annotations

import pytest
from tables import table

from verifiers.answers.spec import AnswerSpec
from verifiers.answers.verifier import AnswerVerifier
from verifiers.contract.verdict import Ground

VERIFIER = AnswerVerifier()

WORKED_OUT = [
    (r"\frac12+\frac12i", r"\frac{1+i}{2}"),
    (r"\frac12+\frac12i", r"\frac{i+1}{2}"),
    (r"\frac12+\frac12i", "(1+i)/2"),
    (r"\frac12+\frac12i", r"\frac12+\frac{i}{2}"),
    (r"\frac12-\frac12i", r"\frac12(1-i)"),
    (r"\frac12+\frac13i", r"\frac{3+2i}{6}"),
    (r"\frac12+\frac13i", r"\frac16(3+2i)"),
    (r"-\frac12+\frac32i", r"\frac{-1+3i}{2}"),
    (r"-\frac12+\frac32i", r"-\frac{1-3i}{2}"),
    ("0.5+0.5i", r"\frac{1+i}{2}"),
    (r"\frac{1+i}{2}", r"\frac12+\frac12i"),
]


@table(("expected", "answer"), WORKED_OUT)
def test_a_complex_number_over_one_denominator_is_worked_out(expected: str, answer: str) -> None:
    for form in ("worked_out", "simplified"):
        assert VERIFIER.verify(AnswerSpec(expected=expected, form=form), answer).ground is Ground.PROVED


LEFT = [
    (r"\frac12-\frac12i", r"\frac{1}{1+i}"),
    ("4+6i", "2(2+3i)"),
    ("1+i", r"\frac{1+1+2i}{2}"),
    ("1+i", r"\frac{(1+i)^3}{2i}"),
    ("1+i", "(1+2i)-i"),
    ("2", r"\frac{1+3}{2}"),
    (r"\frac12+\frac12i", r"\frac{\frac12+\frac12i}{1}"),
    (r"\frac12+\frac12i", r"\frac{3-2+i}{2}"),
]


@table(("expected", "answer"), LEFT)
def test_a_calculation_with_complex_numbers_is_left_to_be_done(expected: str, answer: str) -> None:
    assert VERIFIER.verify(AnswerSpec(expected=expected), answer).ground is Ground.UNFINISHED


@pytest.mark.parametrize("answer", [r"\frac{3+3i}{6}", r"\frac16(3+3i)"])
def test_a_complex_number_that_can_be_reduced_is_worked_out_and_not_simplified(answer: str) -> None:
    expected = r"\frac12+\frac12i"
    assert VERIFIER.verify(AnswerSpec(expected=expected), answer).ground is Ground.PROVED
    assert VERIFIER.verify(AnswerSpec(expected=expected, form="simplified"), answer).ground is Ground.UNFINISHED


def test_another_complex_number_over_one_denominator_is_refuted() -> None:
    assert VERIFIER.verify(AnswerSpec(expected=r"\frac12+\frac13i"), r"\frac{2+3i}{6}").ground is Ground.REFUTED
