"""The four questions. Each takes a problem, a submission and a bench, and returns a judgement.

All raise ClaimError and CommandError for unreadable input, SolverBroke and OutOfMemory if nothing was decided.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from verifiers.contract.text import escaped
from verifiers.contract.verdict import Ground, Judgement
from verifiers.smt.bench import Bench, Possible, SolverFinding
from verifiers.smt.language.elaborate import Definition
from verifiers.smt.language.errors import ClaimError, FormError, Undefined
from verifiers.smt.language.evaluate import evaluate
from verifiers.smt.language.operators import coerced
from verifiers.smt.language.reader import SUBMISSION, Node, read
from verifiers.smt.language.render import TooLong, query_text, value_text
from verifiers.smt.language.script import Assertion, OptimizationGoal, SmtClaim
from verifiers.smt.language.terms import BOOL, QUANTIFIERS, Term, defined, walk
from verifiers.smt.language.values import Value
from verifiers.smt.problem import SmtProblem, split_goal
from verifiers.smt.supplied import check_language, read_definitions, read_term, refuse_command, seeing

MAX_QUERY = 5_000


def proved(reason: str, evidence: dict[str, Any]) -> Judgement:
    return Judgement(Ground.PROVED, reason, evidence)


def refuted(reason: str, evidence: dict[str, Any]) -> Judgement:
    return Judgement(Ground.REFUTED, reason, evidence)


def open_question(reason: str, evidence: dict[str, Any], *, exhausted: bool = False) -> Judgement:
    """Builds the judgement that nothing is proved or refuted; with `exhausted`, because the solvers' effort limit was
    reached."""
    if exhausted:
        return Judgement(Ground.TIMEOUT, f"{reason}: the effort allowed was not enough", evidence)
    return Judgement(Ground.UNKNOWN, reason, evidence)


def query(assertions: Sequence[Term]) -> dict[str, Any]:
    """Describes a solver query as evidence: the SHA-256 of its SMT-LIB text, and the text itself if short."""
    try:
        text = query_text(assertions)
    except TooLong:
        return {"too_long": True}
    known: dict[str, Any] = {"sha256": hashlib.sha256(text.encode()).hexdigest()}
    return {**known, "smt2": text} if len(text) <= MAX_QUERY else {**known, "characters": len(text)}


ENTAILED = "entailed"
"""Submission for a claim that leaves nothing to supply."""
MAX_NAMES = 30


def entails(problem: SmtProblem, submission: str, bench: Bench) -> Judgement:
    spec = problem.spec
    if not spec.holes:
        if submission.strip().lower() != ENTAILED:
            for node in read(submission, SUBMISSION):
                refuse_command(node)
            raise ClaimError(f"this claim has no holes: the only valid submission is `{ENTAILED}`")
        return entailment(problem.claim, problem, bench)
    found = read_definitions(submission, problem.holes(), problem.claim.names)
    check_language(spec, [each.body for each in found.values()])
    claim = problem.filled(seeing(found, spec.uses, problem.holes()))
    return entailment(claim, problem, bench)


def entailment(claim: SmtClaim, problem: SmtProblem, bench: Bench) -> Judgement:
    """Decides if a claim's assumptions imply its goal. Assumptions that contradict each other prove nothing."""
    terms = claim.terms
    assumed, goal = split_goal(claim, problem.spec.goal)
    supplied, others = problem.parted(assumed)
    unsupported = _unsupported(supplied, [each.term for each in others], claim, bench)
    if unsupported is not None:
        return unsupported
    assumptions = [each.term for each in assumed]
    against = [*assumptions, terms.negation(goal.term)]
    finding = bench.look(against)
    evidence: dict[str, Any] = {"solvers": finding.answers, "query": query(against)}
    safe = _safe(problem, claim, [*assumptions, goal.term])
    if finding.possible is Possible.YES and not finding.by_zero:
        if not finding.values and finding.answers.get("z3") != "sat":
            return open_question("cvc5 finds that it does not follow, but gives no values to confirm it", evidence)
        return refuted("it does not follow: a counter-example", {**evidence, **_seen(finding, "counterexample")})
    if finding.possible is Possible.UNKNOWN:
        return open_question("neither proved nor refuted", evidence, exhausted=finding.exhausted)
    dividing = _dividing(claim, bench, assumptions, safe)
    if dividing is not None:
        evidence["divisors"] = dividing.answers
        if dividing.possible is Possible.UNKNOWN:
            return open_question("not shown that no divisor is zero", evidence, exhausted=dividing.exhausted)
        if dividing.possible is Possible.YES:
            reason = "a divisor may be zero where the assumptions hold"
            return open_question(reason, {**evidence, **_seen(dividing, "divisor_zero")})
    if finding.possible is Possible.YES:
        return refuted("it does not follow: a counter-example", {**evidence, **_seen(finding, "counterexample")})
    if assumptions:
        consistent = bench.look(assumptions)
        evidence["assumptions"] = {**consistent.answers, **_seen(consistent, "example")}
        if consistent.possible is Possible.NO:
            core = bench.core({each.name: each.term for each in assumed})[:MAX_NAMES]
            return open_question(
                "vacuous: the assumptions contradict each other", {**evidence, "vacuous": True, "core": core}
            )
        if consistent.possible is Possible.UNKNOWN:
            reason = "not shown that the assumptions can hold together"
            return open_question(reason, evidence, exhausted=consistent.exhausted)
    if len(assumed) > 1:
        labelled = {**{each.name: each.term for each in assumed}, goal.name: terms.negation(goal.term)}
        evidence["core"] = bench.core(labelled)[:MAX_NAMES]
    return proved("the goal follows from the assumptions", {**evidence, **_proof(problem, bench, against)})


