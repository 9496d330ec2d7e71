"""Constructs for self-contained values: numbers, brackets, fractions, roots, derivatives."""

from __future__ import annotations

from verifiers.answers.grammar.nodes import Expression, FunctionCall, Number, Quotient, Symbol, symbols
from verifiers.answers.grammar.reader import Reader
from verifiers.answers.grammar.reading.names import RATE
from verifiers.answers.grammar.vocabulary import LARGE_NUMBERS

PAIRS = {
    "(": (")", None), "\\lfloor": ("\\rfloor", "floor"), "\\lceil": ("\\rceil", "ceil"), "|": ("|", "abs"),
    "|open": ("|close", "abs"),
}  # fmt: skip
"""Opening bracket: (closing bracket, function of the content)."""


def number(reader: Reader) -> Expression:
    """Reads a number; in answers also with a word such as `million` after it."""
    token = reader.take()
    large = None if reader.language.declared else LARGE_NUMBERS.get(reader.token.text)
    if large is not None and reader.token.text not in reader.variables:
        return Number(token.value * large, f"{token.text} {reader.take().text}")
    return Number(token.value, "" if token.integer else token.text)


def bracketed(reader: Reader) -> Expression:
    opening = reader.take().text
    closing, function = PAIRS[opening]
    node = reader.up_to(closing, reader.sum, bars=1 if opening == "|" else 0)
    return FunctionCall(function, (node,)) if function else node


def fraction(reader: Reader) -> Expression:
    r"""Reads `\frac{a}{b}`, `\frac12`."""
    reader.take()
    return Quotient(reader.argument(), reader.argument())


def binomial(reader: Reader) -> Expression:
    reader.take()
    return FunctionCall("binomial", (reader.argument(), reader.argument()))


def root(reader: Reader) -> Expression:
    r"""Reads `\sqrt{a}`, `\sqrt[n]{a}`, `\sqrt2`."""
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
    """Reads `√2`, `√12`, `√(x+1)`: a sign that takes the next number, letter or bracket."""
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
    """Reads a command that only underlines or colours, and returns the expression in its braces."""
    reader.take()
    return reader.braced()


def conjugate(reader: Reader) -> Expression:
    r"""Reads `\overline{3+4i}`. Raises GrammarError for a line over real symbols, which may be a mean or a segment."""
    reader.take()
    of = reader.braced()
    if symbols(of) and not reader.context.complex:
        raise reader.error("a line over letters that are real numbers")
    return FunctionCall("conj", (of,))


def angle(reader: Reader) -> Expression:
    r"""Reads `\angle ABC` and `\angle 1` as names."""
    reader.take()
    token = reader.take()
    if token.kind not in ("word", "symbol", "text") and not token.integer:
        raise reader.error("an angle without a name")
    return Symbol(f"angle {token.text}")


def infinity(reader: Reader) -> Expression:
    raise reader.error("infinity is not a number")
