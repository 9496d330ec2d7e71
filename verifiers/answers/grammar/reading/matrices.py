r"""Matrices between `\begin` and `\end`, and expansion of small determinants."""

from __future__ import annotations

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.nodes import Expression, FunctionCall, Negation, Product, Sum, Symbol
from verifiers.answers.grammar.reader import Reader
from verifiers.answers.grammar.reading.names import subscripted
from verifiers.answers.grammar.values import Matrix, Scalar, Tuple

MAX_ENTRIES = 400
MAX_DETERMINANT = 4
"""Maximum rows of a determinant to expand: 24 products."""

Rows = tuple[tuple[Expression, ...], ...]


def rows(reader: Reader) -> Rows:
    r"""Reads from `\begin` to its `\end`. Raises GrammarError for rows of different lengths, TooLargeError."""
    environment = reader.take().text.removeprefix("\\begin")
    found: list[tuple[Expression, ...]] = []
    entries: list[Expression] = []
    outer, reader.bars = reader.bars, 0
    count = 0
    while True:
        entries.append(reader.nested(reader.sum))
        count += 1
        if count > MAX_ENTRIES:
            raise TooLargeError(f"a matrix of more than {MAX_ENTRIES} entries")
        if reader.accept("&"):
            continue
        found.append(tuple(entries))
        entries = []
        if reader.accept("\\\\") and not reader.at("\\end" + environment):
            continue
        reader.expect("\\end" + environment)
        break
    reader.bars = outer
    if any(len(row) != len(found[0]) for row in found):
        raise reader.error("a matrix whose rows differ in length")
    return tuple(found)


def matrix(reader: Reader) -> Matrix:
    return Matrix(rows(reader))


def transposes(reader: Reader) -> bool:
    r"""Consumes a transpose sign and returns True if one is next: `^T`, `^{\top}`, `^{\mathrm{T}}`."""
    for signs in (["^", "T"], ["^", "\\top"], ["^", "{", "T", "}"], ["^", "{", "\\top", "}"]):
        if reader.texts(len(signs)) == signs:
            reader.index += len(signs)
            return True
    return False


def transposed(value: Matrix | Tuple) -> Matrix:
    """Transposes a matrix; a list in brackets is a row. Raises GrammarError."""
    if isinstance(value, Matrix):
        return Matrix(tuple(zip(*value.rows, strict=True)))
    entries = [item.of for item in value.items if isinstance(item, Scalar)]
    if len(entries) < len(value.items):
        raise GrammarError("a transpose of anything but numbers")
    return Matrix(tuple((entry,) for entry in entries))


def determinant(reader: Reader) -> Expression:
    """Reads and expands a determinant. Raises GrammarError if it is not square. Raises TooLargeError for more than
    MAX_DETERMINANT rows and for nested ones: each level would multiply the terms by six."""
    if reader.inside_determinant:
        raise TooLargeError("a determinant within a determinant")
    reader.inside_determinant = True
    read = rows(reader)
    reader.inside_determinant = False
    if len(read) != len(read[0]):
        raise reader.error("a determinant that is not square")
    if len(read) > MAX_DETERMINANT:
        raise TooLargeError(f"a determinant of more than {MAX_DETERMINANT} rows")
    return _expanded(read)


def of_letter(reader: Reader) -> Expression:
    r"""Reads `\det A`, `\operatorname{tr}(A)`: a number of a matrix known by its letter only. Raises GrammarError for
    anything else than one letter, since matrices do not multiply as numbers do."""
    function = reader.take().text.removeprefix("\\of ")
    opened = reader.accept("(")
    token = reader.take()
    letter = token.kind == "symbol" or (token.kind in ("word", "text") and len(token.text) == 1)
    of = subscripted(reader, token.text) if letter else None
    if opened:
        reader.expect(")")
    bound = reader.at("^", "'") or reader.token.kind in ("word", "symbol", "text", "number") or reader.at("(")
    if not isinstance(of, Symbol) or (bound and not opened):
        raise reader.error(f"{function} of anything but one letter is not supported: write {function}(A)")
    return FunctionCall(function, (of,))


def _expanded(read: Rows) -> Expression:
    """Expands a determinant along its first row (Laplace)."""
    if len(read) == 1:
        return read[0][0]
    terms: list[Expression] = []
    for column, entry in enumerate(read[0]):
        minor = tuple(row[:column] + row[column + 1 :] for row in read[1:])
        term = Product((entry, _expanded(minor)))
        terms.append(Negation(term) if column % 2 else term)
    return Sum(tuple(terms))
