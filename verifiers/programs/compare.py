"""Whether a value, or a text that was printed, is the expected one. Pure; what was returned is hostile data."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Literal, NamedTuple

from pydantic import Field

from verifiers.programs.values import Elements, Pairs, Value, kind_of, literal
from verifiers.spec_data import SpecData

Rule = Literal["exact", "equal", "close", "any_order"]
OutputRule = Literal["exact", "lines", "tokens", "numbers"]
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
NUMBER_CHARS = 400


class Comparison(SpecData):
    """When a returned value counts as the expected one."""

    rule: Rule = "exact"
    """`exact`: of the same types all through, so `2.0` is not `2`, `True` not `1` and a tuple no list; a nan is a nan.
    `equal`: `2.0` is `2`, a tuple with the same items is the list; a bool is still no number. `close`: as `equal`, and
    numbers may differ by the tolerances. `any_order`: as `exact`, the items of the outermost list in any order."""
    absolute: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    relative: float = Field(default=0.0, ge=0, lt=1, allow_inf_nan=False)
    """As a share of the expected number."""


def agree(expected: Value, got: Value, how: Comparison) -> bool:
    match how.rule:
        case "exact":
            return _same(expected, got, _Exact())
        case "equal":
            return _same(expected, got, _Near(0.0, 0.0))
        case "close":
            return _same(expected, got, _Near(how.absolute, how.relative))
        case "any_order":
            if not isinstance(expected, list | tuple) or type(got) is not type(expected):
                return _same(expected, got, _Exact())
            return len(expected) == len(got) and Counter(map(literal, expected)) == Counter(map(literal, got))


class _Exact(NamedTuple):
    def kinds(self, expected: Value, got: Value) -> bool:
        return type(expected) is type(got)

    def scalars(self, expected: Value, got: Value) -> bool:
        return expected == got or literal(expected) == literal(got)

    def key(self, value: Value) -> str:
        return literal(value)


class _Near(NamedTuple):
    absolute: float
    relative: float

    def kinds(self, expected: Value, got: Value) -> bool:
        return _family(expected) == _family(got)

    def scalars(self, expected: Value, got: Value) -> bool:
        if not _is_number(expected) or not _is_number(got):
            return expected == got
        return near(expected, got, self.absolute, self.relative)

    def key(self, value: Value) -> str:
        """Of a dictionary or set: numbers that are equal have one key; a tolerance says nothing of keys."""
        if type(value) is float and math.isfinite(value) and value == int(value):
            return literal(int(value))
        if type(value) is tuple:
            return "(" + ", ".join(map(self.key, value)) + ")"
        return literal(value)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float | complex) and not isinstance(value, bool)


def _family(value: Value) -> str:
    if _is_number(value):
        return "number"
    return "list" if isinstance(value, tuple) else kind_of(value)


def near(expected: Value, got: Value, absolute: float, relative: float) -> bool:
    """For numbers. Infinity is near itself only, and so is what is not a number."""
    assert isinstance(expected, int | float | complex)
    assert isinstance(got, int | float | complex)
    if expected == got:
        return True
    if isinstance(expected, complex) or isinstance(got, complex):
        try:
            one, other = complex(expected), complex(got)
        except OverflowError:
            return False
        return near(one.real, other.real, absolute, relative) and near(one.imag, other.imag, absolute, relative)
    if isinstance(expected, int) and isinstance(got, int) and not (absolute or relative):
        return False
    try:
        one_real, other_real = float(expected), float(got)
    except OverflowError:
        return False
    if math.isnan(one_real) or math.isnan(other_real):
        return math.isnan(one_real) and math.isnan(other_real)
    if math.isinf(one_real) or math.isinf(other_real) or not (absolute or relative):
        return False
    return abs(one_real - other_real) <= max(absolute, relative * abs(one_real))


def _same(expected: Value, got: Value, how: _Exact | _Near) -> bool:
    """Recursion as deep as values may be."""
    if not how.kinds(expected, got):
        return False
    match expected, got:
        case Pairs(ours), Pairs(theirs):
            if len(ours) != len(theirs):
                return False
            found = {how.key(key): item for key, item in theirs}
            wanted = {how.key(key): item for key, item in ours}
            return found.keys() == wanted.keys() and all(_same(item, found[key], how) for key, item in wanted.items())
        case Elements(ours_items), Elements(their_items):
            return {how.key(item) for item in ours_items} == {how.key(item) for item in their_items}
        case ((list() | tuple()), (list() | tuple())):
            return len(expected) == len(got) and all(
                _same(one, other, how) for one, other in zip(expected, got, strict=True)
            )
        case _:
            return how.scalars(expected, got)


def printed(expected: str, got: str, rule: OutputRule, *, absolute: float = 0.0, relative: float = 0.0) -> bool:
    """`lines`: apart from blanks at the ends of lines and empty lines at the end. `tokens`: the same words. `numbers`:
    the same words, decimal numbers within the tolerances."""
    match rule:
        case "exact":
            return expected == got
        case "lines":
            return _lines(expected) == _lines(got)
        case "tokens":
            return expected.split() == got.split()
        case "numbers":
            ours, theirs = expected.split(), got.split()
            return len(ours) == len(theirs) and all(
                one == other or _near_words(one, other, absolute, relative)
                for one, other in zip(ours, theirs, strict=True)
            )


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _near_words(expected: str, got: str, absolute: float, relative: float) -> bool:
    if len(got) > NUMBER_CHARS or not NUMBER.fullmatch(expected) or not NUMBER.fullmatch(got):
        return False
    one, other = float(expected), float(got)
    return math.isfinite(other) and near(one, other, absolute, relative)
