"""Answers that a check should accept, and near misses that it should not. Pure: the verifier decides each.

Equal forms and near misses come from the text of the expected answer, by rules that know numbers, units, lists and
signs, but no algebra.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice

from verifiers.answers.spec import AnswerSpec
from verifiers.contract import examples as e

NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{1,40}|/\d{1,40})?")
LATEX = re.compile(r"(?P<sign>-?)\\[dt]?frac\{(?P<over>\d{1,40})\}\{(?P<under>\d{1,40})\}")
UNIT = re.compile(r"(?P<number>.*[\d}])\s+(?P<unit>[A-Za-z][A-Za-z0-9/^*]{0,20})")
INSIDE = re.compile(r"\d{1,9}")
WORD = re.compile(r"[A-Za-z]+")
MASSES = ("kg", "g", "mg", "t")


def examples(spec: AnswerSpec, answer: str | None, try_: e.AskVerifier) -> e.ExampleReport:
    """Verifies example answers derived from the expected one, and reports which are accepted. `answer` is the answer of
    the person who defined the job, if any."""
    inputs = [*e.of_the_job(spec, answer), *(_written(spec, one) for one in _around(spec))]
    tried = try_(e.distinct(inputs, _submitted(spec, spec.expected)))
    return e.ExampleReport(tuple(tried), e.refused(tried, e.EXPECTED, e.REFUSED))


def _written(spec: AnswerSpec, one: tuple[str, str, str]) -> e.ExampleInput:
    sort, what, text = one
    return e.ExampleInput("example" if sort == "example" else "mutant", what, spec, _submitted(spec, text))


def _submitted(spec: AnswerSpec, text: str) -> str:
    return f"\\boxed{{{text}}}" if spec.final == "boxed" else text


def _around(spec: AnswerSpec) -> Iterator[tuple[str, str, str]]:
    """Yields example answers derived from the expected answer of a spec: sort, description and text of each."""
    expected = spec.expected
    yield "example", e.EXPECTED, expected
    if spec.notation == "digits":
        value = int(expected)
        yield "example", "with a sign", f"+{value}" if value >= 0 else expected
        yield from _neighbours(Fraction(value), "", Fraction(0))
        yield "mutant", "as a decimal", f"{value}.0"
        yield "mutant", "with a word", f"{value} units"
    else:
        yield from _mathematics(spec)
    yield "mutant", "empty", ""


def _mathematics(spec: AnswerSpec) -> Iterator[tuple[str, str, str]]:
    found = UNIT.fullmatch(spec.expected.strip())
    bare, unit = (found["number"], found["unit"]) if found else (spec.expected.strip(), "")
    behind = f" {unit}" if unit else ""
    value = number_in(bare)
    if value is not None:
        yield from _forms(value, behind)
        yield from _edges(spec, value, behind)
        yield from _neighbours(value, behind, _reach(spec, value))
        if unit:
            sort = "mutant" if spec.units == "as_expected" else "example"
            yield sort, "without its unit", bare
            yield "mutant", "with a unit of another kind", f"{bare} {'m' if unit in MASSES else 'kg'}"
        elif spec.notation == "any" and spec.units != "ignored":
            yield "mutant", "with a unit", f"{bare} kg"
        return
    items = _items(bare)
    if items is not None:
        opening, parts, closing = items
        ordered = bool(opening) and spec.order != "any"
        if len(parts) > 1 and parts != parts[::-1]:
            sort = "mutant" if ordered and "{" not in opening else "example"
            yield sort, "in the opposite order", f"{opening}{', '.join(parts[::-1])}{closing}"
        yield "mutant", "without its last part", f"{opening}{', '.join(parts[:-1])}{closing}"
        yield "mutant", "with an extra part", f"{opening}{', '.join([*parts, '917'])}{closing}"
    elif WORD.fullmatch(bare) and (len(bare) > 1 or bare.isupper()):
        yield "mutant", "another choice", "B" if bare != "B" else "C"
        return
    else:
        yield "example", "in brackets", f"({bare})"
        yield "mutant", "plus one", f"{bare} + 1"
        yield "mutant", "twice as much", f"2*({bare})"
        if not re.search(r"\\pm|±|\{|=|<|>", bare):
            yield "mutant", "with the opposite sign", f"-({bare})"
    for place, digits in enumerate(islice(INSIDE.finditer(bare), 3), 1):
        more = f"{bare[: digits.start()]}{int(digits[0]) + 1}{bare[digits.end() :]}"
        yield "mutant", f"with {int(digits[0]) + 1} instead of {digits[0]}, number {place} in it", more


def _forms(value: Fraction, behind: str) -> Iterator[tuple[str, str, str]]:
    """Yields (sort, description, answer) for other notations of the same number. Without an exact decimal, the last is
    a mutant: the number rounded to two places. `behind` is appended to each answer, such as a unit."""
    sign = "-" if value < 0 else ""
    over, under = abs(value.numerator), value.denominator
    if under != 1:
        yield "example", "as a fraction", f"{sign}{over}/{under}{behind}"
        yield "example", "as a fraction in LaTeX", f"{sign}\\frac{{{over}}}{{{under}}}{behind}"
        yield "example", "as a fraction that is not in lowest terms", f"{sign}{2 * over}/{2 * under}{behind}"
    decimal = _decimal(value)
    if decimal is not None:
        yield "example", "as a decimal", f"{decimal if '.' in decimal else decimal + '.0'}{behind}"
    else:
        yield "mutant", "rounded to two places", f"{_rounded(value, 2)}{behind}"


def _edges(spec: AnswerSpec, value: Fraction, behind: str) -> Iterator[tuple[str, str, str]]:
    """Yields example answers just inside and just outside a tolerance, as decimals."""
    reach = _reach(spec, value)
    if reach <= 0:
        return
    # Approximate decimal order of the tolerance.
    magnitude = len(str(reach.numerator)) - len(str(reach.denominator))
    for sort, name, tenths in (("example", "nine", 9), ("mutant", "eleven", 11)):
        text = _rounded(value + reach * Fraction(tenths, 10), max(3, 3 - magnitude))
        yield sort, f"{name} tenths of the tolerance away", f"{text}{behind}"


def _reach(spec: AnswerSpec, value: Fraction) -> Fraction:
    """Returns the largest distance from the expected number that a spec's tolerances accept."""
    absolute, relative = (_fraction(text) or Fraction(0) for text in (spec.absolute, spec.relative))
    return max(absolute, relative * abs(value))


