"""Description of a predicate spec, the statement parts its verdict covers, and example values. Pure.

Examples are small numbers and numbers near the predicate's own constants; the verifier decides each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from verifiers.contract.examples import AskVerifier, CheckedExample, ExampleInput, ExampleReport, of_the_job
from verifiers.contract.statement import Verified, decided, not_covered
from verifiers.contract.text import one_line, quoted
from verifiers.contract.verdict import Verdict
from verifiers.predicate.spec import PredicateSpec

NUMBERS = {
    "integer": "whole numbers: 0, 1, -1, 2, ...; 1/2 and 0.5 are excluded",
    "rational": "rational numbers; sqrt(2) is excluded",
    "real": "real numbers: integers, fractions, decimals and roots; i is excluded",
    "complex": "complex numbers, including i",
}


def explain(spec: PredicateSpec) -> Iterator[str]:
    yield f"The answer must be a value of {spec.variable} that makes this true:"
    yield from quoted(spec.predicate)
    yield f"{spec.variable} ranges over the {NUMBERS[spec.domain]}."
    yield "Any such value is accepted; it need not be the only one."


def visible(spec: PredicateSpec) -> str:
    return spec.predicate


def parts(spec: PredicateSpec, verdict: Verdict) -> Verified:
    what = f"that the answer, put in for {spec.variable}, makes `{one_line(spec.predicate)}` true"
    only = not_covered("that there is no other answer", "the check takes any value that makes it true")
    return Verified([decided(verdict, what, f"among {spec.domain} numbers")], [only])


INSIDE = re.compile(r"\d{1,9}")
MOST_VALUES = 150
SHOWN_VALUES = 8


def examples(spec: PredicateSpec, answer: str | None, try_: AskVerifier) -> ExampleReport:
    """Verifies small numbers and those near a predicate's constants; reports accepted values, rejected neighbours."""
    values = values_for(spec)
    own = try_(of_the_job(spec, answer))
    tried = try_([ExampleInput("example", "a sample value", spec, _text(value)) for value in values])
    other = [ExampleInput("mutant", what, spec, text) for what, text in _outside(spec)]
    roots = [ExampleInput("example", "a sample value", spec, text) for text in _roots(spec)]
    found = try_(other)
    rooted = [one for one in try_(roots) if one.accepted]
    accepted = [(value, one) for value, one in zip(values, tried, strict=False) if one.accepted]
    rejected = [(value, one) for value, one in zip(values, tried, strict=False) if not one.accepted]
    ends = [value for value, _ in accepted] or [Fraction(0)]
    near = sorted(rejected, key=lambda pair: (min(abs(pair[0] - end) for end in ends), pair[0]))[:SHOWN_VALUES]
    shown = [one for _, one in sorted(accepted, key=lambda pair: (abs(pair[0]), pair[0]))[:SHOWN_VALUES]]
    all_of_them = (*own, *shown, *rooted, *(_changed(one) for _, one in sorted(near, key=lambda pair: pair[0])), *found)
    count = f"{len(accepted)} of {len(tried)} sample values are accepted"
    low, high = (min(values), max(values)) if values else (Fraction(0), Fraction(0))
    notes = (f"{count}, from {_text(low)} to {_text(high)}",)
    if tried and 2 * len(accepted) > len(tried):
        return ExampleReport(all_of_them, (f"WEAK: {count}: a guess may pass",), notes)
    return ExampleReport(all_of_them, (), notes)


def _changed(tried: CheckedExample) -> CheckedExample:
    return tried._replace(given=tried.given._replace(sort="mutant", what="a value next to an accepted one"))


def values_for(spec: PredicateSpec) -> list[Fraction]:
    """Returns sample answers for a predicate, at most MOST_VALUES, ascending: integers, halves, quotients."""
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
    """Returns irrational or imaginary sample answers for a predicate, if the domain has them."""
    if spec.domain in ("integer", "rational"):
        return []
    constants = sorted({int(found[0]) for found in INSIDE.finditer(spec.predicate)} - {0, 1})[:6]
    roots = [f"{sign}sqrt({number})" for number in constants for sign in ("", "-")]
    return [*roots, "i", "-i"] if spec.domain == "complex" else roots


def _text(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


def _outside(spec: PredicateSpec) -> Iterator[tuple[str, str]]:
    if spec.domain == "integer":
        yield "a fraction, outside the domain", "1/2"
    if spec.domain in ("integer", "rational"):
        yield "a root, outside the domain", "sqrt(2)"
    if spec.domain != "complex":
        yield "an imaginary number, outside the domain", "i"
    yield "the question itself, unsolved", spec.variable
    yield "empty", ""
