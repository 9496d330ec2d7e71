"""What stands between `\\begin{cases}` and `\\end{cases}`: a system of equations, or values with their conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers.answers.grammar.errors import TooLargeError
from verifiers.answers.grammar.nodes import Expression
from verifiers.answers.values import Builder, Piecewise, Relation, Scalar, Value

if TYPE_CHECKING:
    from verifiers.answers.grammar.structures import Structures

MAX_ROWS = 40
END = "\\end{cases}"
OTHERWISE = frozenset({"otherwise", "else", "elsewhere"})
BEFORE_CONDITION = frozenset({"if", "for", "when", "where"})


def cases(parser: Structures) -> Value:
    """Relations that hold together, or values of which each has a condition. Raises GrammarError, TooLargeError."""
    parser.take()
    outer, parser.bars = parser.bars, 0
    rows: list[tuple[Value, Value | None]] = []
    conditional = False
    while not parser.at(END):
        value = parser.nested(parser.item)
        _end_mark(parser)
        if parser.at("&"):
            parser.take()
            conditional = True
            rows.append((value, _condition(parser)))
            _end_mark(parser)
        else:
            rows.append((value, None))
        if len(rows) > MAX_ROWS:
            raise TooLargeError(f"more than {MAX_ROWS} cases")
        if not parser.at(END):
            parser.expect("\\\\")
    parser.expect(END)
    parser.bars = outer
    if conditional:
        return _piecewise(rows, parser)
    relations = [value for value, _ in rows if isinstance(value, Relation)]
    if not rows or len(relations) < len(rows):
        raise parser.error("cases that are neither equations nor values with conditions")
    return relations[0] if len(relations) == 1 else Relation("and", tuple(relations))


def _end_mark(parser: Structures) -> None:
    if parser.at(",", ";"):
        parser.take()


def _condition(parser: Structures) -> Value | None:
    """None for `otherwise`. Raises GrammarError for what is no condition on one symbol."""
    token = parser.token
    if token.kind in ("word", "text") and token.text in OTHERWISE:
        parser.take()
        return None
    if token.kind in ("word", "text") and token.text in BEFORE_CONDITION:
        parser.take()
    found = parser.nested(parser.item)
    if not isinstance(found, Relation | Builder):
        raise parser.error("a case without a condition")
    return found


def _piecewise(rows: list[tuple[Value, Value | None]], parser: Structures) -> Piecewise:
    branches: list[tuple[Expression, Value | None]] = []
    for index, (value, condition) in enumerate(rows):
        if not isinstance(value, Scalar) or (condition is None and index < len(rows) - 1):
            raise parser.error("a case that is no value with its condition")
        branches.append((value.of, condition))
    return Piecewise(tuple(branches))
