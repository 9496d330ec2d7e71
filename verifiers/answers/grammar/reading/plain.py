"""Parser of the plain language: expressions over declared symbols, and conditions, as in specs and predicates.

Nothing is guessed. Refused as ambiguous, with a hint what to write instead: `1/2x`, `sin x (x+1)`, `f(2)` for an
unknown `f`, `sin^-1 x`, two adjacent numbers. Conditions are comparisons joined by `and`, `or`, `not`; `1 < x <= 5`
means both. `%` and `//` are the remainder and the quotient of division rounding down, as in Python. A single `=` is
refused, because readers take it differently.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import get_args

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.nodes import And, ComparisonNode, Condition, Expression, Not, Or, Relation
from verifiers.answers.grammar.notation import PLAIN
from verifiers.answers.grammar.reader import Context, Language, Reader
from verifiers.answers.grammar.reading import atoms, names
from verifiers.answers.grammar.reading.factors import beside_plain
from verifiers.answers.grammar.tokens import MAX_CHARACTERS, folded
from verifiers.answers.grammar.vocabulary import BARE, FUNCTIONS, PLAIN_CONSTANTS

RELATIONS: dict[str, Relation] = {relation: relation for relation in get_args(Relation)}
ATOMS: Mapping[str, Callable[[Reader], Expression]] = {
    "number": atoms.number,
    "word": names.word,
    **dict.fromkeys(atoms.PAIRS, atoms.bracketed),
    "\\frac": atoms.fraction,
    "\\binom": atoms.binomial,
    "\\sqrt": atoms.root,
}
EXPRESSIONS = Language(
    atoms=ATOMS,
    factor_signs=frozenset(ATOMS) - {"|"},
    beside=beside_plain,
    functions=FUNCTIONS,
    bare=BARE,
    constants=PLAIN_CONSTANTS,
    declared=True,
)
CONDITIONS = replace(EXPRESSIONS, modular=True)


def parse_expression(text: str, variables: Collection[str] = ()) -> Expression:
    """Parses a whole text as a mathematical expression in plain notation. Raises only GrammarError."""
    reader = _reader(text, variables, EXPRESSIONS)
    return reader.end(reader.sum())


def parse_predicate(text: str, variable: str) -> Condition:
    """Parses a whole text as a condition on one variable, in plain notation. Raises only GrammarError."""
    reader = _reader(text, {variable}, CONDITIONS)
    found = _either(reader)
    if reader.token.kind != "end":
        raise _unexpected(reader)
    return found


def _reader(text: str, variables: Collection[str], language: Language) -> Reader:
    if len(text) > MAX_CHARACTERS:
        raise TooLargeError(f"longer than {MAX_CHARACTERS} characters")
    inner = folded(text).strip()
    if len(inner) > 2 and inner[0] == inner[-1] == "$" and "$" not in inner[1:-1]:
        inner = inner[1:-1]
    return Reader(PLAIN.tokens(inner), language, Context(frozenset(variables)))


def _unexpected(reader: Reader) -> GrammarError:
    if reader.at("="):
        return reader.error("a single '=': write '==' to compare")
    if reader.token.kind == "end":
        return reader.error("a value where a comparison is needed")
    return reader.error(f"cannot read on at {reader.token.text[:20]!r}")


def _either(reader: Reader) -> Condition:
    return _joined(reader, "or", lambda: _joined(reader, "and", lambda: _negated(reader), And), Or)


def _joined(reader: Reader, sign: str, read: Callable[[], Condition], made: type[And] | type[Or]) -> Condition:
    parts = [read()]
    while reader.accept(sign):
        parts.append(read())
    return parts[0] if len(parts) == 1 else made(tuple(parts))


def _negated(reader: Reader) -> Condition:
    if reader.accept("not"):
        return Not(reader.nested(lambda: _negated(reader)))
    return _compared(reader)


def _compared(reader: Reader) -> Condition:
    """Reads a comparison or a bracketed condition, trying the comparison first. Raises the error that got further if
    both fail."""
    start, bars, depth = reader.index, reader.bars, reader.depth
    try:
        return _comparison(reader)
    except TooLargeError:
        raise
    except GrammarError as first:
        reader.index, reader.bars, reader.depth = start, bars, depth
        if not reader.accept("("):
            raise
        try:
            return reader.up_to(")", lambda: _either(reader), bars=bars)
        except GrammarError as second:
            raise (first if first.position >= second.position else second) from None


def _comparison(reader: Reader) -> ComparisonNode:
    operands = [reader.sum()]
    relations: list[Relation] = []
    while reader.token.kind == "mark" and reader.token.text in RELATIONS:
        relations.append(RELATIONS[reader.take().text])
        operands.append(reader.sum())
    if not relations:
        raise _unexpected(reader)
    return ComparisonNode(tuple(operands), tuple(relations))
