r"""Constructs for self-contained values: numbers, brackets, fractions, roots, derivatives.

Matrices between `\begin` and `\end`, and expansion of small determinants.
"""

from __future__ import annotations

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.nodes import (
    Expression,
    FunctionCall,
    Negation,
    Number,
    Product,
    Quotient,
    Sum,
    Symbol,
    symbols,
)
from verifiers.answers.grammar.reader import Reader
from verifiers.answers.grammar.reading.names import RATE, subscripted
from verifiers.answers.grammar.values import Matrix, Scalar, Tuple
from verifiers.answers.grammar.vocabulary import LARGE_NUMBERS

PAIRS = {
    "(": (")", None), "\\lfloor": ("\\rfloor", "floor"), "\\lceil": ("\\rceil", "ceil"), "|": ("|", "abs"),
    "|open": ("|close", "abs"),
}  # fmt: skip
"""Opening bracket: (closing bracket, function of the content)."""
GROUPS = {"[": ("]", None), "\\{": ("\\}", None)}
"""Brackets that only group in answers, where no list, interval or set can stand: `2[a+b]`, `2\\{a+[b+c]\\}`."""


def number(reader: Reader) -> Expression:
    """Reads a number, and in answers a following word such as `million` as its multiplier."""
    token = reader.take()
    large = None if reader.language.declared else LARGE_NUMBERS.get(reader.token.text)
    if large is not None and reader.token.text not in reader.variables:
        return Number(token.value * large, f"{token.text} {reader.take().text}")
    return Number(token.value, "" if token.integer else token.text)


def bracketed(reader: Reader) -> Expression:
    opening = reader.take().text
    closing, function = (PAIRS | GROUPS)[opening]
    if opening == "\\{" and not any(token.text == "[" for token in reader.tokens[reader.index :]):
        raise reader.error("braces that may be a set or a fractional part: use round brackets")
    node = reader.up_to(closing, reader.sum, bars=1 if opening == "|" else 0)
    return FunctionCall(function, (node,)) if function else node


def fraction(reader: Reader) -> Expression:
    r"""Reads a LaTeX fraction, `\frac{a}{b}` or `\frac12`."""
    reader.take()
    return Quotient(reader.argument(), reader.argument())


def binomial(reader: Reader) -> Expression:
    reader.take()
    return FunctionCall("binomial", (reader.argument(), reader.argument()))


def root(reader: Reader) -> Expression:
    r"""Reads a LaTeX root, `\sqrt{a}`, `\sqrt[n]{a}` or `\sqrt2`."""
    reader.take()
    if reader.accept("["):
        degree = reader.up_to("]", reader.sum, bars=reader.bars)
        return FunctionCall("root", (reader.argument(), degree))
    if reader.at("("):
        return FunctionCall("sqrt", (bracketed(reader),))
    node = FunctionCall("sqrt", (reader.argument(),))
    if reader.token.kind == "number":
        raise reader.error("how far the root reaches is ambiguous: use braces")
    return node


def unbraced_root(reader: Reader) -> Expression:
    """Reads a root written with the sign, `√2` or `√(x+1)`: it takes the next number, letter or bracket."""
    reader.take()
    degree = reader.up_to("]", reader.sum, bars=reader.bars) if reader.accept("[") else None
    if reader.token.kind not in ("number", "word", "symbol") and not reader.at("(", "{", "\\frac", "\\surd"):
        raise reader.error("a root of nothing")
    under = reader.braced() if reader.at("{") else reader.nested(reader.atom)
    return FunctionCall("sqrt", (under,)) if degree is None else FunctionCall("root", (under, degree))


def rate_or_fraction(reader: Reader) -> Expression:
    r"""Reads `\frac{dy}{dx}` as a symbol in which no d cancels, `\frac{d}{dx} x^3` as a derivative, or a fraction."""
    texts = reader.texts(7)
    if len(texts) < 7 or texts[1] != "{" or texts[4] != "{" or not texts[3] == texts[6] == "}":
        return fraction(reader)
    below = RATE.fullmatch(texts[5])
    if below is None or "d" in reader.variables or not (texts[2] == "d" or RATE.fullmatch(texts[2])):
        return fraction(reader)
    reader.index += 7
    if texts[2] == "d":
        return FunctionCall("derivative", (reader.nested(reader.term), Symbol(below[1])))
    return Symbol(f"{texts[2]}/{texts[5]}")


def group(reader: Reader) -> Expression:
    """Reads a LaTeX command that only underlines or colours, and returns the expression in its braces."""
    reader.take()
    return reader.braced()


def conjugate(reader: Reader) -> Expression:
    r"""Reads a line over a complex number, `\overline{3+4i}`, as its conjugate. Raises GrammarError for a line over
    real symbols, which may be a mean or a segment."""
    reader.take()
    of = reader.braced()
    if symbols(of) and not reader.context.complex:
        raise reader.error("a line over letters that are real numbers")
    return FunctionCall("conj", (of,))


def angle(reader: Reader) -> Expression:
    r"""Reads the name of an angle, `\angle ABC` or `\angle 1`, as one symbol."""
    reader.take()
    token = reader.take()
    if token.kind not in ("word", "symbol", "text") and not token.integer:
        raise reader.error("an angle without a name")
    return Symbol(f"angle {token.text}")


def infinity(reader: Reader) -> Expression:
    raise reader.error("infinity is not a number")


MAX_ENTRIES = 400
MAX_DETERMINANT = 4
"""Maximum rows of a determinant to expand: 24 products."""

Rows = tuple[tuple[Expression, ...], ...]


def rows(reader: Reader) -> Rows:
    r"""Reads the rows of a LaTeX matrix from `\begin` to `\end`. Raises GrammarError for rows of different lengths,
    TooLargeError for too many entries."""
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
    r"""True if a transpose sign comes next, `^T`, `^{\top}` or `^{\mathrm{T}}`; it is then consumed."""
    for signs in (["^", "T"], ["^", "\\top"], ["^", "{", "T", "}"], ["^", "{", "\\top", "}"]):
        if reader.texts(len(signs)) == signs:
            reader.index += len(signs)
            return True
    return False


def transposed(value: Matrix | Tuple) -> Matrix:
    """Returns the transpose of a matrix, or a row vector given as a list in brackets. Raises GrammarError for a list of
    anything but numbers."""
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
    r"""Reads `\det A` or `\operatorname{tr}(A)`: a number that belongs to a matrix of which only the letter is known.
    Raises GrammarError for more than one letter, since matrices do not multiply as numbers do."""
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
