"""Ratios: equal when their numbers are in proportion."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.answers.compare_sets import decided
from verifiers.answers.equality import Finding, Truth
from verifiers.answers.grammar.nodes import Expression, Product, Quotient
from verifiers.answers.scalars import ZERO, Scalars
from verifiers.answers.values import Ratio, Scalar, Value


def compare_ratios(
    answer: Ratio, expected: Ratio, same: Callable[[Value, Value], Finding], scalars: Scalars
) -> Finding:
    """Two numbers by their quotient, more by the products of each with one of the other's. Raises GrammarError.

    `same` compares two numbers, within a tolerance where there is one.
    """
    if len(answer.items) != len(expected.items):
        return Finding(
            Truth.DIFFERENT, f"a ratio of {len(answer.items)} numbers, where {len(expected.items)} were expected"
        )
    if len(answer.items) == 2:
        quotients = [Scalar(Quotient(*ratio.items)) for ratio in (answer, expected)]
        return same(quotients[0], quotients[1])
    pairs = list(zip(answer.items, expected.items, strict=True))
    known = (pair for pair in pairs if all(scalars.compare(part, ZERO).truth is Truth.DIFFERENT for part in pair))
    one = next(known, None)
    if one is None:
        return Finding(Truth.OPEN, "no two numbers that are certainly not zero")
    return decided((scalars.compare(*_crossed(a, b, one)) for a, b in pairs), "in proportion")


def _crossed(
    answer: Expression, expected: Expression, known: tuple[Expression, Expression]
) -> tuple[Expression, Expression]:
    return Product((answer, known[1])), Product((expected, known[0]))
