"""Constructs that bind a symbol: definite integrals, finite or infinite sums and products, limits.

They become calls that name the bound symbol: `integral(body, x, low, high)`, `sum` and `product` alike, `limit(body, x,
point)`. `Constant("infinity")` may be a bound, and occurs nowhere else. An indefinite integral is refused, because it
has no value.
"""

from __future__ import annotations

import re

from verifiers.answers.grammar.nodes import Constant, Expression, FunctionCall, Negation, Symbol
from verifiers.answers.grammar.reader import Reader
from verifiers.answers.grammar.tokens import Token

INFINITE = Constant("infinity")
DIFFERENTIAL = re.compile("([A-Za-z]*)d([A-Za-z]?)")


def integral(reader: Reader) -> Expression:
    r"""Reads `\int_0^1 x^2 dx`."""
    reader.take()
    low = high = None
    while reader.at("_", "^"):
        if reader.take().text == "_":
            low = _bound(reader)
        else:
            high = _bound(reader)
    if low is None or high is None:
        raise reader.error("an integral without bounds")
    name = _split_differential(reader)
    body = reader.nested(reader.sum)
    reader.expect("d")
    reader.take()
    return FunctionCall("integral", (body, Symbol(name), low, high))


def repeated(reader: Reader) -> Expression:
    r"""Reads `\sum_{k=1}^{10} k^2`, `\prod_{k=1}^n k`."""
    name = "sum" if reader.take().text == "\\sum" else "product"
    index = _bound_symbol(reader, "a sum without an index")
    reader.expect("=")
    low = _point(reader)
    reader.expect("}")
    reader.expect("^")
    high = _bound(reader)
    return FunctionCall(name, (reader.nested(reader.term), index, low, high))


def limit(reader: Reader) -> Expression:
    r"""Reads `\lim_{x \to 0} x`."""
    reader.take()
    variable = _bound_symbol(reader, "a limit without a variable")
    reader.expect("\\to")
    point = _point(reader)
    reader.expect("}")
    return FunctionCall("limit", (reader.nested(reader.term), variable, point))


def _bound_symbol(reader: Reader, missing: str) -> Symbol:
    reader.expect("_")
    reader.expect("{")
    token = reader.take()
    if token.kind not in ("word", "symbol"):
        raise reader.error(missing)
    return Symbol(token.text)


def _bound(reader: Reader) -> Expression:
    if not reader.accept("{"):
        return _infinite(reader) if reader.at("\\infty") else reader.argument()
    found = _point(reader)
    reader.expect("}")
    return found


def _point(reader: Reader) -> Expression:
    if reader.at("\\infty") or (reader.at("+", "-") and reader.peek().text == "\\infty"):
        return _infinite(reader)
    return reader.nested(reader.sum)


def _infinite(reader: Reader) -> Expression:
    negative = reader.accept("+", "-") == "-"
    reader.expect("\\infty")
    return Negation(INFINITE) if negative else INFINITE


def _split_differential(reader: Reader) -> str:
    """Splits the `dx` that ends the integrand into a mark and the symbol. Returns the symbol's name."""
    depth = 0
    for index in range(reader.index, len(reader.tokens) - 1):
        token = reader.tokens[index]
        if token.kind == "mark":
            depth += (token.text in ("(", "{")) - (token.text in (")", "}"))
        elif depth == 0 and token.kind in ("word", "text") and not reader.is_function(token.text):
            match = DIFFERENTIAL.fullmatch(token.text)
            following = reader.tokens[index + 1]
            one_letter = following.kind == "symbol" or (following.kind == "word" and len(following.text) == 1)
            if match is None or not (match[2] or one_letter):
                continue
            name = match[2] or following.text
            before = [Token("word", match[1], glued=token.glued)] if match[1] else []
            reader.tokens[index : index + (1 if match[2] else 2)] = [*before, Token("mark", "d"), Token("word", name)]
            return name
    raise reader.error("an integral without dx")
