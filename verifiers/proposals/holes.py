"""Small definitions for the single hole of an entailment, from its parameters and the numbers of the claim.

Boolean holes are tried as comparisons and as pairs of them joined, others as small terms. Each proposal was shown here
to make the goal follow; the verifier asks again, and asks more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from random import Random

from verifiers.proposals.shorter import some_value
from verifiers.proposals.terms import Small, operators_on, small_terms
from verifiers.proposals.values import plain
from verifiers.smt.bench import Bench, Possible
from verifiers.smt.language.elaborate import Definition
from verifiers.smt.language.errors import ClaimError
from verifiers.smt.language.render import name_text
from verifiers.smt.language.terms import BOOL, INT, REAL, Function, Terms, walk
from verifiers.smt.language.values import Interpretation
from verifiers.smt.problem import SmtProblem, split_goal
from verifiers.smt.supplied import check_language, read_definitions

MOST = 2
MOST_ATOMS = 60
SAMPLES = 16
MOST_SIZE = 5


def fillings(asked: SmtProblem, more_time: Callable[[], bool]) -> tuple[str, ...]:
    """Returns up to `MOST` definitions for a claim's hole that make its goal follow; empty unless there is exactly one
    hole. Raises ClaimError."""
    holes = asked.holes()
    if len(holes) != 1:
        return ()
    (hole,) = holes
    bench = Bench(asked.spec.effort, "none")
    found: list[str] = []
    for body in _bodies(asked, hole, more_time):
        if not more_time() or len(found) == MOST:
            break
        typed = " ".join(f"(a{place} {sort})" for place, sort in enumerate(hole.domain))
        text = f"(define-fun {name_text(hole.name)} ({typed}) {hole.range} {body})"
        if _serves(asked, text, bench):
            found.append(text)
    return tuple(found)


def _serves(asked: SmtProblem, text: str, bench: Bench) -> bool:
    """True if the claim's goal follows with this definition and its assumptions are satisfiable."""
    try:
        filled: dict[str, Definition] = read_definitions(text, asked.holes(), asked.claim.names)
        check_language(asked.spec, [each.body for each in filled.values()])
        claim = asked.filled(filled)
        assumed, goal = split_goal(claim, asked.spec.goal)
    except ClaimError:
        return False
    supplied, others = asked.parted(assumed)
    unsupported = claim.terms.negation(claim.terms.conjunction([each.term for each in supplied]))
    if supplied and bench.look([*(each.term for each in others), unsupported]).possible is not Possible.NO:
        return False
    assumptions = [each.term for each in assumed]
    if bench.look([*assumptions, claim.terms.negation(goal.term)]).possible is not Possible.NO:
        return False
    return not assumptions or bench.look(assumptions).possible is Possible.YES


def _bodies(asked: SmtProblem, hole: Function, more_time: Callable[[], bool]) -> Iterator[str]:
    terms = Terms()
    names = [Function(f"a{place}", (), sort) for place, sort in enumerate(hole.domain)]
    leaves = [Small(each.name, terms.make("apply", (), each.range, each)) for each in names]
    sorts = dict.fromkeys([hole.range, *hole.domain])
    mentioned = {
        (each.sort, each.payload): None
        for each in sorted(walk([one.term for one in asked.claim.assertions]), key=lambda one: one.number)
        if each.op == "value" and each.sort in sorts and each.sort != BOOL
    }
    for sort in sorts:
        if sort in (INT, REAL):
            mentioned.setdefault((sort, 0))
    for sort, value in mentioned:
        leaves.append(Small(plain(value, sort), terms.literal(value, sort)))
    operators = operators_on([sort for sort in sorts if sort != BOOL], forbidden=("div", "mod"))
    samples = _samples(names)
    atoms: list[str] = []
    for small, values in small_terms(terms, leaves, operators, samples, more_time, MOST_SIZE):
        if small.term.sort != hole.range:
            continue
        if hole.range == BOOL:
            if len(set(values)) == 1:
                continue  # constant on all samples
            if len(atoms) < MOST_ATOMS:
                atoms.append(small.text)
        yield small.text
        if hole.range == BOOL and len(atoms) >= MOST_ATOMS:
            break
    for first, second in itertools.combinations(atoms, 2):
        yield f"(and {first} {second})"
        yield f"(or {first} {second})"


def _samples(names: list[Function]) -> list[Interpretation]:
    random = Random(0)
    return [{each: some_value(each.range, random) for each in names} for _ in range(SAMPLES)]
