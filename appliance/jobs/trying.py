"""The solvers' round of a job: each proposal goes to the spec's verifier, and nothing else counts.

What always holds: bounded, in seconds and in proposals. What broke says nothing of the question. A round ends at the
first proposal that is verified, or when a tool has shown that there is no answer.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from appliance.jobs.solvers.solver import Desk, JobSolver, Proposal, Tools
from appliance.records import Job
from runtime.errors import SandboxError
from runtime.sandbox import SessionPool
from verifiers.verdict import Ground, Outcome, Verdict
from verifiers.workers.jobs import BAD_SPEC

ROUND_SECONDS = 120.0
"""For all solvers of a job together, the verifier included; proposals that are being verified come to their end."""
BUDGET_SHARE = 0.5
"""Of a job's budget at most: the rest is the policy model's."""
OWN_SHARE = 0.7
"""Of what is left, for a solver itself: then it can still say how far it came."""
MOST_PROPOSALS = 64
NOT_DECIDED = (Ground.UNKNOWN, Ground.TIMEOUT, Ground.MEMORY)
"""A failure on one of these says nothing against an answer."""
SHOWN_CHARS = 120
SHOWN_LINES = 8


class Try(NamedTuple):
    proposal: Proposal
    verdict: Verdict


@dataclass
class Round:
    tries: list[Try] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Of solvers that proposed nothing, or no more; a sentence each."""
    hopeless: str = ""
    """How it was shown that there is no answer."""
    undecided: str = ""
    """Why the verifier could not decide about the only answers that there can be."""
    unusable: str = ""
    """What is wrong with the spec, where nothing can be verified against it."""
    broken: str = ""
    """What the last failure of the infrastructure was."""

    @property
    def solved(self) -> Try | None:
        return next((one for one in self.tries if one.verdict.passed), None)

    @property
    def nothing_decided(self) -> bool:
        """Whether the verifier was asked and never came to a verdict: then nobody's answer can be verified here."""
        return bool(self.tries) and all(one.verdict.outcome is Outcome.INFRA_ERROR for one in self.tries)

    @property
    def lines(self) -> tuple[str, ...]:
        """What was tried, for people. Holds what others wrote: to be escaped."""
        shown = [f"{one.proposal.by}: {clipped(one.proposal.text)!r}: {reason_of(one.verdict)}" for one in self.tries]
        left = len(shown) - SHOWN_LINES
        more = [f"and {left} more proposals of solvers"] if left > 0 else []
        return (*shown[:SHOWN_LINES], *more, *self.notes[:SHOWN_LINES])


def try_solvers(
    job: Job,
    solvers: Sequence[JobSolver],
    desk: Desk,
    sessions: SessionPool | None,
    files: Mapping[str, bytes],
    *,
    keep_on: Callable[[], str],
    say: Callable[[str, int], None],
    clock: Callable[[], float],
) -> Round:
    """Never raises for what a solver met."""
    found = Round()
    left = ROUND_SECONDS
    if job.budget_seconds is not None:
        left = min(left, BUDGET_SHARE * max(0.0, job.budget_seconds - job.spent_seconds))
    end = clock() + left

    def over() -> bool:
        return bool(keep_on()) or clock() >= end or len(found.tries) >= MOST_PROPOSALS

    for solver in solvers:
        if over() or found.solved or found.hopeless or found.undecided or found.unusable:
            break
        say(f"solver {solver.name}", len(found.tries))
        tools = Tools(desk, sessions, files, over)
        begun = len(found.tries)
        try:
            with contextlib.closing(solver.proposals(job, tools, max(1.0, OWN_SHARE * (end - clock())))) as proposals:
                _verified(proposals, solver.at_once, job, desk, found, over, say)
        except SandboxError as error:
            found.broken = f"{error}" + (f" ({error.hint})" if error.hint else "")
        if not tools.notes and not found.solved and clock() >= end:
            tools.notes.append("its time was over")
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


def _verified(
    proposals: Iterator[Proposal],
    at_once: int,
    job: Job,
    desk: Desk,
    found: Round,
    over: Callable[[], bool],
    say: Callable[[str, int], None],
) -> None:
    """Has them verified, a few at a time, until one passes or the verifier breaks."""
    known = {one.proposal.text for one in found.tries}
    while not over() and (batch := list(itertools.islice(proposals, at_once))):
        fresh = [each for each in batch if each.text not in known]
        known.update(each.text for each in fresh)
        verdicts = desk.check_many([(job.spec, each.text) for each in fresh])
        found.tries += map(Try, fresh, verdicts)
        say(f"verifying what {batch[-1].by} proposes", len(found.tries))
        for verdict in verdicts:
            if BAD_SPEC in verdict.evidence:
                found.unusable = _with_hint(str(verdict.evidence[BAD_SPEC]), verdict)
            elif verdict.outcome is Outcome.INFRA_ERROR:
                found.broken = _with_hint(verdict.reason, verdict)
        if found.solved or any(verdict.outcome is Outcome.INFRA_ERROR for verdict in verdicts):
            return


def _with_hint(reason: str, verdict: Verdict) -> str:
    hint = verdict.evidence.get("hint")
    return f"{reason} ({hint})" if hint else reason


def clipped(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."


def reason_of(verdict: Verdict) -> str:
    """The verdict's sentence, with the witness where there is one that is short."""
    witness = verdict.evidence.get("counterexample")
    if not isinstance(witness, dict) or not witness:
        return verdict.reason
    named = ", ".join(f"{name} = {value}" for name, value in list(witness.items())[:4])
    return f"{verdict.reason}, {clipped(named)}"
