"""Matrices between `\\begin` and `\\end`: rows of entries, and determinants written out for small ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers.answers.grammar.errors import TooLargeError
from verifiers.answers.grammar.nodes import Expression, Negation, Product, Sum

if TYPE_CHECKING:
    from verifiers.answers.grammar.mathematics import Mathematics

MAX_ENTRIES = 400
MAX_DETERMINANT = 4
"""Rows of a determinant that is written out: 24 products."""

Rows = tuple[tuple[Expression, ...], ...]


def rows(parser: Mathematics) -> Rows:
    """Reads from `\\begin` to its `\\end`. Raises GrammarError for rows of different lengths, TooLargeError."""
    environment = parser.take().text.removeprefix("\\begin")
    found: list[tuple[Expression, ...]] = []
    entries: list[Expression] = []
    outer, parser.bars = parser.bars, 0
    count = 0
    while True:
        entries.append(parser.nested(parser.sum))
        count += 1
        if count > MAX_ENTRIES:
            raise TooLargeError(f"a matrix of more than {MAX_ENTRIES} entries")
        if parser.at("&"):
            parser.take()
            continue
        found.append(tuple(entries))
        entries = []
        if parser.at("\\\\"):
            parser.take()
            if not parser.at("\\end" + environment):
                continue
        parser.expect("\\end" + environment)
        break
    parser.bars = outer
    if any(len(row) != len(found[0]) for row in found):
        raise parser.error("a matrix whose rows differ in length")
    return tuple(found)


def determinant(parser: Mathematics) -> Expression:
    """Raises GrammarError where it is not square, TooLargeError for more than MAX_DETERMINANT rows and for nested ones:
    written out, each level would multiply the terms by six."""
    if parser.inside_determinant:
        raise TooLargeError("a determinant within a determinant")
    parser.inside_determinant = True
    read = rows(parser)
    parser.inside_determinant = False
    if len(read) != len(read[0]):
        raise parser.error("a determinant that is not square")
    if len(read) > MAX_DETERMINANT:
        raise TooLargeError(f"a determinant of more than {MAX_DETERMINANT} rows")
    return _expanded(read)


def _expanded(read: Rows) -> Expression:
    """Laplace's expansion along the first row."""
    if len(read) == 1:
        return read[0][0]
    terms: list[Expression] = []
    for column, entry in enumerate(read[0]):
        minor = tuple(row[:column] + row[column + 1 :] for row in read[1:])
        term = Product((entry, _expanded(minor)))
        terms.append(Negation(term) if column % 2 else term)
    return Sum(tuple(terms))
