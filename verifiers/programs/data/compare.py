"""Compares a returned value or printed text with the expected one. Pure; what was returned is hostile data.

Invariant: numbers are compared as the decimals that were written, never rounded: a float as its shortest text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from itertools import repeat
from typing import Annotated, Literal, NamedTuple, TypeGuard

from pydantic import AfterValidator, Field

from verifiers.contract.spec_data import SpecData
from verifiers.programs.data.values import DictPairs, Elements, Value, kind_of, literal

Rule = Literal["exact", "equal", "close", "any_order"]
OutputRule = Literal["exact", "lines", "tokens", "numbers"]
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
NUMBER_CHARS = 400
"""Length of a printed number, in characters, above which only the same text matches. With the limit of exponents, it
bounds the digits of a difference."""
EXACT = Context(prec=4_000, Emax=MAX_EMAX, Emin=MIN_EMIN)
TOLERANCE_DIGITS, TOLERANCE_EXPONENT = 64, 400
INTEGER_BITS = 1_100
"""Size of an integer, in bits, above which only the same one matches: no float is that large."""


def _bounded(tolerance: Decimal) -> Decimal:
    _, digits, exponent = tolerance.as_tuple()
    if isinstance(exponent, str) or len(digits) > TOLERANCE_DIGITS or abs(exponent) > TOLERANCE_EXPONENT:
        raise ValueError(f"a tolerance has up to {TOLERANCE_DIGITS} digits and exponents up to {TOLERANCE_EXPONENT}")
    return tolerance


Tolerance = Annotated[Decimal, AfterValidator(_bounded)]
"""Exact decimal, best given as text: `"1e-20"`."""


class CompareRule(SpecData):
    """Rule by which a returned value counts as the expected one."""

    rule: Rule = "exact"
    """`exact`: the same types throughout, so `2.0` is not `2`, `True` not `1`, and a tuple not a list; nan equals nan.
    `equal`: `2.0` is `2`, a tuple with the same items is the list; a bool is still not a number. `close`: as `equal`,
    and numbers may differ by the tolerances, but an integer never matches another whole number. `any_order`: as
    `exact`, with the items of the outermost list in any order."""
    absolute: Tolerance = Field(default=Decimal(0), ge=0, allow_inf_nan=False)
    relative: Tolerance = Field(default=Decimal(0), ge=0, lt=1, allow_inf_nan=False)
    """Tolerance as a share of the expected number."""

    @property
    def tolerance(self) -> NumberTolerance:
        return NumberTolerance(self.absolute, self.relative)


def agree(expected: Value, got: Value, how: CompareRule) -> bool:
    match how.rule:
        case "equal":
            return _same(expected, got, NumberTolerance())
        case "close":
            return _same(expected, got, how.tolerance)
        case "any_order" if isinstance(expected, list | tuple) and type(got) is type(expected):
            return len(expected) == len(got) and Counter(map(literal, expected)) == Counter(map(literal, got))
        case _:
            return _same(expected, got, None)


class NumberTolerance(NamedTuple):
    absolute: Decimal = Decimal(0)
    relative: Decimal = Decimal(0)


def _same(expected: Value, got: Value, within: NumberTolerance | None) -> bool:
    """True if two values are the same by a rule, compared recursively to the maximum depth of values. With `within`
    None (but not with a tolerance of zero), types must match too."""
    key: Callable[[Value], object] = literal
    if within is None:
        alike = type(expected) is type(got)
    else:
        key, alike = _key, _family(expected) == _family(got)
    match expected, got:
        case _ if not alike:
            return False
        case DictPairs(ours), DictPairs(theirs):
            wanted, found = ({key(name): item for name, item in pairs} for pairs in (ours, theirs))
            return len(ours) == len(theirs) and (
                wanted.keys() == found.keys() and all(_same(item, found[name], within) for name, item in wanted.items())
            )
        case Elements(ours), Elements(theirs):
            return set(map(key, ours)) == set(map(key, theirs))
        case ((list() | tuple()), (list() | tuple())):
            return len(expected) == len(got) and all(map(_same, expected, got, repeat(within)))
        case _ if within is not None and _is_number(expected) and _is_number(got):
            return near(expected, got, within)
        case _:
            return expected == got or literal(expected) == literal(got)


def _key(value: Value) -> str:
    """Returns the text by which a dictionary or set item is looked up: equal numbers share one, without tolerance."""
    if type(value) is float and math.isfinite(value) and value == int(value):
        return literal(int(value))
    if type(value) is tuple:
        return "(" + ", ".join(map(_key, value)) + ")"
    return literal(value)


def _is_number(value: Value) -> TypeGuard[int | float | complex]:
    return isinstance(value, int | float | complex) and not isinstance(value, bool)


def _family(value: Value) -> str:
    if _is_number(value):
        return "number"
    return "list" if isinstance(value, tuple) else kind_of(value)


def near(expected: int | float | complex, got: int | float | complex, within: NumberTolerance) -> bool:
    """True if two numbers agree within the tolerances. Infinity is near only itself, and so is nan.

    An expected integer is exact: no other whole number is near it, however written (`5`, `5.0`, `5+0j`).
    """
    if isinstance(expected, complex) or isinstance(got, complex):
        return near(expected.real, got.real, within) and near(expected.imag, got.imag, within)
    if expected == got:
        return True
    if isinstance(expected, int) and (isinstance(got, int) or got.is_integer()):
        return False
    if not all(map(_is_finite, (expected, got))):
        return all(isinstance(number, float) and math.isnan(number) for number in (expected, got))
    return _within(decimal(expected), decimal(got), within)


def _is_finite(number: float) -> bool:
    """True for a finite float, and for an integer that is not too large to be near one."""
    return number.bit_length() <= INTEGER_BITS if isinstance(number, int) else math.isfinite(number)


def decimal(number: float) -> Decimal:
    """Returns a finite number as the decimal that Python writes."""
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


def _within(expected: Decimal, got: Decimal, within: NumberTolerance) -> bool:
    """True if two numbers differ by at most a tolerance; computed without rounding."""
    allowed = max(within.absolute, EXACT.multiply(within.relative, expected.copy_abs()))
    return EXACT.abs(EXACT.subtract(expected, got)) <= allowed


def printed(expected: str, got: str, rule: OutputRule, within: NumberTolerance) -> bool:
    """True if printed text matches. `lines`: except for blanks at line ends and trailing empty lines. `tokens`: the
    same words. `numbers`: the same words, decimal numbers within the tolerances, but a whole number matches no other
    one."""
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
                one == other or _near_words(one, other, within) for one, other in zip(ours, theirs, strict=True)
            )


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _near_words(expected: str, got: str, within: NumberTolerance) -> bool:
    if max(len(expected), len(got)) > NUMBER_CHARS or not NUMBER.fullmatch(expected) or not NUMBER.fullmatch(got):
        return False
    ours, theirs = Decimal(expected), Decimal(got)
    if WHOLE.fullmatch(expected) and theirs == theirs.to_integral_value(context=EXACT):
        return ours == theirs
    return _within(ours, theirs, within)
