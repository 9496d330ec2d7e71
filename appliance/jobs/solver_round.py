"""The solvers' round of a job, in which every proposal goes to the spec's verifier.

Invariants: bounded in seconds and in proposals; an infrastructure error says nothing about the question. A round ends
at the first verified proposal, or once a tool has shown that there is no answer.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from appliance.records.jobs import Job
from common.plugins.installed import PluginError
from common.plugins.table import OpenTable
from runtime.errors import InfrastructureError, SandboxError
from runtime.sandbox import SessionPool
from verifiers.contract.protocols import Proposal, Solver, SolverChecker, SolverTools
from verifiers.contract.text import clip
from verifiers.contract.verdict import Ground, Outcome, SpecProblem, Verdict
from verifiers.registry import kind_of
from verifiers.registry.spec import Spec

ROUND_SECONDS = 120.0
"""Time limit in seconds for all solvers of a job, verification included; a running verification is completed."""
BUDGET_SHARE = 0.5
"""Maximum share of a job's budget; the rest is the policy model's."""
OWN_SHARE = 0.7
"""Share of the remaining time for one solver, so that it can still report its progress."""
MOST_PROPOSALS = 64
SOLVERS: OpenTable[Callable[[Spec, str, bool], Iterable[Solver]]] = OpenTable("solvers", {})
"""Solvers for jobs of any kind, from admitted distributions; a kind names its own."""
NOT_DECIDED = (Ground.UNKNOWN, Ground.TIMEOUT, Ground.MEMORY)
"""Verdict grounds that say nothing against an answer."""
SHOWN_CHARS = 120
SHOWN_LINES = 8


class ProposalTry(NamedTuple):
    proposal: Proposal
    verdict: Verdict


@dataclass
class SolverRound:
    tries: list[ProposalTry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """One sentence each from solvers that proposed nothing, or nothing more."""
    hopeless: str = ""
    """Proof that there is no answer; empty if none."""
    undecided: str = ""
    """Reason why the verifier could not decide on the only possible answers."""
    unusable: str = ""
    """Fault of the spec that prevents any verification."""
    broken: str = ""
    """Latest infrastructure error."""
    cut_short: bool = False
    """True if an infrastructure error ended a solver before it reported."""

    @property
    def solved(self) -> ProposalTry | None:
        return next((one for one in self.tries if one.verdict.passed), None)

    @property
    def nothing_decided(self) -> bool:
        """True if every proposal of the solvers met an infrastructure error: no answer can be verified here."""
        return bool(self.tries) and all(one.verdict.outcome is Outcome.INFRA_ERROR for one in self.tries)

    @property
    def lines(self) -> tuple[str, ...]:
        """Solvers' proposals and notes as lines for people. Contains others' text: to be escaped."""
        shown = [
            f"{one.proposal.by}: answer {on_one_line(one.proposal.text)}: {reason_of(one.verdict)}"
            for one in self.tries
        ]
        left = len(shown) - SHOWN_LINES
        more = [f"and {left} more proposals of solvers"] if left > 0 else []
        return (*shown[:SHOWN_LINES], *more, *self.notes[:SHOWN_LINES])


def on_one_line(answer: str) -> str:
    """Returns the beginning of an answer with its line ends as blanks. Contains others' text: to be escaped."""
    return clip(" ".join(answer.split()), SHOWN_CHARS)


def solvers_for(job: Job) -> list[Solver]:
    """Returns the solvers that apply to a job's spec, cheapest first. Cheap: nothing is started."""
    known, asked = kind_of(job.spec).solvers, (job.spec, job.question, bool(job.files))
    found = list(known.load()(*asked)) if known is not None else []
    return found + [solver for name in SOLVERS for solver in named_solvers(name, asked)]


def named_solvers(name: str, asked: tuple[Spec, str, bool]) -> list[Solver]:
    """Returns the solvers of one row from outside for a spec, its question and whether files came with it. Raises
    PluginError if one does not have the row's name, which the artifact then tells."""
    made = list(SOLVERS[name](*asked))
    if others := [solver.name for solver in made if solver.name != name]:
        raise PluginError(f"plug-in {name}: its solver is named {others[0]!r}", hint="docs/extending.md")
    return made


