r"""Congruences: `x \equiv 3 \pmod 7` gives the possible whole numbers of an unknown."""

from __future__ import annotations

from fractions import Fraction

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.nodes import symbols
from verifiers.answers.grammar.rational import rational
from verifiers.answers.grammar.reader import Reader
from verifiers.answers.grammar.values import Images, NumberSet, RelationValue, Scalar, Value

PARAMETER = "#"
"""Parameter name that no written symbol has."""
MAX_MODULUS = 10**12


def congruence(reader: Reader, first: Value) -> Images | RelationValue:
    r"""Reads from `\equiv` to the end of the modulus. `f(x) \equiv 0` is an equation. Raises GrammarError."""
    reader.take()
    if isinstance(first, Scalar) and isinstance(first.of, n.FunctionCall):
        return RelationValue("and", (n.ComparisonNode((first.of, reader.sum()), ("==",)),))
    if not (isinstance(first, Scalar) and isinstance(first.of, n.Symbol)):
        raise reader.error("a congruence that is not solved for one unknown")
    found = [reader.sum()]
    while reader.accept(",", "or", "and"):
        reader.accept("or", "and")
        found.append(reader.sum())
    step = n.Product((n.Number(Fraction(_modulus(reader))), n.Symbol(PARAMETER)))
    values = [None if symbols(residue) else rational(residue) for residue in found]
    if any(value is None or value.denominator != 1 for value in values):
        # 1/2 modulo 3 may be 2, or no whole number at all.
        raise reader.error("a congruence whose residue is not a whole number")
    classes: list[n.Expression] = [n.Sum((residue, step)) for residue in found]
    return Images(tuple(classes), PARAMETER, NumberSet("Z"), first.of.name)


def _modulus(reader: Reader) -> int:
    r"""Reads `\pmod 7`, `\pmod{7}`."""
    reader.expect("\\pmod")
    braced = reader.accept("{")
    token = reader.take()
    if token.kind != "number" or not token.integer or not 0 < token.value <= MAX_MODULUS:
        raise reader.error("a modulus that is not a whole number")
    if braced:
        reader.expect("}")
    return int(token.value)
