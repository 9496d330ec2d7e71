"""An answer passes when it is proved equal; being close, undefined or unfinished is not being equal."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import examples
from pydantic import ValidationError
from tables import table

from verifiers.answers.algebra.equality import Truth
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.grammar.reading.plain import parse_expression
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Outcome
from verifiers.exact.spec import ExactSpec
from verifiers.registry import check_spec, decide

SCALARS = Scalars(0, "complex")
EQUAL = [
    ("2/3", "4/6"),
    ("1/2", "0.5"),
    ("3/2", r"1\frac{1}{2}"),
    ("12345678", "12,345,678"),
    ("10^{-4}", "0.0001"),
    ("6 * 10^23", "6E23"),
    ("10^40+1", "1" + "0" * 39 + "1"),
    ("5!", "120"),
    (r"\log_3 81", "4"),
    (r"\cos(60^\circ)", r"\frac12"),
    (r"e^{2i\pi}", "1"),
    (r"\sqrt{5+2\sqrt{6}}", r"\sqrt{2}+\sqrt{3}"),
    ("sqrt(8)", r"2\sqrt2"),
    ("1/sqrt(2)", r"\frac{\sqrt{2}}{2}"),
    (r"\frac{1+\sqrt{5}}{2}", "0.5 + sqrt(5)/2"),
    ("2*(x+1)", "2x + 2"),
    ("3x", "x3"),
    ("(x+y)^3", "x^3 + 3x^2 y + 3x y^2 + y^3"),
    ("(x^2-1)/(x-1)", "x + 1"),
    (r"\cos(2x)", r"\cos^2 x - \sin^2 x"),
    ("x*e^x", "xe^x"),
    ("ln(2) + ln(3)", "ln(6)"),
    ("1/2004!", r"\frac{1}{2004!}"),
]


@table(("expected", "answer"), EQUAL)
def test_other_ways_of_writing_the_same_pass(expected: str, answer: str) -> None:
    verdict = decide(AnswerSpec(notation="plain", expected=expected, variables=("x", "y")), answer)
    assert verdict.passed, verdict.reason
    assert verdict.score == 1


DIFFERENT = [
    ("10^30", "10^30+1"),
    ("1/2004!", "1/2006!"),
    (r"\frac{1}{2^{80}}", r"\frac{1}{2^{79}}"),
    ("10^{-25}", r"3\cdot 10^{-25}"),
    (r"\pi", "3.14159265358979"),
    (r"\pi", r"\frac{355}{113}"),
    ("sqrt(2)", "1.4142135623730951"),
    ("1/3", "0.3333333333333333"),
    ("x", "-x"),
    ("x", "sqrt(x^2)"),
    ("2*ln(x)", "ln(x^2)"),
    ("x + 1", "x + 1 + 10^(-30)"),
    ("1 - 1/e", "1 + 1/e"),
    ("x + y", "x - y"),
    ("pi", "pi + 10^(-400)"),
    (r"\sin(x)", r"\sin(x) + \sin(7x)/10^{50}"),
]


@table(("expected", "answer"), DIFFERENT)
def test_what_is_only_nearly_the_same_fails(expected: str, answer: str) -> None:
    verdict = decide(AnswerSpec(notation="plain", expected=expected, variables=("x", "y")), answer)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.score == 0


ATTACKS = {
    "code": ("5", "__import__('os').getpid()"),
    "code in a function": ("5", "eval('5')"),
    "zero by zero": ("1", r"\frac{0}{0}"),
    "one by zero": ("1", "1/0"),
    "not a number": ("1", "nan"),
    "infinity": ("1", "oo"),
    "a free symbol": ("5", "z"),
    "a free symbol that cancels": ("5", "5 + z - z"),
    "a listed symbol in place of a number": ("x", "5"),
    "a cancelled pole": ("x", "x + 0/(sin(x)^2 + cos(x)^2 - 1)"),
    "a product with nothing": ("x", "x + 0*ln(0)"),
    "two answers": ("12", "12 13"),
    "an answer with a tail": ("4", r"4\sqrt"),
    "a tail in brackets": ("12", r"12)\;(13"),
    "a sum left to the verifier": ("42", "17 + 25"),
    "a product left to the verifier": ("391", "17*23"),
    "a divisor left to the verifier": ("6", "gcd(12, 18)"),
    "a root left to the verifier": ("3", "sqrt(9)"),
    "a power that takes the whole verifier": ("1", "2**10**10"),
    "the sine left to the verifier": ("sqrt(3)/2", r"\sin(60^\circ)"),
    "an inverse function left to the verifier": ("pi/6", "arcsin(1/2)"),
    "a look-alike": ("x", "\u0445"),
    "a superscript": ("10^2", "10\u00b2"),
    "nothing": ("0", ""),
    "very much": ("0", "0+" * 3000 + "0"),
}


@table(("expected", "answer"), ATTACKS.values(), ids=ATTACKS.keys())
def test_an_attack_never_passes(expected: str, answer: str) -> None:
    verdict = decide(AnswerSpec(notation="plain", expected=expected, variables=("x",)), answer)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.reason


def test_a_difference_of_functions_names_its_witness() -> None:
    verdict = decide(AnswerSpec(notation="plain", expected="x^2", variables=("x",)), "x^3")
    assert verdict.evidence["witness"]["x"]


def test_what_cannot_be_proved_says_so_and_fails() -> None:
    # Hermite's identity; nothing here finds it, and closeness does not count.
    verdict = decide(AnswerSpec(notation="plain", expected="floor(x) + floor(x + 1/2)", variables=("x",)), "floor(2x)")
    assert verdict.outcome is Outcome.FAIL
    assert "not decided" in verdict.reason


@pytest.mark.parametrize("expected", ["", "oo", "1/0", "z", "x = 5", "\\{1\\}"])
def test_an_expected_answer_that_cannot_be_used_is_a_bad_spec_with_a_hint(expected: str) -> None:
    with pytest.raises(SpecError) as caught:
        check_spec(AnswerSpec(notation="plain", expected=expected, variables=("x",)))
    assert caught.value.hint


@pytest.mark.parametrize("variable", ["sin", "and", "2", "x y", "", "\u0445"])
def test_a_variable_that_would_be_misread_is_a_bad_spec(variable: str) -> None:
    with pytest.raises(SpecError):
        check_spec(AnswerSpec(notation="plain", expected="1", variables=(variable,)))


LEAVES = st.one_of(
    st.integers(-50, 50).map(str), st.sampled_from(["x", "y", "pi", "sqrt(2)"]), st.fractions(-9, 9).map(str)
).map("({})".format)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds("({}{}{})".format, inner, st.sampled_from(["+", "-", "*"]), inner)
        | st.builds("({})^{}".format, inner, st.integers(1, 3))
    ),
    max_leaves=6,
)


@settings(max_examples=examples(40), deadline=None)
@given(EXPRESSIONS)
def test_equality_is_reflexive_and_adding_one_is_always_different(text: str) -> None:
    spec = AnswerSpec(notation="plain", expected=text, variables=("x", "y"))
    node = parse_expression(text, ("x", "y"))
    assert SCALARS.compare(node, node).truth is Truth.EQUAL
    assert not decide(spec, f"{text} + 1").passed
    assert SCALARS.compare(parse_expression(f"{text} + 1", ("x", "y")), node).truth is Truth.DIFFERENT


@given(st.fractions(), st.fractions())
def test_rational_answers_are_equal_exactly_when_they_are(first: Fraction, second: Fraction) -> None:
    assert decide(AnswerSpec(notation="plain", expected=str(first)), str(second)).passed == (first == second)


@given(st.integers(-(10**50), 10**50), st.sampled_from(["", " ", "\n", "\t "]))
def test_an_integer_passes_with_space_around_it_and_its_neighbour_fails(number: int, space: str) -> None:
    spec = AnswerSpec(notation="digits", expected=str(number))
    assert decide(spec, f"{space}{number}{space}").passed
    assert not decide(spec, str(number + 1)).passed


@table(
    "answer",
    [
        "42.0",
        "4 2",
        "4_2",
        "0x2a",
        "42 ",
        "\u0664\u0662",
        "\uff14\uff12",
        "42.",
        "--42",
        "42 43",
        "4e1",
        "",
        "+",
        "42\x00",
    ],
)
def test_an_integer_is_ascii_digits_and_nothing_else(answer: str) -> None:
    assert decide(AnswerSpec(notation="digits", expected="42"), answer).passed == (answer == "42 ")


def test_an_integer_of_ten_thousand_digits_is_refused_unread() -> None:
    assert not decide(AnswerSpec(notation="digits", expected="1"), "1" * 10_000).passed
    assert decide(AnswerSpec(notation="digits", expected="1" * 2000), "1" * 2000).passed
    assert not decide(AnswerSpec(notation="digits", expected="1" * 2000), "1" * 1999 + "2").passed


def test_an_expected_integer_in_another_script_is_a_bad_spec() -> None:
    with pytest.raises(ValidationError):
        AnswerSpec(notation="digits", expected="\u0664\u0662")


def test_exact_text_ignores_space_around_it_and_nothing_within() -> None:
    spec = ExactSpec(expected="Blue whale")
    assert decide(spec, "  Blue whale\n").passed
    for other in ("blue whale", "Blue  whale", "Blue whale.", "", "Blue\u00a0whale"):
        assert not decide(spec, other).passed
    with pytest.raises(SpecError):
        check_spec(ExactSpec(expected="  "))
