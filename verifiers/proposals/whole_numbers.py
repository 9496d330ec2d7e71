"""Integers and rationals that make a predicate true, from Z3: the predicate is translated into an SMT-LIB claim.

Only constructs with the same meaning in both languages are translated: sums, products, comparisons, integer powers, and
remainder and quotient by a positive constant, where floor division (Python) and Euclidean division (SMT-LIB) agree.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.rational import rational
from verifiers.answers.grammar.reading.plain import parse_predicate
from verifiers.contract.protocols import ProposalReply
from verifiers.predicate.spec import PredicateSpec
from verifiers.proposals.claims import BY
from verifiers.proposals.terms import plain
from verifiers.smt.bench import Bench, Possible
from verifiers.smt.language.errors import ClaimError
from verifiers.smt.language.reader import CLAIM, read
from verifiers.smt.language.script import read_claim
from verifiers.smt.language.terms import INT, REAL, Sort

MOST = 3
MOST_POWER = 12
EFFORT = 4_000_000
NONE = {"integer": "no integer", "rational": "no rational number", "real": "no real number"}
"""Note for an unsatisfiable predicate, by domain. Impossible for all reals implies impossible for rationals."""


class NoWord(Exception):
    """The predicate cannot be expressed in SMT-LIB."""


def by_z3(spec: PredicateSpec, question: str, more_time: Callable[[], bool]) -> ProposalReply:
    if spec.domain not in ("integer", "rational", "real"):
        return ProposalReply(by=BY, note="SMT-LIB has no complex numbers")
    sort = INT if spec.domain == "integer" else REAL
    try:
        constraint = _condition(parse_predicate(spec.predicate, spec.variable), sort)
    except NoWord as reason:
        return ProposalReply(by=BY, note=f"not translated: {reason}")
    texts: list[str] = []
    bench = Bench(EFFORT, "if_available")
    lines = [f"(declare-const {spec.variable} {sort})", f"(assert {constraint})"]
    while len(texts) < MOST and more_time():
        try:
            claim = read_claim(read("\n".join(lines), CLAIM))
        except ClaimError as error:
            return ProposalReply(by=BY, texts=tuple(texts), note=f"not translated: {error}")
        finding = bench.look([each.term for each in claim.assertions])
        if finding.possible is Possible.NO and not texts:
            note = f"{' and '.join(finding.answers)}: {NONE[spec.domain]} makes it true"
            return ProposalReply(by=BY, note=note, hopeless=True)
        value = next(iter(finding.interpretation.values()), None) if finding.possible is Possible.YES else None
        if isinstance(value, bool) or not isinstance(value, int | Fraction):
            return ProposalReply(by=BY, texts=tuple(texts), note="" if texts else "no value was found")
        texts.append(str(value))
        lines.append(f"(assert (not (= {spec.variable} {_number(Fraction(value), sort)})))")
    return ProposalReply(by=BY, texts=tuple(texts))


def _condition(condition: n.Condition, sort: Sort) -> str:
    match condition:
        case n.Not(of):
            return f"(not {_condition(of, sort)})"
        case n.And(parts):
            return f"(and {' '.join(_condition(part, sort) for part in parts)})"
        case n.Or(parts):
            return f"(or {' '.join(_condition(part, sort) for part in parts)})"
        case n.ComparisonNode(operands, relations):
            terms = [_term(operand, sort) for operand in operands]
            pairs = zip(terms, relations, terms[1:], strict=False)
            comparisons = [_compared(first, relation, second) for first, relation, second in pairs]
            return comparisons[0] if len(comparisons) == 1 else f"(and {' '.join(comparisons)})"


def _compared(first: str, relation: str, second: str) -> str:
    if relation == "!=":
        return f"(not (= {first} {second}))"
    return f"({'=' if relation == '==' else relation} {first} {second})"


def _term(node: n.Expression, sort: Sort) -> str:
    exact = rational(node)
    if exact is not None:
        return _number(exact, sort)
    match node:
        case n.Symbol(name):
            return name
        case n.Negation(of):
            return f"(- {_term(of, sort)})"
        case n.Sum(parts):
            return f"(+ {' '.join(_term(part, sort) for part in parts)})"
        case n.Product(parts):
            return f"(* {' '.join(_term(part, sort) for part in parts)})"
        case n.Quotient(above, below) if sort == REAL and rational(below):
            return f"(/ {_term(above, sort)} {_term(below, sort)})"
        case n.Power(base, exponent):
            times = rational(exponent)
            if times is not None and times.denominator == 1 and 1 <= times <= MOST_POWER:
                return f"(* {' '.join([_term(base, sort)] * int(times))} {_number(Fraction(1), sort)})"
        case n.FunctionCall("abs", (of,)):
            inside = _term(of, sort)
            return f"(ite (< {inside} {_number(Fraction(0), sort)}) (- {inside}) {inside})"
        case n.FunctionCall("mod" | "floordiv" as name, (above, below)) if sort == INT:
            by = rational(below)
            if by is not None and by.denominator == 1 and by > 0:
                return f"({'mod' if name == 'mod' else 'div'} {_term(above, sort)} {by})"
    raise NoWord(f"{type(node).__name__.lower()} of this sort")


def _number(value: Fraction, sort: Sort) -> str:
    if sort == INT and value.denominator != 1:
        raise NoWord("a fraction among integers")
    return plain(int(value) if sort == INT else value, sort)
