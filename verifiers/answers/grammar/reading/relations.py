r"""Relations between values: equations and inequalities, definitions of functions, ratios.

Congruences: `x \equiv 3 \pmod 7` gives the possible whole numbers of an unknown.
"""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.lists import is_name
from verifiers.answers.grammar.nodes import ComparisonNode, Symbol, symbols
from verifiers.answers.grammar.nodes import Relation as Sign
from verifiers.answers.grammar.rational import rational
from verifiers.answers.grammar.reader import Reader
from verifiers.answers.grammar.values import (
    Builder,
    Images,
    Infinity,
    Named,
    NumberSet,
    Ratio,
    RelationValue,
    Scalar,
    Tuple,
    Value,
)
from verifiers.answers.grammar.vocabulary import GREEK_NAMES

RELATIONS: dict[str, Sign] = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
DEFINITION = re.compile(r"[A-Za-z] \( (?:[A-Za-z]|[0-9]+) (?:, (?:[A-Za-z]|[0-9]+) )?\) =")


EVENT = frozenset({*RELATIONS, "|", "\\mid", "\\cap", "\\cup"})
"""Signs that occur in an event, but not in function arguments."""


def ratio(reader: Reader, first: Value) -> Value:
    """Reads a ratio such as `3:2` from its first colon on; within brackets a colon is left for a condition. Raises
    GrammarError if the text spells out Greek letters, which indicates code."""
    if reader.depth:
        return first
    if any(token.kind == "word" and token.text in GREEK_NAMES for token in reader.tokens):
        raise reader.error("a ratio of letters that are written as words")
    found = [first]
    while reader.accept(":"):
        found.append(reader.operand())
    items = tuple(part.of for part in found if isinstance(part, Scalar))
    if len(items) < len(found):
        raise reader.error("a ratio of things that are not numbers")
    return Ratio(items)


def defines_function(reader: Reader) -> bool:
    """True if the answer begins as a function definition such as `P(x) = ...`, with single letters in the bracket."""
    texts = reader.texts(8)
    return len(texts) > 4 and texts[1] == "(" and bool(DEFINITION.match(" ".join(texts)))


def event(reader: Reader) -> Value | None:
    r"""Reads `P(X = 2)`, `\Pr[A \cap B]` or `\mathbb{E}[X]` before an equals sign as one symbol. Returns None if none
    comes next."""
    name, opening = reader.token.text, reader.peek().text
    if name not in ("P", "Pr", "E", "Var") or opening not in ("(", "[") or name in reader.variables:
        return None
    end, depth = reader.index + 1, 0
    for end in range(reader.index + 1, len(reader.tokens)):
        token = reader.tokens[end]
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if not depth or token.kind == "end":
            break
    inside = [token.text for token in reader.tokens[reader.index + 2 : end]]
    if depth or reader.tokens[end + 1].text != "=" or (opening == "(" and EVENT.isdisjoint(inside)):
        return None
    reader.index = end + 1
    return Scalar(Symbol(f"{'P' if name == 'Pr' else name}({' '.join(inside)})"))


def related(reader: Reader, first: Value) -> Value:
    operands = [first]
    signs: list[Sign] = []
    while reader.token.kind == "mark" and reader.token.text in RELATIONS:
        signs.append(RELATIONS[reader.take().text])
        operands.append(reader.operand())
    if [*map(type, operands)] == [Infinity, Scalar, Infinity] and signs in (["<", "<"], [">", ">"]):
        unknown = operands[1].of if isinstance(operands[1], Scalar) else None
        if operands[0] != operands[2] and isinstance(unknown, Symbol):
            return Builder(unknown.name, NumberSet("R"), None)
    if isinstance(operands[0], Infinity) and len(operands) > 2 and signs[0] in ("<", ">"):
        del operands[0], signs[0]
    if isinstance(operands[-1], Infinity) and len(operands) > 2 and signs[-1] in ("<", ">"):
        del operands[-1], signs[-1]
    expressions = [operand.of for operand in operands if isinstance(operand, Scalar)]
    if len(expressions) == len(operands):
        names = {side.name for side in expressions[:-1] if isinstance(side, Symbol)}
        if 1 < len(names) == len(expressions) - 1 and set(signs) == {"=="} and not symbols(expressions[-1]):
            # `x = y = z = 1` gives each of them its value.
            return RelationValue(
                "and", tuple(ComparisonNode((side, expressions[-1]), ("==",)) for side in expressions[:-1])
            )
        return RelationValue("and", (ComparisonNode(tuple(expressions), tuple(signs)),))
    name, *values = operands
    if signs != ["=="] or not is_name(name) or not isinstance(name, Scalar | Tuple):
        raise reader.error("a relation between things that are not numbers")
    return Named(name, values[0])


PARAMETER = "#"
"""Parameter name that no written symbol has."""
MAX_MODULUS = 10**12


def congruence(reader: Reader, first: Value) -> Images | RelationValue:
    r"""Reads a congruence such as `x \equiv 1 \pmod 3` from its sign on. `f(x) \equiv 0` is an equation. Raises
    GrammarError if the left side is no unknown, or a residue is not a whole number."""
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
    r"""Reads and returns the modulus of a congruence, `\pmod 7` or `\pmod{7}`."""
    reader.expect("\\pmod")
    braced = reader.accept("{")
    token = reader.take()
    if token.kind != "number" or not token.integer or not 0 < token.value <= MAX_MODULUS:
        raise reader.error("a modulus that is not a whole number")
    if braced:
        reader.expect("}")
    return int(token.value)
