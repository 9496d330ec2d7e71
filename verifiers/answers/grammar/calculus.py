"""Definite integrals, finite or infinite sums and products, limits: signs that bind a symbol.

They become calls that name the bound symbol: `integral(body, x, low, high)`, `sum` and `product` alike,
`limit(body, x, point)`. `Constant("infinity")` may be a bound, and stands nowhere else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verifiers.answers.grammar.nodes import Call, Constant, Expression, Negation, Symbol
from verifiers.answers.grammar.tokens import Token

if TYPE_CHECKING:
    from verifiers.answers.grammar.mathematics import Mathematics

INFINITE = Constant("infinity")
DIFFERENTIAL = re.compile("([A-Za-z]*)d([A-Za-z]?)")


def bound(parser: Mathematics) -> Expression:
    """Raises GrammarError, also for an integral without bounds: that is no value."""
    match parser.take().text:
        case "\\int":
            return _integral(parser)
        case "\\lim":
            return _limit(parser)
        case sign:
            return _repeated(parser, "sum" if sign == "\\sum" else "product")


def _bounds(parser: Mathematics) -> tuple[Expression | None, Expression | None]:
    low = high = None
    while parser.at("_", "^"):
        if parser.take().text == "_":
            low = _end(parser)
        else:
            high = _end(parser)
    return low, high


def _end(parser: Mathematics) -> Expression:
    braces = parser.at("{")
    if not braces:
        return infinite(parser) if parser.at("\\infty") else parser.argument()
    parser.take()
    found = infinite(parser) if _is_infinite(parser) else parser.nested(parser.sum)
    parser.expect("}")
    return found


def _is_infinite(parser: Mathematics) -> bool:
    following = parser.tokens[parser.index + 1].text
    return parser.at("\\infty") or (parser.at("+", "-") and following == "\\infty")


def infinite(parser: Mathematics) -> Expression:
    negative = parser.at("-")
    if parser.at("+", "-"):
        parser.take()
    parser.expect("\\infty")
    return Negation(INFINITE) if negative else INFINITE


def _integral(parser: Mathematics) -> Expression:
    low, high = _bounds(parser)
    if low is None or high is None:
        raise parser.error("an integral without bounds")
    name = _split_differential(parser)
    body: Expression = parser.nested(parser.sum)
    parser.expect("d")
    parser.take()
    return Call("integral", (body, Symbol(name), low, high))


def _split_differential(parser: Mathematics) -> str:
    """Finds the `dx` that ends the integrand and makes it two tokens, a mark and the symbol. Returns its name."""
    depth = 0
    for index in range(parser.index, len(parser.tokens)):
        token = parser.tokens[index]
        if token.kind == "mark":
            depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(token.text, 0)
        elif depth == 0 and token.kind in ("word", "text") and not parser.is_function(token.text):
            match = DIFFERENTIAL.fullmatch(token.text)
            following = parser.tokens[index + 1] if index + 1 < len(parser.tokens) else token
            if match is None or not (match[2] or (following.kind in ("symbol", "word") and len(following.text) == 1)
                                     or following.kind == "symbol"):  # fmt: skip
                continue
            name = match[2] or following.text
            before = [Token("word", match[1], glued=token.glued)] if match[1] else []
            after = index + (1 if match[2] else 2)
            parser.tokens[index:after] = [*before, Token("mark", "d"), Token("word", name)]
            return name
    raise parser.error("an integral without dx")


def _repeated(parser: Mathematics, name: str) -> Expression:
    parser.expect("_")
    parser.expect("{")
    index = parser.take()
    if index.kind not in ("word", "symbol"):
        raise parser.error("a sum without an index")
    parser.expect("=")
    low = infinite(parser) if _is_infinite(parser) else parser.nested(parser.sum)
    parser.expect("}")
    parser.expect("^")
    high = _end(parser)
    body: Expression = parser.nested(parser.term)
    return Call(name, (body, Symbol(index.text), low, high))


def _limit(parser: Mathematics) -> Expression:
    parser.expect("_")
    parser.expect("{")
    variable = parser.take()
    if variable.kind not in ("word", "symbol"):
        raise parser.error("a limit without a variable")
    parser.expect("\\to")
    point = infinite(parser) if _is_infinite(parser) else parser.nested(parser.sum)
    parser.expect("}")
    body: Expression = parser.nested(parser.term)
    return Call("limit", (body, Symbol(variable.text), point))