def _neighbours(value: Fraction, behind: str, reach: Fraction) -> Iterator[tuple[str, str, str]]:
    def text(number: Fraction) -> str:
        decimal = _decimal(number)
        return f"{decimal if decimal is not None else f'{number.numerator}/{number.denominator}'}{behind}"

    yield "mutant", "one more", text(value + 1)
    if value:
        yield "mutant", "with the opposite sign", text(-value)
        yield "mutant", "ten times as much", text(value * 10)
    if value.denominator != 1:
        yield "mutant", "inverted", text(1 / value)
    decimal = _decimal(value)
    if decimal is not None and "." in decimal:
        last = Fraction(1, 10 ** len(decimal.partition(".")[2]))
        yield "example" if last <= reach else "mutant", "one more in the last place", text(value + last)


def number_in(text: str) -> Fraction | None:
    """Returns the number that a text consists of, in digits or as a fraction; None for any other text."""
    if found := LATEX.fullmatch(text):
        return _fraction(f"{found['sign']}{found['over']}/{found['under']}")
    return _fraction(text) if NUMBER.fullmatch(text) else None


def _fraction(text: str) -> Fraction | None:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _decimal(value: Fraction) -> str | None:
    """Returns the exact decimal of a number, or None if it needs more than 40 places."""
    for places in range(41):
        if (value * 10**places).denominator == 1:
            return _rounded(value, places)
    return None


def _rounded(value: Fraction, places: int) -> str:
    digits = f"{abs(round(value * 10**places)):0{places + 1}d}"
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"


def _items(text: str) -> tuple[str, list[str], str] | None:
    """Splits a comma-separated list, tuple, set or interval into opening bracket, parts and closing bracket. The
    brackets of a bare list are empty. None for fewer than two parts, an empty part, or a closing bracket too many."""
    opening, closing = "", ""
    inner = text
    for one, other in (("\\{", "\\}"), ("{", "}"), ("(", ")"), ("[", "]"), ("(", "]"), ("[", ")")):
        if text.startswith(one) and text.endswith(other):
            opening, closing, inner = one, other, text[len(one) : -len(other)]
            break
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(inner):
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return None
        if character == "," and depth == 0:
            parts.append(inner[begin:place].strip())
            begin = place + 1
    parts.append(inner[begin:].strip())
    return (opening, parts, closing) if len(parts) > 1 and all(parts) else None
