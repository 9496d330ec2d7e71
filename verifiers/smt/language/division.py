"""Divisions by zero in a term: the condition under which none of them matters.

In SMT-LIB a division of integers or reals by zero has some, arbitrary, value: `x/0 = 1` is satisfiable. A proof that
relies on it proves nothing useful. The condition respects the guards of the language from left to right: in `(and
(distinct d 0) (> (/ n d) 1))` the divisor is safe. Under a quantifier it must be safe for every value.
"""

from __future__ import annotations

from collections.abc import Sequence

from verifiers.smt.language.terms import BOOL, Term, Terms, walk

PARTIAL = frozenset({"/", "div", "mod"})


def defined(terms: Terms, roots: Sequence[Term]) -> Term:
    """Returns the condition for no relevant division by zero in the terms. Raises ClaimError if too large."""
    known: dict[int, Term] = {}
    for term in walk(roots):
        known[term.number] = _condition(terms, term, [known[each.number] for each in term.args])
    return terms.conjunction([known[root.number] for root in roots])


def _condition(terms: Terms, term: Term, parts: list[Term]) -> Term:
    match term.op:
        case "and":
            return _in_order(terms, term.args, parts)
        case "or":
            return _in_order(terms, [terms.negation(each) for each in term.args], parts)
        case "ite":
            condition = term.args[0]
            yes = terms.implication(condition, parts[1])
            no = terms.implication(terms.negation(condition), parts[2])
            return terms.conjunction([parts[0], yes, no])
        case "forall" | "exists":
            (inner,) = parts
            return inner if inner.op == "value" else terms.make("forall", (inner,), BOOL, term.payload)
        case op if op in PARTIAL:
            return terms.conjunction([*parts, _not_zero(terms, term.args[1])])
        case _:
            return terms.conjunction(parts)


def _in_order(terms: Terms, guards: Sequence[Term], parts: Sequence[Term]) -> Term:
    """Returns the condition that each part holds where all guards before it hold."""
    made = terms.boolean(True)
    for guard, part in zip(reversed(guards), reversed(parts), strict=True):
        made = terms.conjunction([part, terms.implication(guard, made)])
    return made


def _not_zero(terms: Terms, divisor: Term) -> Term:
    if divisor.op == "value":
        return terms.boolean(bool(divisor.payload))
    zero = terms.literal(0, divisor.sort)
    return terms.negation(terms.make("=", (divisor, zero), BOOL))
