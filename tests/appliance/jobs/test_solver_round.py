"""A round of solvers: what it says of a question whose only answer was refuted, and of one that nobody decided."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import pytest

from appliance.jobs.solver_round import try_solvers
from appliance.records.jobs import Job, JobState
from verifiers.contract.protocols import Proposal, ProposalReply, SolverTools
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.registry.spec import Spec
from verifiers.smt.spec import SmtSpec

AT = "2026-01-01T00:00:00.000+00:00"


class OnlyWord:
    """A solver of a claim of which one thing only can be said."""

    name, at_once = "prover", 1

    def proposals(
        self, spec: Spec, question: str, tools: SolverTools, seconds: float
    ) -> Generator[Proposal, None, None]:
        tools.complete = True
        yield Proposal("entailed", self.name)


class Decided:
    def __init__(self, ground: Ground) -> None:
        self.verdict = Verdict(
            outcome=Outcome.FAIL, score=0.0, reason="so", verifier="smt", version="2", seconds=1.0, ground=ground
        )

    def check_many(self, pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
        return [self.verdict for _ in pairs]

    def propose(self, spec: Spec, way: str, question: str, seconds: float) -> ProposalReply:
        raise AssertionError("this solver asks for nothing")


@pytest.mark.parametrize("ground", [Ground.REFUTED, Ground.TIMEOUT, Ground.UNKNOWN, Ground.MEMORY])
def test_the_only_answer_is_called_none_when_it_was_refuted_and_undecided_when_it_was_not(ground: Ground) -> None:
    job = Job(
        id="job-1", question="So?", spec=SmtSpec(claim="(assert (not true))"), attempts=1, seed=0,
        state=JobState.RUNNING, created=AT, updated=AT,
    )  # fmt: skip
    found = try_solvers(
        job,
        [OnlyWord()],
        Decided(ground),
        None,
        {},
        stop_reason=lambda: "",
        say=lambda step, tries: None,
        clock=lambda: 0.0,
    )
    shown = "prover: so"
    assert (found.hopeless, found.undecided) == ((shown, "") if ground is Ground.REFUTED else ("", shown))
