"""Numbers too large to compute are told apart by residues and by sizes, and never wrongly."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import examples
from tables import table

from verifiers.answers.algebra import modular
from verifiers.answers.algebra.equality import Truth
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.algebra.sizes import Sizes
from verifiers.answers.grammar.nodes import FunctionCall, Number, Power, Quotient
from verifiers.answers.grammar.reading.plain import parse_expression

SCALARS = Scalars(1)

DIFFERENT = [
    ("5^(5^(5^(5^5)))", "1"),
    ("2003^(2002^2001)", "2003^(2002^2001)+1"),
    ("9^(9^9)", "9^(9^9)-1"),
    ("(10^8)!", "1"),
    ("(10^8)!", "(10^8+1)!"),
    ("binomial(10^9, 5*10^8)", "2"),
    ("2^(10^9)", "2^(10^9+1)"),
    ("1/2004!", "1/2006!"),
    ("1/(10^8)!", "1/(10^8+1)!"),
]


@table(("first", "second"), DIFFERENT)
def test_two_huge_numbers_are_told_apart(first: str, second: str) -> None:
    finding = SCALARS.compare(parse_expression(first), parse_expression(second))
    assert finding.truth is Truth.DIFFERENT


@pytest.mark.parametrize("text", ["5^(5^(5^5))", "(10^8)!", "1/(10^8)!", "2^(-10^9)"])
def test_a_huge_number_is_equal_to_itself(text: str) -> None:
    assert SCALARS.compare(parse_expression(text), parse_expression(text)).truth is Truth.EQUAL


def test_a_huge_number_without_a_value_is_not_equal_to_itself() -> None:
    text = "2^(10^9)/(2^(10^9)-2^(10^9))"
    assert SCALARS.compare(parse_expression(text), parse_expression(text)).truth is not Truth.EQUAL


small = st.integers(0, 40)


@settings(max_examples=examples(60))
@given(small, small, small, st.integers(-30, 30))
def test_residues_are_those_of_the_value(a: int, b: int, c: int, d: int) -> None:
    def number(value: int) -> Number:
        return Number(Fraction(value))

    tower = Power(number(a + 2), Power(number(b % 4 + 1), number(c % 5)))
    exact = (a + 2) ** ((b % 4 + 1) ** (c % 5)) if (b % 4 + 1) ** (c % 5) < 500 else None
    for prime in modular.PRIMES[:2]:
        if exact is not None:
            assert modular.residue(tower, prime) == exact % prime
        assert modular.residue(FunctionCall("factorial", (number(c),)), prime) == math.factorial(c) % prime
        chosen = FunctionCall("binomial", (number(a + b), number(b)))
        assert modular.residue(chosen, prime) == math.comb(a + b, b) % prime
        assert modular.residue(Quotient(number(d), number(a + 1)), prime) * (a + 1) % prime == d % prime


@settings(max_examples=examples(30))
@given(st.integers(1, 3_000))
def test_sizes_enclose_factorials(n: int) -> None:
    found = Sizes().logarithm(FunctionCall("factorial", (Number(Fraction(n)),)))
    exact = math.lgamma(n + 1)
    slack = 1e-9 * max(1.0, exact)
    assert float(found.a) - slack <= exact <= float(found.b) + slack