def _unsupported(
    supplied: Sequence[Assertion], others: Sequence[Term], claim: SmtClaim, bench: Bench
) -> Judgement | None:
    """Judges assumptions that mention a symbol which the submission fills in. Each must follow from `others`, those
    that mention none. Returns None if all do, else a refutation or an open judgement."""
    for each in supplied:
        against = [*others, claim.terms.negation(each.term)]
        finding = bench.look(against)
        name = escaped(each.name)
        evidence = {"assumption": name, "solvers": finding.answers, "query": query(against)}
        if finding.possible is Possible.YES:
            reason = f"{name}, which it fills in, does not follow from the other assumptions"
            return refuted(reason, {**evidence, **_seen(finding, "counterexample")})
        if finding.possible is Possible.UNKNOWN:
            reason = f"not shown that {name}, which it fills in, follows from the other assumptions"
            return open_question(reason, evidence, exhausted=finding.exhausted)
    return None


def model(problem: SmtProblem, submission: str, bench: Bench) -> Judgement:
    return _satisfies(problem, *_assigned(problem, submission), bench)


def optimum(problem: SmtProblem, submission: str, bench: Bench) -> Judgement:
    claim, values = _assigned(problem, submission)
    judgement = _satisfies(problem, claim, values, bench)
    if judgement.ground is not Ground.PROVED:
        return judgement
    objective, reached = problem.claim.objective, claim.objective
    if objective is None or reached is None:
        raise ClaimError("nothing is minimised or maximised")
    try:
        value = evaluate(reached.term)
    except Undefined as error:
        return open_question(f"the objective has no value here: {error}", judgement.evidence)
    assumptions = [each.term for each in problem.claim.assertions]
    safe = _safe(problem, problem.claim, [*assumptions, objective.term])
    against = [*assumptions, *([] if _is_true(safe) else [safe]), _better(problem.claim, objective, value)]
    finding = bench.look(against)
    evidence = {
        **judgement.evidence,
        "value": value_text(value, objective.term.sort),
        "solvers": finding.answers,
        "query": query(against),
    }
    if finding.possible is Possible.NO:
        evidence.update(_proof(problem, bench, against))
        return proved("every constraint holds, and nothing better is possible", evidence)
    if finding.possible is Possible.UNKNOWN or not finding.values:
        return open_question("not shown that nothing is better", evidence, exhausted=finding.exhausted)
    return refuted("not the best: better values are possible", {**evidence, **_seen(finding, "better")})


