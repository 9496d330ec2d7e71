"""Mathematics as text is read whole or refused, and nothing large is computed before its size is known."""

from __future__ import annotations

import contextlib
import time
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from tables import table

from verifiers.answers.grammar.errors import GrammarError, TooLargeError, UndefinedError
from verifiers.answers.grammar.rational import integer_root, rational
from verifiers.answers.grammar.reading.plain import parse_expression, parse_predicate
from verifiers.answers.grammar.vocabulary import FUNCTIONS, PLAIN_MARKS, PLAIN_WORDS

VALUES = {
    "42": 42,
    "-7": -7,
    "0.1 + 0.2": Fraction(3, 10),
    ".5": Fraction(1, 2),
    "1.5E3": 1500,
    "1e5": 100_000,
    "1,234,567": 1_234_567,
    "1{,}234.5": Fraction(2469, 2),
    "-2^2": -4,
    "2^3^2": 512,
    "2**-3": Fraction(1, 8),
    "2^{-3}": Fraction(1, 8),
    "6/3*2": 4,
    "1 - 2 - 3": -4,
    "2 - -3": 5,
    "3!": 6,
    "-3!": -6,
    "2^3!": 64,
    "2(3 + 4)": 14,
    "(2)(3)": 6,
    r"\frac12": Fraction(1, 2),
    r"\frac{3}{4}\cdot 8": 6,
    r"2\frac{1}{3}": Fraction(7, 3),
    r"-2\frac{1}{3}": Fraction(-7, 3),
    r"\left(1 + 2\right) \times 3": 9,
    r"\sqrt{16}": 4,
    r"\sqrt[3]{-8}": -2,
    "sqrt(9/4)": Fraction(3, 2),
    "gcd(12, 18)": 6,
    "gcd(1,234)": 1,
    "lcm(4, 6)": 12,
    r"\binom{5}{2}": 10,
    "|-3|": 3,
    "||-3| - 5|": 2,
    r"\left|-3\right|": 3,
    r"\lfloor 7/2 \rfloor": 3,
    "ceil(7/2)": 4,
    "max(1, 5, 3)": 5,
    "$7$": 7,
    "\uff14\uff12": 42,
}


@table(("text", "value"), VALUES.items())
def test_what_people_write_is_read_as_they_mean_it(text: str, value: Fraction) -> None:
    assert rational(parse_expression(text)) == value


REFUSED = {
    "nothing": "",
    "blank": "  \n",
    "two answers": "6, 7",
    "two answers joined by a word": "6 or 7",
    "two numbers side by side": "6 7",
    "brackets that close what they did not open": r"12)\;(13",
    "an open bracket": "(12",
    "an equation": "x = 5",
    "a base in the subscript": "101_2",
    "an unknown name": "foo",
    "a function that is not known": "f(2)",
    "an attribute": "x.real",
    "a call of the interpreter": "__import__('os').system('true')",
    "a call of an unknown function": "exec(1)",
    "an unknown command": r"\input{x}",
    "a power with two readings": r"\sin^{-1} x",
    "a division with two readings": "1/2x",
    "a function whose reach is unclear": r"\sin x (x+1)",
    "a root whose reach is unclear": r"\sqrt23",
    "a mixed number that is improper": r"2\frac{3}{2}",
    "a European decimal with a leading zero": "0,123",
    "groups of the wrong size": "12,34",
    "an underscore in a number": "1_000",
    "scientific notation that could be a sum": "2e-3",
    "infinity": "oo",
    "infinity in LaTeX": r"\infty",
    "not a number": "nan",
    "a percentage": "50%",
    "both signs": r"\pm 2",
    "a superscript, which folding would glue to the number": "10\u00b2",
    "a fraction character": "\u00bd",
    "a Cyrillic letter that looks like x": "\u0445",
    "digits of another script": "\u0664\u0662",
    "a zero-width space": "4\u200b2",
    "a NUL": "4\x002",
    "a set": r"\{1, 2\}",
    "a list": "[6]",
    "an equation after the answer": "6 == 6",
    "a statement after the answer": "6; 7",
    "a double factorial": "5!!",
    "a comment": "6 # seven",
    "a string": "'6'",
    "a lambda": "lambda: 6",
}


