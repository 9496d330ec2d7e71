"""Normal forms prove what is true for every value of the symbols, and nothing else."""

from __future__ import annotations

from tables import table

from verifiers.answers.algebra.normal import same, same_turn
from verifiers.answers.grammar.reading.plain import parse_expression

NAMES = ("x", "y", "n", "a", "b")

PROVED = [
    ("2(x+1)", "2x+2"),
    ("(x^2-1)/(x-1)", "x+1"),
    ("1/(1+sqrt(2))", "sqrt(2)-1"),
    ("sqrt(3+2sqrt(2))", "1+sqrt(2)"),
    ("sqrt(12)+sqrt(27)", "5sqrt(3)"),
    ("sin(2x)", "2sin(x)cos(x)"),
    ("tan(x/2)", "sin(x)/(1+cos(x))"),
    ("cos(a+b)", "cos(a)cos(b)-sin(a)sin(b)"),
    ("cos(pi/12)", "(sqrt(6)+sqrt(2))/4"),
    ("2^(n+1)", "2*2^n"),
    ("4^n", "2^(2n)"),
    ("x^n*x", "x^(n+1)"),
    ("ln(8)/ln(2)", "3"),
    ("ln(x^2)", "2ln(abs(x))"),
    ("sqrt(x^2)", "abs(x)"),
    ("sqrt(exp(2x))", "exp(x)"),
    ("cbrt(x^2)", "cbrt(x)^2"),
    ("cbrt(-8)", "-2"),
    ("(-8)^(1/3)", "1+i*sqrt(3)"),
    ("e^(x*ln(2))", "2^x"),
]
NOT_PROVED = [
    ("sqrt(x^2)", "x"),
    ("(x^2)^(1/2)", "-x"),
    ("ln(x^2)", "2ln(x)"),
    ("sqrt(x)sqrt(y)", "sqrt(x*y)"),
    ("sqrt(1/n)", "1/sqrt(n)"),
    ("exp(ln(x))", "x + 1"),
    ("ln(exp(i*x))", "i*x"),
    ("sqrt(exp(2*i*x))", "exp(i*x)"),
    ("(x^y)^a", "x^(y*a)"),
    ("cbrt(x)^3*x^2", "x^2"),
    ("atan(tan(x))", "x"),
    ("x", "x + 10^(-60)"),
]


@table(("first", "second"), PROVED)
def test_an_identity_has_one_normal_form(first: str, second: str) -> None:
    assert same(parse_expression(first, NAMES), parse_expression(second, NAMES), real=True)


@table(("first", "second"), NOT_PROVED)
def test_what_fails_somewhere_is_not_proved(first: str, second: str) -> None:
    assert not same(parse_expression(first, NAMES), parse_expression(second, NAMES), real=True)


def test_what_holds_for_real_or_positive_symbols_only_needs_that() -> None:
    root, x = parse_expression("sqrt(x^2)", NAMES), parse_expression("x", NAMES)
    magnitude = parse_expression("abs(x)", NAMES)
    assert not same(root, magnitude)
    assert same(root, magnitude, real=True)
    assert same(root, x, frozenset({"x"}), real=True)


def test_sums_of_angles_are_compared_up_to_full_turns() -> None:
    machin, quarter = parse_expression("4atan(1/5)-atan(1/239)"), parse_expression("pi/4")
    assert same_turn(machin, quarter)
    assert same_turn(machin, parse_expression("pi/4+2pi"))
    assert not same_turn(machin, parse_expression("pi/4+pi"))


def test_what_would_be_too_large_is_left_alone() -> None:
    large = parse_expression("(x+y+1)^300*(x-y+2)^300*(2x+y+3)^59", NAMES)
    assert same(large, large)
    assert not same(large, parse_expression("(x+y+1)^300", NAMES))
