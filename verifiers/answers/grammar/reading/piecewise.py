r"""Content of `\begin{cases}` to `\end{cases}`: a system, or values with their conditions."""

from __future__ import annotations

from verifiers.answers.grammar.errors import TooLargeError
from verifiers.answers.grammar.nodes import Expression
from verifiers.answers.grammar.reader import Reader
from verifiers.answers.grammar.values import Builder, Piecewise, RelationValue, Scalar, Value

MAX_ROWS = 40
END = "\\end{cases}"
OTHERWISE = frozenset({"otherwise", "else", "elsewhere"})
BEFORE_CONDITION = frozenset({"if", "for", "when", "where"})


def cases(reader: Reader) -> Value:
    """Reads a `cases` environment: simultaneous relations, or values each with its condition. Raises GrammarError,
    TooLargeError."""
    reader.take()
    outer, reader.bars = reader.bars, 0
    rows: list[tuple[Value, Value | None]] = []
    conditional = False
    while not reader.at(END):
        value = reader.nested(reader.item)
        reader.accept(",", ";")
        if reader.accept("&"):
            conditional = True
            rows.append((value, _condition(reader)))
            reader.accept(",", ";")
        else:
            rows.append((value, None))
        if len(rows) > MAX_ROWS:
            raise TooLargeError(f"more than {MAX_ROWS} cases")
        if not reader.at(END):
            reader.expect("\\\\")
    reader.expect(END)
    reader.bars = outer
    if conditional:
        return _piecewise(rows, reader)
    relations = [value for value, _ in rows if isinstance(value, RelationValue)]
    if not rows or len(relations) < len(rows):
        raise reader.error("cases that are neither equations nor values with conditions")
    return relations[0] if len(relations) == 1 else RelationValue("and", tuple(relations))


def _condition(reader: Reader) -> Value | None:
    """Reads the condition of one case; None for `otherwise`. Raises GrammarError for anything but a condition on one
    symbol."""
    token = reader.token
    if token.kind in ("word", "text") and token.text in OTHERWISE:
        reader.take()
        return None
    if token.kind in ("word", "text") and token.text in BEFORE_CONDITION:
        reader.take()
    found = reader.nested(reader.item)
    if not isinstance(found, RelationValue | Builder):
        raise reader.error("a case without a condition")
    return found


def _piecewise(rows: list[tuple[Value, Value | None]], reader: Reader) -> Piecewise:
    branches: list[tuple[Expression, Value | None]] = []
    for index, (value, condition) in enumerate(rows):
        if not isinstance(value, Scalar) or (condition is None and index < len(rows) - 1):
            raise reader.error("a case that is not a value with its condition")
        branches.append((value.of, condition))
    return Piecewise(tuple(branches))