@table("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_one_unambiguous_value_is_refused(text: str) -> None:
    with pytest.raises(GrammarError):
        parse_expression(text, ["x", "f"])


BOMBS = {
    "a tower": "2**10**10",
    "a higher tower": "5^(5^(5^(5^5)))",
    "a factorial of a thousand digits": f"({'9' * 1000})!",
    "a large factorial": r"(10^{8})!",
    "a factorial of a factorial": "((9!)!)!",
    "a large binomial coefficient": r"\binom{10^{9}}{5\cdot 10^{8}}",
    "repeated squaring": "((((((((((((2^99)^99)^99)^99)^99)^9)^9)^9)^9)^9)^9)^9)",
    "a long number": "9" * 2_001,
    "a power of ten": "1E99999",
    "a long exponent": "1E" + "9" * 400,
    "a long text": "1+" * 4_000 + "1",
    "deep brackets": "(" * 500 + "1" + ")" * 500,
    "deep powers": "2^" * 500 + "2",
    "deep signs": "-" * 500 + "2",
    "deep fractions": r"\frac{" * 300 + "1" + "}{2}" * 300,
    "deep roots": "sqrt(" * 300 + "2" + ")" * 300,
    "many signs": "1+" * 2_000 + "1",
}


@table("text", BOMBS.values(), ids=BOMBS.keys())
def test_what_would_be_too_large_is_refused_before_it_is_computed(text: str) -> None:
    started = time.process_time()
    with pytest.raises(TooLargeError):
        rational(parse_expression(text))
    assert time.process_time() - started < 5


@table("text", [r"\frac{0}{0}", "1/0", "0^0", "0^-1", "1/(2-2)", "(-1)!", r"\sqrt[0]{2}", "ln(0)"])
def test_what_has_no_value_is_undefined_and_not_infinite(text: str) -> None:
    with pytest.raises(UndefinedError):
        rational(parse_expression(text))


@pytest.mark.parametrize("text", ["pi", "sqrt(2)", "2^(1/2)", "sin(1)", "(-8)^(1/3)", "e", "i"])
def test_what_is_not_rational_is_none_and_no_float(text: str) -> None:
    assert rational(parse_expression(text)) is None


@given(st.integers(-(10**300), 10**300))
def test_integers_come_back_as_they_were_written(number: int) -> None:
    assert rational(parse_expression(str(number))) == number


@given(st.fractions())
def test_rationals_come_back_in_each_notation(number: Fraction) -> None:
    for text in (str(number), rf"\frac{{{number.numerator}}}{{{number.denominator}}}"):
        assert rational(parse_expression(text)) == number


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_decimals_are_exact(number: object) -> None:
    assert rational(parse_expression(f"{number:f}")) == Fraction(f"{number:f}")


@given(st.integers(1, 10**12))
def test_thousands_separators_change_nothing(number: int) -> None:
    assert rational(parse_expression(f"{number:,}")) == number


@given(st.integers(0, 10**60), st.integers(1, 12))
def test_integer_roots_are_exact(value: int, degree: int) -> None:
    root = integer_root(value, degree)
    assert root**degree <= value < (root + 1) ** degree


PIECES = st.sampled_from(
    [
        *"0123456789xyefi+-*/^!%<>=(){}[]|,_.$ \\'\u00b2",
        *FUNCTIONS,
        *(f"\\{name}" for name in (*PLAIN_MARKS, *PLAIN_WORDS)),
        *("and ", "or ", "not ", "**", "//", "==", "!=", "<=", "99", "(", ")", "{", "}", "\\left(", "\\right)"),
    ]
)


@settings(max_examples=FROM_STRANGERS)
@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=30).map("".join)))
@example("x2\\frac12")
@example("\\log_")
@example("\\sqrt[")
@example("^")
@example("2^{")
@example("2^{\\circ")
def test_any_text_is_read_or_refused_and_nothing_else_happens(text: str) -> None:
    for read in (lambda: rational(parse_expression(text, ["x", "y", "f"])), lambda: parse_predicate(text, "x")):
        with contextlib.suppress(GrammarError):
            read()


@table(
    "text",
    ["x == 1 and", "x", "x = 1", "(x > 1) + 2 == 3", "x == 1 == ", "not", "x > (1 and 2)", "x == y", "1 < (x < 3)"],
)
def test_a_text_that_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(GrammarError):
        parse_predicate(text, "x")


def test_brackets_around_conditions_nest_without_taking_exponential_time() -> None:
    started = time.process_time()
    parse_predicate("(" * 35 + "x > 1" + ")" * 35, "x")
    assert time.process_time() - started < 5
