"""Brackets of answers: what they hold, and what a pair of values between two of them means."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from verifiers.answers.grammar.joining import NODES, Refusal
from verifiers.answers.grammar.mathematics import Mathematics
from verifiers.answers.grammar.nodes import Number
from verifiers.answers.values import Infinity, Interval, Matrix, NumberSet, Scalar, Tuple, Value

OPERATIONS: dict[str, Literal["union", "intersection", "difference"]] = {
    "\\cup": "union",
    "\\cap": "intersection",
    "\\setminus": "difference",
}


@dataclass(frozen=True, slots=True)
class Hint:
    """What an expected answer settles: how round and square brackets around two numbers are read."""

    round_pair: Literal["tuple", "interval", "unknown"] = "unknown"
    square_pair: Literal["tuple", "interval"] = "interval"
    braces: bool = False
    """Whether `{5}` without backslashes is a set."""


def has_items(parser: Mathematics) -> bool:
    """Whether the bracket that opens here has items in it. Plain braces may hold a condition, or meet a set."""
    braces = parser.token.text == "{"
    depth = 0
    for index in range(parser.index, len(parser.tokens)):
        token = parser.tokens[index]
        if token.kind != "mark":
            continue
        if token.text in ("(", "[", "{", "\\{", "\\langle"):
            depth += 1
        elif token.text in (")", "]", "}", "\\}", "\\rangle"):
            depth -= 1
            if depth == 0:
                return braces and parser.tokens[index + 1].text in OPERATIONS
        elif depth == 1 and (token.text in (",", ";") or (braces and token.text in ("|", "\\mid", ":"))):
            return True
    return False


def tuple_or_interval(hint: Hint, opening: str, items: list[Value], closing: str, refusal: Refusal) -> Value:
    pair = opening + closing
    if len(items) == 2:
        low, high = (item.of if isinstance(item, Scalar) else item for item in items)
        infinite = isinstance(low, Infinity) or isinstance(high, Infinity)
        if pair == "()":
            wanted = infinite or hint.round_pair == "interval"
        else:
            wanted = pair != "[]" or infinite or hint.square_pair == "interval"
        ends = (Infinity, *NODES)
        if wanted and isinstance(low, ends) and isinstance(high, ends):
            closed_low, closed_high = opening == "[", closing == "]"
            if isinstance(low, Infinity) and (closed_low or low.sign > 0):
                raise refusal("infinity as an end that is reached")
            if isinstance(high, Infinity) and (closed_high or high.sign < 0):
                raise refusal("infinity as an end that is reached")
            return Interval(low, high, closed_low, closed_high)
    if pair not in ("()", "[]"):
        raise refusal("brackets that do not belong together")
    if pair == "[]" and all(isinstance(item, Tuple) for item in items):
        rows = [item.items for item in items if isinstance(item, Tuple)]
        entries = [[entry.of for entry in row if isinstance(entry, Scalar)] for row in rows]
        if all(len(row) == len(rows[0]) == len(read) for row, read in zip(rows, entries, strict=True)):
            return Matrix(tuple(map(tuple, entries)))
    return Tuple(tuple(items))


def number_set(parser: Mathematics) -> Value:
    name = parser.take().text[-1]
    if parser.at("^"):
        parser.take()
        sign = _power_of_set(parser)
        if sign == "+" and name in "ZR":
            zero = Number(Fraction(0))
            return NumberSet("N") if name == "Z" else Interval(zero, Infinity(1), False, False)
        raise parser.error("a power of a set of numbers")
    if parser.at("_"):
        parser.take()
        if name == "N" and parser.foot() == "0":
            return NumberSet("N0")
        raise parser.error("a set of numbers with a subscript")
    return NumberSet(name)  # type: ignore[arg-type]


def _power_of_set(parser: Mathematics) -> str:
    if parser.at("{"):
        parser.take()
        sign = parser.take().text
        parser.expect("}")
        return sign
    return parser.take().text
