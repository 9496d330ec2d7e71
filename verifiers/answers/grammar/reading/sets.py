r"""Brackets of answers: points, intervals, sets with their members or condition, sets of numbers.

A pair in round brackets is read by its context (infinity, a union, `x \in`), then by the `Hint`, and otherwise as a
point. Square brackets around two numbers are an interval, around more a tuple, around one a group.
"""

from __future__ import annotations

from typing import cast

from verifiers.answers.grammar import values as v
from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.lists import NODES, SETS, builder
from verifiers.answers.grammar.nodes import ZERO
from verifiers.answers.grammar.reader import Hint, Reader
from verifiers.answers.grammar.reading.items import MAX_ITEMS, MIXED, elements, items, joiner, listed, run_on, scalar
from verifiers.answers.grammar.reading.names import subscript
from verifiers.answers.grammar.reading.quantities import has_items

ROWS = Hint("tuple", "tuple")


def empty_set(reader: Reader) -> v.Value:
    reader.take()
    return v.FiniteSet(())


def number_set(reader: Reader) -> v.Value:
    r"""Reads the sign of a set of numbers, `\mathbb{Z}`, `\mathbb{N}_0` or `\mathbb{R}^+`."""
    name = reader.take().text[-1]
    part = _half(reader, name)
    if part is not None:
        return part
    if reader.accept("^"):
        braced = reader.accept("{")
        sign = reader.take().text
        if braced:
            reader.expect("}")
        if sign != "+" or name not in "ZR":
            raise reader.error("a power of a set of numbers")
        return v.NumberSet("N") if name == "Z" else v.Interval(ZERO, v.Infinity(1), False, False)
    if reader.accept("_"):
        if name != "N" or subscript(reader) != "0":
            raise reader.error("a set of numbers with a subscript")
        return v.NumberSet("N0")
    return v.NumberSet(cast("v.NumberSetName", name))


HALVES = {">": (True, False), ">=": (True, True), "<": (False, False), "<=": (False, True)}


def _half(reader: Reader, name: str) -> v.Value | None:
    r"""Reads the condition of `\mathbb{R}_{\ge 0}` or `\mathbb{Z}^{> 0}`; None if none comes next."""
    texts = reader.texts(5)
    if texts[:1] not in (["_"], ["^"]) or texts[1] != "{" or texts[3:] != ["0", "}"] or texts[2] not in HALVES:
        return None
    above, closed = HALVES[texts[2]]
    if name not in "ZR" or (name == "Z" and not above):
        raise reader.error("a part of a set of numbers")
    reader.index += 5
    if name == "Z":
        return v.NumberSet("N0" if closed else "N")
    infinity = v.Infinity(1 if above else -1)
    return v.Interval(ZERO, infinity, closed, False) if above else v.Interval(infinity, ZERO, False, closed)


def square_bracket(reader: Reader) -> v.Value:
    """Reads a value that begins with a square bracket: an interval, a list, the rows of a matrix, or an expression."""
    if reader.at("[") and not has_items(reader) and reader.hint.square_pair != "tuple":
        restore = reader.saved()
        try:
            return scalar(reader)
        except TooLargeError:
            raise
        except GrammarError:
            restore()
    outer = reader.hint
    opening = reader.take().text
    if opening == "[" and reader.at("["):
        reader.hint = ROWS
    found = elements(reader)
    reader.hint = outer
    return _closed(reader, opening, found)


def angle_bracket(reader: Reader) -> v.Value | None:
    r"""Reads a vector in angle brackets, `\langle 1, 2 \rangle`; None if no list follows the bracket."""
    if not has_items(reader):
        return None
    reader.take()
    found = elements(reader)
    if not reader.accept("\\rangle"):
        reader.take()
        raise reader.error("an unclosed bracket")
    return v.Tuple(tuple(found))