def equivalent(problem: SmtProblem, submission: str, bench: Bench) -> Judgement:
    spec, claim = problem.spec, problem.claim
    terms = claim.terms
    reference = claim.names.definitions[spec.reference]
    node = _body(submission, problem, reference)
    check_language(spec, [node])
    sees = frozenset(spec.uses) | {each.name for each in claim.declared}
    candidate = coerced(terms, claim.elaborator.term(node, sees=sees), reference.range)
    wanted = coerced(terms, claim.elaborator.term(reference.body), reference.range)
    if candidate is wanted and spec.copies == "refused":
        raise FormError("it is a copy of the reference")
    domain = [each.term for each in claim.assertions]
    against = [*domain, terms.negation(terms.make("=", (candidate, wanted), BOOL))]
    evidence: dict[str, Any] = {"query": query(against)}
    safe = _safe(problem, claim, [candidate])
    dividing = _dividing(claim, bench, domain, safe)
    if dividing is not None:
        evidence["divisors"] = dividing.answers
        if dividing.possible is Possible.YES:
            return refuted("it divides by zero", {**evidence, **_seen(dividing, "input")})
        if dividing.possible is Possible.UNKNOWN:
            return open_question("not shown that it never divides by zero", evidence, exhausted=dividing.exhausted)
    finding = bench.look(against)
    evidence["solvers"] = finding.answers
    if finding.possible is Possible.UNKNOWN:
        return open_question("neither proved equivalent nor distinguished", evidence, exhausted=finding.exhausted)
    if finding.possible is Possible.YES:
        if not finding.values:
            return open_question("cvc5 finds them different, but gives no input to confirm it", evidence)
        return refuted("another value for this input", {**evidence, **_told_apart(finding, candidate, wanted)})
    if domain:
        inhabited = bench.look(domain)
        evidence["domain"] = inhabited.answers
        if inhabited.possible is not Possible.YES:
            return open_question("not shown that there is any input", evidence, exhausted=inhabited.exhausted)
    return proved("the same value for every input", {**evidence, **_proof(problem, bench, against)})


def worth_asking(problem: SmtProblem, bench: Bench) -> None:
    """Raises ClaimError for a spec whose assumptions contradict each other, or that accepts any submission. An
    implication without holes, to be filled by submissions, is not checked here: its verdict says so itself."""
    spec, claim = problem.spec, problem.claim
    terms = claim.terms
    asserted = [each.term for each in claim.assertions]
    match spec.question:
        case "entails":
            if not spec.holes:
                return
            assumed, goal = split_goal(claim, spec.goal)
            asserted = [each.term for each in assumed]
            if bench.look([*asserted, terms.negation(goal.term)]).possible is Possible.NO:
                raise ClaimError("it holds for any definition of the holes")
        case "model":
            if bench.look([terms.negation(terms.conjunction(asserted))]).possible is Possible.NO:
                raise ClaimError("every value is valid")
        case "equivalent":
            reference = claim.elaborator.term(claim.names.definitions[spec.reference].body)
            dividing = _dividing(claim, bench, asserted, _safe(problem, claim, [reference]))
            if dividing is not None and dividing.possible is not Possible.NO:
                raise ClaimError("the reference may divide by zero")
    if asserted and bench.look(asserted).possible is Possible.NO:
        raise ClaimError("its assertions are unsatisfiable")


def _assigned(problem: SmtProblem, submission: str) -> tuple[SmtClaim, dict[str, str]]:
    """Fills a claim with the submitted values. Returns it with the values of constants as text. Raises FormError if one
    is not a literal."""
    given = read_definitions(submission, problem.claim.declared, problem.claim.names)
    check_language(problem.spec, [each.body for each in given.values()])
    found = seeing(given, problem.spec.uses, problem.claim.declared)
    claim = problem.filled(found)
    values: dict[str, str] = {}
    for function in claim.declared:
        body = claim.elaborator.check(found[function.name])
        if function.domain:
            if any(each.op in QUANTIFIERS for each in walk([body])):
                raise FormError(f"{escaped(function.name)} is defined with a quantifier")
            continue
        if any(each.op not in ("value", "constant_array", "store") for each in walk([body])):
            raise FormError(f"the value of {escaped(function.name)} is not a literal")
        if len(values) < MAX_NAMES:
            values[function.name] = value_text(evaluate(body), function.range)
    return claim, values


