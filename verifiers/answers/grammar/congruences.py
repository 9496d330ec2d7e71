"""Congruences: `x \\equiv 3 \\pmod 7`, `n \\equiv 1, 5 \\pmod{6}`. They say which whole numbers an unknown may be."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from verifiers.answers.grammar.nodes import Call, Comparison, Expression, Number, Product, Sum, Symbol, symbols
from verifiers.answers.grammar.rational import rational
from verifiers.answers.values import Images, NumberSet, Relation, Scalar, Value

if TYPE_CHECKING:
    from verifiers.answers.grammar.structures import Structures

PARAMETER = "#"
"""No symbol that is written has this name."""
MAX_MODULUS = 10**12


def congruence(parser: Structures, first: Value) -> Images | Relation:
    """Reads from `\\equiv` to the end of the modulus. `f(x) \\equiv 0` is an equation. Raises GrammarError."""
    parser.take()
    if isinstance(first, Scalar) and isinstance(first.of, Call):
        return Relation("and", (Comparison((first.of, parser.sum()), ("==",)),))
    if not (isinstance(first, Scalar) and isinstance(first.of, Symbol)):
        raise parser.error("a congruence that is not solved for one unknown")
    found = [parser.sum()]
    while parser.at(",", "or", "and"):
        parser.take()
        if parser.at("or", "and"):
            parser.take()
        found.append(parser.sum())
    step = Product((Number(Fraction(_modulus(parser))), Symbol(PARAMETER)))
    values = [None if symbols(residue) else rational(residue) for residue in found]
    if any(value is None or value.denominator != 1 for value in values):
        # 1/2 modulo 3 may be 2, or no whole number at all.
        raise parser.error("a congruence whose residue is no whole number")
    classes: list[Expression] = [Sum((residue, step)) for residue in found]
    return Images(tuple(classes), PARAMETER, NumberSet("Z"), first.of.name)


def _modulus(parser: Structures) -> int:
    """`\\pmod 7`, `\\pmod{7}`."""
    parser.expect("\\pmod")
    braced = parser.at("{")
    if braced:
        parser.take()
    token = parser.take()
    if token.kind != "number" or not token.integer or not 0 < token.value <= MAX_MODULUS:
        raise parser.error("a modulus that is no whole number")
    if braced:
        parser.expect("}")
    return int(token.value)
