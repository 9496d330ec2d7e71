"""Proposals for SMT claims by Z3: entailment, satisfying values, optimal values, a small term.

The verifier checks Z3's values again in its own arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from verifiers.contract.proposal import ProposalReply
from verifiers.proposals.holes import fillings
from verifiers.proposals.shorter import shorter_terms
from verifiers.proposals.values import definition_text
from verifiers.smt.answers import Satisfiable
from verifiers.smt.bench import Bench, Possible, tools
from verifiers.smt.language.division import defined
from verifiers.smt.language.errors import ClaimError, SolverBroke, Undefined
from verifiers.smt.language.evaluate import evaluate
from verifiers.smt.language.script import OptimizationGoal, SmtClaim
from verifiers.smt.language.terms import BOOL, REAL, Term
from verifiers.smt.language.values import Interpretation
from verifiers.smt.problem import SmtProblem, problem
from verifiers.smt.questions import ENTAILED
from verifiers.smt.spec import SmtSpec
from verifiers.smt.z3_solver import Z3

BY = f"z3 {tools().get('z3', '(not installed)')}"
LARGEST_STEP = 1 << 256


def by_z3(spec: SmtSpec, question: str, more_time: Callable[[], bool]) -> ProposalReply:
    try:
        asked = problem(spec)
        match spec.question:
            case "entails" if not spec.holes:
                return ProposalReply(texts=(ENTAILED,), by=BY, complete=True)
            case "entails":
                return _searched(fillings(asked, more_time), "definitions")
            case "equivalent":
                return _searched(shorter_terms(asked, more_time), "terms")
            case _:
                return _values_for(asked, more_time)
    except (ClaimError, SolverBroke) as error:
        return ProposalReply(by=BY, note=str(error))


def _searched(texts: tuple[str, ...], what: str) -> ProposalReply:
    note = "" if texts else f"no small {what} fit"
    return ProposalReply(texts=texts, by=f"enumeration with {BY}", note=note)


def _values_for(asked: SmtProblem, more_time: Callable[[], bool]) -> ProposalReply:
    claim = asked.claim
    must = _must(asked)
    bench = Bench(asked.spec.effort, asked.spec.second)
    finding = bench.look(must)
    if finding.possible is Possible.NO:
        return ProposalReply(by=BY, note=f"{' and '.join(finding.answers)}: no values satisfy it", hopeless=True)
    if finding.possible is Possible.UNKNOWN:
        return ProposalReply(by=BY, note="unknown if any values satisfy it")
    found, note = finding.interpretation, ""
    if claim.objective is not None:
        found, note = _best(asked, claim.objective, must, finding.interpretation, bench, more_time)
    text = "\n".join(definition_text(each, found.get(each)) for each in claim.declared)
    return ProposalReply(texts=(text,), by=BY, note=note)


def _must(asked: SmtProblem) -> list[Term]:
    claim = asked.claim
    terms = [each.term for each in claim.assertions]
    if asked.spec.division == "total":
        return terms
    also = [] if claim.objective is None else [claim.objective.term]
    return [*terms, defined(claim.terms, [*terms, *also])]


def _best(
    asked: SmtProblem,
    objective: OptimizationGoal,
    must: Sequence[Term],
    found: Interpretation,
    bench: Bench,
    more_time: Callable[[], bool],
) -> tuple[Interpretation, str]:
    """Improves values while the objective gets better and time is left. Returns them, with a note unless they are
    optimal. Reals are optimized by Z3's simplex, integers by steps that double on success and halve on failure."""
    claim = asked.claim
    if objective.term.sort == REAL:
        answer = Z3(asked.spec.effort).best(must, objective.term, least=objective.least, asked=claim.declared)
        known = answer.satisfiable is Satisfiable.YES
        return (answer.interpretation, "") if known else (found, "not proved optimal")
    step = 1
    while more_time():
        reached = _reached(objective, found)
        if reached is None or step > LARGEST_STEP:
            return found, "unbounded"
        wanted = reached - step if objective.least else reached + step
        finding = bench.look([*must, _beyond(claim, objective, wanted)]) if _fits(objective, wanted) else None
        if finding is not None and finding.possible is Possible.YES:
            found, step = finding.interpretation, step * 2
        elif step == 1:
            return found, ""
        else:
            step //= 2
    return found, "not proved optimal"


def _reached(objective: OptimizationGoal, found: Interpretation) -> int | None:
    try:
        value = evaluate(objective.term, found)
    except Undefined:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _fits(objective: OptimizationGoal, wanted: int) -> bool:
    sort = objective.term.sort
    return sort.name != "BitVec" or 0 <= wanted < 1 << sort.width


def _beyond(claim: SmtClaim, objective: OptimizationGoal, wanted: int) -> Term:
    """Returns the constraint that the objective is at least as good as `wanted`."""
    sort = objective.term.sort
    bound = claim.terms.literal(Fraction(wanted) if sort == REAL else wanted, sort)
    less, more = ("bvule", "bvuge") if sort.name == "BitVec" else ("<=", ">=")
    return claim.terms.make(less if objective.least else more, (objective.term, bound), BOOL)
