"""Answers that a check should accept, and others close to them that it should not. Pure: a verifier decides on each.

Equal forms and neighbours of the expected answer are made from its text, by rules that know numbers, units, lists and
signs and no algebra; for a predicate small numbers and those near its own constants are gone through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from appliance.jobs.probes import Probe, Shown, Tried, Try, distinct, refused
from verifiers.answers.spec import AnswerSpec, ExactSpec, ExpressionSpec, IntegerSpec, PredicateSpec

NUMBER = re.compile(r"(?P<sign>[+-]?)(?:(?P<whole>\d{1,40})(?:\.(?P<part>\d{1,40}))?(?:/(?P<under>\d{1,40}))?)")
LATEX = re.compile(r"(?P<sign>-?)\\[dt]?frac\{(?P<over>\d{1,40})\}\{(?P<under>\d{1,40})\}")
UNIT = re.compile(r"(?P<number>.*[\d}])\s+(?P<unit>[A-Za-z][A-Za-z0-9/^*]{0,20})")
INSIDE = re.compile(r"\d{1,9}")
WORD = re.compile(r"[A-Za-z]+")
MOST_VALUES = 150
SHOWN_VALUES = 8
MASSES = ("kg", "g", "mg", "t")
ITSELF = "the expected answer as it stands"
Text = ExactSpec | IntegerSpec | ExpressionSpec | AnswerSpec


def known_answer(spec: Text, answer: str | None, try_: Try) -> Shown:
    """For a check that has an expected answer. `answer` is what the job came to, if anything."""
    probes = [*_found(spec, answer), *(_written(spec, one) for one in _around(spec))]
    tried = try_(distinct(probes, _submitted(spec, spec.expected)))
    first = refused(tried, ITSELF, "THE EXPECTED ANSWER ITSELF IS REFUSED")
    return Shown(tuple(one.look() for one in tried), first)


def _found(spec: Text | PredicateSpec, answer: str | None) -> list[Probe]:
    return [Probe("example", "the answer that the job came to", spec, answer)] if answer is not None else []


def _written(spec: Text, one: tuple[str, str, str]) -> Probe:
    sort, what, text = one
    return Probe("example" if sort == "example" else "mutant", what, spec, _submitted(spec, text))


def _submitted(spec: Text, text: str) -> str:
    return f"\\boxed{{{text}}}" if isinstance(spec, AnswerSpec) and spec.final == "boxed" else text


def _around(spec: Text) -> Iterator[tuple[str, str, str]]:
    """Sort, how it is made, and the text of the answer."""
    expected = spec.expected
    yield "example", ITSELF, expected
    match spec:
        case ExactSpec():
            yield "example", "with white space around it", f"  {expected} "
            yield "mutant", "in other letters, large for small", expected.swapcase()
            yield "mutant", "without its last character", expected[:-1]
            yield "mutant", "with a full stop behind it", f"{expected}."
        case IntegerSpec():
            value = int(expected)
            yield "example", "with a sign", f"+{value}" if value >= 0 else expected
            yield from _neighbours(Fraction(value), "", Fraction(0))
            yield "mutant", "as a decimal", f"{value}.0"
            yield "mutant", "with a word", f"{value} units"
        case AnswerSpec() | ExpressionSpec():
            yield from _mathematics(spec)
    yield "mutant", "nothing at all", ""


def _mathematics(spec: AnswerSpec | ExpressionSpec) -> Iterator[tuple[str, str, str]]:
    bare, unit = _unit(spec.expected.strip())
    behind = f" {unit}" if unit else ""
    value = number_in(bare)
    if value is not None:
        yield from _forms(value, behind)
        if isinstance(spec, AnswerSpec):
            yield from _edges(spec, value, behind)
        yield from _neighbours(value, behind, _reach(spec, value))
        if unit:
            sort = "mutant" if isinstance(spec, AnswerSpec) and spec.units == "as_expected" else "example"
            yield sort, "without its unit", bare
            yield "mutant", "with a unit of another kind", f"{bare} {'m' if unit in MASSES else 'kg'}"
        elif isinstance(spec, AnswerSpec) and spec.units != "ignored":
            yield "mutant", "with a unit", f"{bare} kg"
        return
    items = _items(bare)
    if items is not None:
        opening, parts, closing = items
        ordered = bool(opening) and not (isinstance(spec, AnswerSpec) and spec.order == "any")
        if len(parts) > 1 and parts != parts[::-1]:
            sort = "mutant" if ordered and "{" not in opening else "example"
            yield sort, "in the opposite order", f"{opening}{', '.join(parts[::-1])}{closing}"
        yield "mutant", "without its last part", f"{opening}{', '.join(parts[:-1])}{closing}"
        yield "mutant", "with a further part", f"{opening}{', '.join([*parts, '917'])}{closing}"
    elif WORD.fullmatch(bare) and (len(bare) > 1 or bare.isupper()):
        yield "mutant", "another choice", "B" if bare != "B" else "C"
        return
    else:
        yield "example", "in brackets", f"({bare})"
        yield "mutant", "plus one", f"{bare} + 1"
        yield "mutant", "twice as much", f"2*({bare})"
        if not re.search(r"\\pm|±|\{|=|<|>", bare):
            yield "mutant", "with the opposite sign", f"-({bare})"
    for place, found in enumerate(INSIDE.finditer(bare)):
        if place < 3:
            more = f"{bare[: found.start()]}{int(found[0]) + 1}{bare[found.end() :]}"
            yield "mutant", f"with {int(found[0]) + 1} in the place of {found[0]}, its number {place + 1}", more


def _forms(value: Fraction, behind: str) -> Iterator[tuple[str, str, str]]:
    """The same number, written otherwise."""
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
    """On both sides of a tolerance."""
    reach = _reach(spec, value)
    if reach <= 0:
        return
    places = max(3, 3 - _magnitude(reach))
    inside, outside = (
        _rounded(value + reach * Fraction(9, 10), places),
        _rounded(value + reach * Fraction(11, 10), places),
    )
    yield "example", "nine tenths of the tolerance away", f"{inside}{behind}"
    yield "mutant", "eleven tenths of the tolerance away", f"{outside}{behind}"


def _reach(spec: AnswerSpec | ExpressionSpec, value: Fraction) -> Fraction:
    """How far away a decimal is accepted."""
    if not isinstance(spec, AnswerSpec):
        return Fraction(0)
    absolute, relative = _fraction(spec.absolute), _fraction(spec.relative)
    return max(absolute or Fraction(0), (relative or Fraction(0)) * abs(value))


def _neighbours(value: Fraction, behind: str, reach: Fraction) -> Iterator[tuple[str, str, str]]:
    def text(number: Fraction) -> str:
        decimal = _decimal(number)
        return f"{decimal if decimal is not None else f'{number.numerator}/{number.denominator}'}{behind}"

    yield "mutant", "one more", text(value + 1)
    if value:
        yield "mutant", "with the opposite sign", text(-value)
        yield "mutant", "ten times as much", text(value * 10)
    if value.denominator != 1:
        yield "mutant", "upside down", text(1 / value)
    decimal = _decimal(value)
    if decimal is not None and "." in decimal:
        last = Fraction(1, 10 ** len(decimal.partition(".")[2]))
        yield "example" if last <= reach else "mutant", "one more in the last place", text(value + last)


def number_in(text: str) -> Fraction | None:
    """The number that this text is, where it is written plainly."""
    if found := LATEX.fullmatch(text):
        number = Fraction(int(found["over"]), int(found["under"])) if int(found["under"]) else None
    elif found := NUMBER.fullmatch(text):
        if found["under"] is not None and (found["part"] is not None or not int(found["under"])):
            return None
        number = Fraction(int(found["whole"])) + (
            Fraction(int(found["part"]), 10 ** len(found["part"])) if found["part"] else 0
        )
        number /= int(found["under"]) if found["under"] else 1
    else:
        return None
    return -number if number is not None and found["sign"] == "-" else number


def _fraction(text: str) -> Fraction | None:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _decimal(value: Fraction) -> str | None:
    """Exactly; None where it does not end, or only after 40 places."""
    for places in range(41):
        if (value * 10**places).denominator == 1:
            return _rounded(value, places)
    return None


def _rounded(value: Fraction, places: int) -> str:
    digits = f"{abs(round(value * 10**places)):0{places + 1}d}"
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"


def _magnitude(value: Fraction) -> int:
    """Of a positive number: the power of ten that it has about."""
    return len(str(value.numerator)) - len(str(value.denominator))


def _unit(text: str) -> tuple[str, str]:
    found = UNIT.fullmatch(text)
    return (found["number"], found["unit"]) if found else (text, "")


def _items(text: str) -> tuple[str, list[str], str] | None:
    """Opening, parts and closing of a list, a tuple, a set or an interval; None for anything else."""
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


# predicates


def value_that_fits(spec: PredicateSpec, answer: str | None, try_: Try) -> Shown:
    """Goes through small numbers and those near the predicate's constants, and shows what is accepted and what is next
    to that and is not."""
    values = values_for(spec)
    tried = try_([Probe("example", "a value that was tried", spec, _text(value)) for value in values])
    other = [Probe("mutant", what, spec, text) for what, text in _outside(spec)]
    roots = [Probe("example", "a value that was tried", spec, text) for text in _roots(spec)]
    found = try_([*_found(spec, answer), *other])
    rooted = [one for one in try_(roots) if one.accepted]
    accepted = [(value, one) for value, one in zip(values, tried, strict=False) if one.accepted]
    rejected = [(value, one) for value, one in zip(values, tried, strict=False) if not one.accepted]
    ends = [value for value, _ in accepted] or [Fraction(0)]
    near = sorted(rejected, key=lambda pair: (min(abs(pair[0] - end) for end in ends), pair[0]))[:SHOWN_VALUES]
    shown = [one for _, one in sorted(accepted, key=lambda pair: (abs(pair[0]), pair[0]))[:SHOWN_VALUES]]
    looks = (
        *(one.look() for one in found if one.probe.sort == "example"),
        *(one.look() for one in (*shown, *rooted)),
        *(_changed(one).look() for _, one in sorted(near, key=lambda pair: pair[0])),
        *(one.look() for one in found if one.probe.sort == "mutant"),
    )
    count = f"{len(accepted)} of the {len(tried)} values that were tried are accepted"
    low, high = (min(values), max(values)) if values else (Fraction(0), Fraction(0))
    notes = (f"{count}, from {_text(low)} to {_text(high)}",)
    if tried and 2 * len(accepted) > len(tried):
        return Shown(looks, (f"WEAK: {count}: a guess would do",), notes)
    return Shown(looks, (), notes)


def _changed(tried: Tried) -> Tried:
    return tried._replace(probe=tried.probe._replace(sort="mutant", what="a value next to one that is accepted"))


def values_for(spec: PredicateSpec) -> list[Fraction]:
    """At most MOST_VALUES, ascending: whole ones, and halves and quotients where the domain has them."""
    constants = sorted({int(found[0]) for found in INSIDE.finditer(spec.predicate)})[:12]
    values = dict.fromkeys(Fraction(number) for number in range(-10, 11))
    for constant in constants:
        values |= dict.fromkeys(Fraction(constant + step) for step in range(-2, 11))
        values[Fraction(-constant)] = None
    for over in constants[:6]:
        for less in [0, *constants[:6]]:
            for under in filter(None, constants[:6]):
                quotient = Fraction(over - less, under)
                if quotient.denominator == 1 or spec.domain != "integer":
                    values |= {quotient: None, -quotient: None}
    if spec.domain != "integer":
        values |= dict.fromkeys(Fraction(number, 2) for number in (-3, -1, 1, 3))
    return sorted(list(values)[:MOST_VALUES])


def _roots(spec: PredicateSpec) -> list[str]:
    """Values that no fraction is, where the domain has them."""
    if spec.domain in ("integer", "rational"):
        return []
    constants = sorted({int(found[0]) for found in INSIDE.finditer(spec.predicate)} - {0, 1})[:6]
    roots = [f"{sign}sqrt({number})" for number in constants for sign in ("", "-")]
    return [*roots, "i", "-i"] if spec.domain == "complex" else roots


def _text(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


def _outside(spec: PredicateSpec) -> Iterator[tuple[str, str]]:
    if spec.domain == "integer":
        yield "a fraction, which is outside of the domain", "1/2"
    if spec.domain in ("integer", "rational"):
        yield "a root, which is outside of the domain", "sqrt(2)"
    if spec.domain != "complex":
        yield "an imaginary number, which is outside of the domain", "i"
    yield "the question itself, with nothing worked out", spec.variable
    yield "nothing at all", ""