def try_solvers(
    job: Job,
    solvers: Sequence[Solver],
    checker: SolverChecker,
    sessions: SessionPool | None,
    files: Mapping[str, bytes],
    *,
    stop_reason: Callable[[], str],
    say: Callable[[str, int], None],
    clock: Callable[[], float],
) -> SolverRound:
    """Runs the solvers on a job, verifying their proposals, and returns the result. Never raises for their failures."""
    found = SolverRound()
    left = ROUND_SECONDS
    if job.budget_seconds is not None:
        left = min(left, BUDGET_SHARE * max(0.0, job.budget_seconds - job.spent_seconds))
    end = clock() + left

    def over() -> bool:
        return bool(stop_reason()) or clock() >= end or len(found.tries) >= MOST_PROPOSALS

    for solver in solvers:
        if over() or found.solved or found.hopeless or found.undecided or found.unusable:
            break
        say(f"solver {solver.name}", len(found.tries))
        tools = SolverTools(checker, sessions, files, job.id, over)
        begun = len(found.tries)
        try:
            left = max(1.0, OWN_SHARE * (end - clock()))
            with contextlib.closing(solver.proposals(job.spec, job.question, tools, left)) as proposals:
                _verify(proposals, solver.at_once, job, checker, found, over, say)
        except SandboxError as error:
            found.broken = with_hint(str(error), error.hint)
            found.cut_short |= isinstance(error, InfrastructureError)
        if not tools.notes and not found.solved and clock() >= end:
            tools.notes.append("it ran out of time")
        found.notes += [f"{solver.name}: {note}" for note in tools.notes]
        found.hopeless = tools.hopeless
        mine = [one.verdict for one in found.tries[begun:]]
        if tools.complete and mine and all(verdict.outcome is Outcome.FAIL for verdict in mine):
            open_ones = [verdict for verdict in mine if verdict.ground in NOT_DECIDED]
            if open_ones:
                found.undecided = f"{solver.name}: {reason_of(open_ones[0])}"
            else:
                found.hopeless = f"{solver.name}: {reason_of(mine[0])}"
    return found


def _verify(
    proposals: Iterator[Proposal],
    at_once: int,
    job: Job,
    checker: SolverChecker,
    found: SolverRound,
    over: Callable[[], bool],
    say: Callable[[str, int], None],
) -> None:
    """Verifies new proposals in batches of `at_once`, until one passes, the verifier breaks, or `over` is true. Adds
    the results to `found`, and reports progress through `say`."""
    known = {one.proposal.text for one in found.tries}
    while not over() and (batch := list(itertools.islice(proposals, at_once))):
        fresh = [each for each in batch if each.text not in known]
        known.update(each.text for each in fresh)
        results = checker.check_many([(job.spec, each.text) for each in fresh])
        tries = [ProposalTry(each, one) for each, one in zip(fresh, results, strict=True) if isinstance(one, Verdict)]
        found.tries += tries
        say(f"verifying proposals of {batch[-1].by}", len(found.tries))
        problem = next((one for one in results if isinstance(one, SpecProblem)), None)
        if problem is not None:
            found.unusable = with_hint(problem.message, problem.hint)
        broken = [one.verdict for one in tries if one.verdict.outcome is Outcome.INFRA_ERROR]
        if broken:
            found.broken = with_hint(broken[-1].reason, broken[-1].evidence.get("hint"))
        if found.solved or broken or problem is not None:
            return


def with_hint(message: str, hint: object) -> str:
    return f"{message} ({hint})" if hint else message


def reason_of(verdict: Verdict) -> str:
    """Returns the verdict's reason, with its counterexample if short."""
    witness = verdict.evidence.get("counterexample")
    if not isinstance(witness, dict) or not witness:
        return verdict.reason
    named = ", ".join(f"{name} = {value}" for name, value in list(witness.items())[:4])
    return f"{verdict.reason}, {clip(named, SHOWN_CHARS)}"