def round_bracket(reader: Reader) -> v.Value:
    """Reads a point, an interval, a bracketed set, digits with a base, or an expression that begins with a bracket."""
    if has_items(reader):
        reader.take()
        return _closed(reader, "(", elements(reader))
    based = _based(reader)
    if based is not None:
        return based
    restore = reader.saved()
    try:
        return scalar(reader)
    except TooLargeError:
        raise
    except GrammarError as first:
        restore()
        try:
            reader.take()
            inside = reader.nested(reader.operand)
            reader.expect(")")
        except GrammarError as second:
            raise (first if first.position >= second.position else second) from None
        if not isinstance(inside, (*SETS, v.Tuple, v.Matrix)):
            raise first
        return inside


def _based(reader: Reader) -> v.BaseNumber | None:
    """Reads digits with their base, `(101)_2`, which would otherwise be a product; None if none come next."""
    texts = reader.texts(4)
    if texts[2:] != [")", "_"] or not texts[1].isdigit():
        return None
    base = reader.tokens[reader.index + 4 : reader.index + 7]
    braced = base[0].text == "{" and len(base) == 3 and base[2].text == "}"
    number = base[1] if braced else base[0]
    if number.integer and 2 <= number.value <= 36 and all(int(digit) < number.value for digit in texts[1]):
        reader.index += 7 if braced else 5
        return v.BaseNumber(texts[1], int(number.value))
    return None


def _closed(reader: Reader, opening: str, found: list[v.Value]) -> v.Value:
    """Reads the closing bracket, and builds a point, an interval or a matrix from the bracket's items. Raises
    GrammarError if they fit none."""
    closing = reader.accept(")", "]", "[")
    if not closing:
        raise reader.error("an unclosed bracket")
    pair = opening + closing
    if len(found) == 2:
        low, high = (item.of if isinstance(item, v.Scalar) else item for item in found)
        infinite = isinstance(low, v.Infinity) or isinstance(high, v.Infinity)
        if pair == "()":
            wanted = infinite or reader.hint.round_pair == "interval"
        else:
            wanted = pair != "[]" or infinite or reader.hint.square_pair == "interval"
        ends = (v.Infinity, *NODES)
        if wanted and isinstance(low, ends) and isinstance(high, ends):
            closed_low, closed_high = opening == "[", closing == "]"
            if (isinstance(low, v.Infinity) and (closed_low or low.sign > 0)) or (
                isinstance(high, v.Infinity) and (closed_high or high.sign < 0)
            ):
                raise reader.error("infinity as a closed end")
            return v.Interval(low, high, closed_low, closed_high)
    if pair not in ("()", "[]"):
        raise reader.error("mismatched brackets")
    if pair == "[]" and len(found) == 1 and isinstance(found[0], v.Quantity | v.BaseNumber):
        return found[0]
    if pair == "[]" and all(isinstance(item, v.Tuple) for item in found):
        rows = [item.items for item in found if isinstance(item, v.Tuple)]
        entries = [[entry.of for entry in row if isinstance(entry, v.Scalar)] for row in rows]
        if all(len(row) == len(rows[0]) == len(read) for row, read in zip(rows, entries, strict=True)):
            return v.Matrix(tuple(map(tuple, entries)))
    return v.Tuple(tuple(found))


def braces(reader: Reader) -> v.Value:
    """Reads a set in braces: its listed members, or a condition."""
    closing = "\\}" if reader.take().text == "\\{" else "}"
    if reader.accept(closing):
        return v.FiniteSet(())
    return reader.up_to(closing, lambda: _members(reader), bars=1)


def _members(reader: Reader) -> v.Value:
    found = items(reader)
    signs: set[str] = set()
    while reader.at(",", ";", "and"):
        signs.add(joiner(reader))
        if {",", ";"} <= signs:
            raise reader.error(MIXED)
        if reader.at("\\dots"):
            run_on(reader, found)
            break
        found.extend(items(reader))
        if len(found) > MAX_ITEMS:
            raise TooLargeError(f"more than {MAX_ITEMS} items")
    if reader.accept("|", "\\mid", ":"):
        reader.bars = 0
        return builder(found, listed(reader), reader.error)
    if any(isinstance(item, v.RelationValue | v.Named) for item in found):
        raise reader.error("a set of equations")
    return v.FiniteSet(tuple(found))