def _satisfies(problem: SmtProblem, claim: SmtClaim, values: dict[str, str], bench: Bench) -> Judgement:
    """Decides if every assertion of a claim holds with the submitted values, by our own evaluation and Z3's simplifier.
    Solvers are asked only about quantifiers."""
    evidence: dict[str, Any] = {"values": values, "assertions": len(claim.assertions)}
    by_solver: dict[str, dict[str, str]] = {}
    for each in claim.assertions:
        name, at = escaped(each.name), {**evidence, "false": each.name}
        try:
            holds = evaluate(each.term)
        except Undefined as error:
            if error.by_zero:
                return refuted(f"{name} divides by zero there", at)
            if not error.quantified:
                return open_question(f"{name} has no value there: {error}", at)
            held = claim.terms.conjunction([_safe(problem, claim, [each.term]), each.term])
            finding = bench.look([claim.terms.negation(held)])
            at["solvers"] = finding.answers
            if finding.possible is Possible.YES:
                return refuted(f"{name} is false of these values", at)
            if finding.possible is Possible.UNKNOWN:
                reason = f"not known whether {name} is true of these values"
                return open_question(reason, at, exhausted=finding.exhausted)
            if len(by_solver) < MAX_NAMES:
                by_solver[each.name] = finding.answers
            continue
        bench.agree(each.term, bool(holds))
        if not holds:
            return refuted(f"{name} is false of these values", at)
    if by_solver:
        evidence["by_solver"] = by_solver
    return proved("every assertion is true of these values", evidence)


def _safe(problem: SmtProblem, claim: SmtClaim, roots: Sequence[Term]) -> Term:
    """Returns the condition that no divisor in the given terms is zero; simply true if the spec's division is total."""
    if problem.spec.division == "total":
        return claim.terms.boolean(True)
    return defined(claim.terms, roots)


def _dividing(claim: SmtClaim, bench: Bench, domain: Sequence[Term], safe: Term) -> SolverFinding | None:
    """Asks the solvers if a divisor can be zero where `domain` holds. Returns None without asking if `safe`, the
    condition that none is zero, is simply true."""
    return None if _is_true(safe) else bench.look([*domain, claim.terms.negation(safe)])


def _is_true(term: Term) -> bool:
    return term.op == "value" and term.payload is True


def _better(claim: SmtClaim, objective: OptimizationGoal, value: Value) -> Term:
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise ClaimError("the objective is not a number")
    sort = objective.term.sort
    bound = claim.terms.literal(value, sort)
    less, more = ("bvult", "bvugt") if sort.name == "BitVec" else ("<", ">")
    return claim.terms.make(less if objective.least else more, (objective.term, bound), BOOL)


def _body(submission: str, problem: SmtProblem, reference: Definition) -> Node:
    """Parses a submission as a term: the bare term, or the body of a definition with the reference's sort. Raises
    ClaimError for a definition with other parameters or another sort."""
    nodes = read(submission, SUBMISSION)
    if len(nodes) == 1:
        found = problem.as_definition(nodes[0])
        if found is not None:
            if found.parameters or found.range != reference.range:
                raise ClaimError("a definition whose parameters or sort differ from the reference's")
            return found.body
    return read_term(submission)


def _proof(problem: SmtProblem, bench: Bench, against: Sequence[Term]) -> dict[str, Any]:
    return {} if problem.spec.proof == "none" else {"proof": bench.proof(against)}


def _seen(finding: SolverFinding, key: str) -> dict[str, Any]:
    """Returns the variable values that a solver found, in a dict under `key`; empty if it found none."""
    return {key: finding.values} if finding.possible is Possible.YES else {}


def _told_apart(finding: SolverFinding, candidate: Term, wanted: Term) -> dict[str, Any]:
    """Describes an input on which two terms differ: its values, and the value of each term there."""
    found: dict[str, Any] = {"input": finding.values}
    for name, term in (("submitted", candidate), ("reference", wanted)):
        try:
            found[name] = value_text(evaluate(term, finding.interpretation), term.sort)
        except Undefined:
            continue
    return found
