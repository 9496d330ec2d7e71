"""Values that fulfil a claim, and the best of them, from Z3. The verifier looks at them again in its own arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from verifiers.proposals.found import Found
from verifiers.proposals.values import definition_text
from verifiers.smt.answers import Satisfiable
from verifiers.smt.bench import Bench, Finding, Possible
from verifiers.smt.division import defined
from verifiers.smt.errors import Undefined
from verifiers.smt.evaluate import evaluate
from verifiers.smt.problem import Problem
from verifiers.smt.script import Claim, Objective
from verifiers.smt.terms import BOOL, REAL, Term
from verifiers.smt.values import Interpretation
from verifiers.smt.z3_solver import Z3

LARGEST_STEP = 1 << 256


def values_for(asked: Problem, by: str, more_time: Callable[[], bool]) -> Found:
    claim = asked.claim
    must = _must(asked)
    bench = Bench(asked.spec.effort, asked.spec.second)
    finding = bench.look(must)
    if finding.possible is Possible.NO:
        return Found(by=by, note=f"{' and '.join(finding.said)}: no values fulfil it", hopeless=True)
    if finding.possible is Possible.UNKNOWN:
        return Found(by=by, note="not known whether any values fulfil it")
    found, note = finding.interpretation, ""
    if claim.objective is not None:
        found, note = _best(claim, claim.objective, must, finding, bench, asked.spec.effort, more_time)
    return Found(texts=(_written(claim, found),), by=by, note=note)


def _must(asked: Problem) -> list[Term]:
    claim = asked.claim
    terms = [each.term for each in claim.assertions]
    if asked.spec.division == "total":
        return terms
    also = [] if claim.objective is None else [claim.objective.term]
    return [*terms, defined(claim.terms, [*terms, *also])]


def _written(claim: Claim, values: Interpretation) -> str:
    return "\n".join(definition_text(each, values.get(each)) for each in claim.declared)


def _best(
    claim: Claim,
    objective: Objective,
    must: Sequence[Term],
    first: Finding,
    bench: Bench,
    effort: int,
    more_time: Callable[[], bool],
) -> tuple[Interpretation, str]:
    """Reals by Z3's simplex; whole numbers by steps that double while they succeed, and halve when they do not."""
    if objective.term.sort == REAL:
        answer = Z3(effort).best(must, objective.term, least=objective.least, asked=claim.declared)
        known = answer.satisfiable is Satisfiable.YES
        return (answer.interpretation, "") if known else (first.interpretation, "not shown to be the best")
    found = first.interpretation
    step = 1
    while more_time():
        reached = _reached(objective, found)
        if reached is None or step > LARGEST_STEP:
            return found, "nothing bounds it"
        wanted = reached - step if objective.least else reached + step
        finding = bench.look([*must, _beyond(claim, objective, wanted)]) if _fits(objective, wanted) else None
        if finding is not None and finding.possible is Possible.YES:
            found, step = finding.interpretation, step * 2
        elif step == 1:
            return found, ""
        else:
            step //= 2
    return found, "not shown to be the best"


def _reached(objective: Objective, found: Interpretation) -> int | None:
    try:
        value = evaluate(objective.term, found)
    except Undefined:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _fits(objective: Objective, wanted: int) -> bool:
    sort = objective.term.sort
    return sort.name != "BitVec" or 0 <= wanted < 1 << sort.width


def _beyond(claim: Claim, objective: Objective, wanted: int) -> Term:
    """At least as good as this."""
    sort = objective.term.sort
    bound = claim.terms.literal(Fraction(wanted) if sort == REAL else wanted, sort)
    less, more = ("bvule", "bvuge") if sort.name == "BitVec" else ("<=", ">=")
    return claim.terms.make(less if objective.least else more, (objective.term, bound), BOOL)
