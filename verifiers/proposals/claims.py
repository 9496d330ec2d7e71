"""Proposals for SMT claims by Z3: entailment, satisfying values, optimal values, a small term.

The verifier checks Z3's values again in its own arithmetic.

Small definitions for the single hole of an entailment, from its parameters and the numbers of the claim.

Boolean holes are tried as comparisons and as pairs of them joined, others as small terms. Each proposal was shown here
to make the goal follow; the verifier asks again, and asks more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from random import Random

from verifiers.contract.protocols import ProposalReply
from verifiers.proposals.shorter import shorter_terms, some_value
from verifiers.proposals.terms import Small, definition_text, operators_on, plain, small_terms
from verifiers.smt.bench import Bench, Possible, tools
from verifiers.smt.language.elaborate import Definition
from verifiers.smt.language.errors import ClaimError, SolverBroke, Undefined
from verifiers.smt.language.evaluate import evaluate
from verifiers.smt.language.render import name_text
from verifiers.smt.language.script import OptimizationGoal, SmtClaim
from verifiers.smt.language.terms import BOOL, INT, REAL, Function, Term, Terms, defined, walk
from verifiers.smt.language.values import Interpretation
from verifiers.smt.problem import Satisfiable, SmtProblem, problem, split_goal
from verifiers.smt.questions import ENTAILED
from verifiers.smt.spec import SmtSpec
from verifiers.smt.supplied import check_language, read_definitions
from verifiers.smt.z3_solver import Z3

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
