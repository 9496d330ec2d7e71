"""Integers and rationals that make a predicate true, from Z3: the predicate becomes a claim of ours, text by text.

Only what means the same in both languages is translated: sums, products, comparisons, whole powers, and remainder and
quotient by a positive constant, where rounding down (Python) and Euclid (SMT-LIB) agree.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from verifiers.answers.grammar.nodes import (
    And,
    Call,
    Comparison,
    Condition,
    Expression,
    Negation,
    Not,
    Or,
    Power,
    Product,
    Quotient,
    Sum,
    Symbol,
)
from verifiers.answers.grammar.predicates import parse_predicate
from verifiers.answers.grammar.rational import rational
from verifiers.proposals.claims import BY
from verifiers.proposals.found import Found
from verifiers.smt.bench import Bench, Possible
from verifiers.smt.errors import ClaimError
from verifiers.smt.reader import CLAIM, read
from verifiers.smt.script import read_claim
from verifiers.spec import PredicateSpec

MOST = 3
MOST_POWER = 12
EFFORT = 4_000_000
NONE = {"integer": "no integer", "rational": "no rational number", "real": "no real number"}
"""What is impossible for all real numbers is so for the rational ones."""


class NoWord(Exception):
    """Nothing in SMT-LIB says this."""


def by_z3(spec: PredicateSpec, question: str, more_time: Callable[[], bool]) -> Found:
    if spec.domain not in ("integer", "rational", "real"):
        return Found(by=BY, note="there are no complex numbers in SMT-LIB")
    whole = spec.domain == "integer"
    try:
        said = _condition(parse_predicate(spec.predicate, spec.variable), whole=whole)
    except NoWord as reason:
        return Found(by=BY, note=f"not put to it: {reason}")
    texts: list[str] = []
    sort = "Int" if whole else "Real"
    bench = Bench(EFFORT, "if_available")
    lines = [f"(declare-const {spec.variable} {sort})", f"(assert {said})"]
    while len(texts) < MOST and more_time():
        try:
            claim = read_claim(read("\n".join(lines), CLAIM))
        except ClaimError as error:
            return Found(by=BY, texts=tuple(texts), note=f"not put to it: {error}")
        finding = bench.look([each.term for each in claim.assertions])
        if finding.possible is Possible.NO and not texts:
            note = f"{' and '.join(finding.said)}: {NONE[spec.domain]} makes it true"
            return Found(by=BY, note=note, hopeless=True)
        value = next(iter(finding.interpretation.values()), None) if finding.possible is Possible.YES else None
        if isinstance(value, bool) or not isinstance(value, int | Fraction):
            return Found(by=BY, texts=tuple(texts), note="" if texts else "no value was found")
        texts.append(str(value))
        lines.append(f"(assert (not (= {spec.variable} {_number(Fraction(value), whole=whole)})))")
    return Found(by=BY, texts=tuple(texts))


def _condition(condition: Condition, *, whole: bool) -> str:
    match condition:
        case Not(of):
            return f"(not {_condition(of, whole=whole)})"
        case And(parts):
            return f"(and {' '.join(_condition(part, whole=whole) for part in parts)})"
        case Or(parts):
            return f"(or {' '.join(_condition(part, whole=whole) for part in parts)})"
        case Comparison(operands, relations):
            words = [_term(operand, whole=whole) for operand in operands]
            pairs = zip(words, relations, words[1:], strict=False)
            said = [_compared(first, relation, second) for first, relation, second in pairs]
            return said[0] if len(said) == 1 else f"(and {' '.join(said)})"


def _compared(first: str, relation: str, second: str) -> str:
    if relation == "!=":
        return f"(not (= {first} {second}))"
    return f"({'=' if relation == '==' else relation} {first} {second})"


def _term(node: Expression, *, whole: bool) -> str:
    exact = rational(node)
    if exact is not None:
        return _number(exact, whole=whole)
    match node:
        case Symbol(name):
            return name
        case Negation(of):
            return f"(- {_term(of, whole=whole)})"
        case Sum(parts):
            return f"(+ {' '.join(_term(part, whole=whole) for part in parts)})"
        case Product(parts):
            return f"(* {' '.join(_term(part, whole=whole) for part in parts)})"
        case Quotient(above, below) if not whole and rational(below):
            return f"(/ {_term(above, whole=whole)} {_term(below, whole=whole)})"
        case Power(base, exponent):
            times = rational(exponent)
            if times is not None and times.denominator == 1 and 1 <= times <= MOST_POWER:
                return f"(* {' '.join([_term(base, whole=whole)] * int(times))} 1{'' if whole else '.0'})"
        case Call("abs", (of,)):
            inside = _term(of, whole=whole)
            zero = "0" if whole else "0.0"
            return f"(ite (< {inside} {zero}) (- {inside}) {inside})"
        case Call("mod" | "floordiv" as name, (above, below)) if whole:
            by = rational(below)
            if by is not None and by.denominator == 1 and by > 0:
                return f"({'mod' if name == 'mod' else 'div'} {_term(above, whole=whole)} {by})"
    raise NoWord(f"{type(node).__name__.lower()} of this sort")


def _number(value: Fraction, *, whole: bool) -> str:
    if whole:
        if value.denominator != 1:
            raise NoWord("a fraction among integers")
        return f"(- {-value})" if value < 0 else str(value)
    size = f"{abs(value.numerator)}.0"
    size = size if value.denominator == 1 else f"(/ {size} {value.denominator}.0)"
    return f"(- {size})" if value < 0 else size
