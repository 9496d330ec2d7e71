"""The seam: a solver proposes texts that may answer a job, and its word counts for nothing.

Every proposal goes to the spec's own verifier, like any attempt of the policy model. Who implements this imports
nothing heavy: the daemon asks which solvers there are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from appliance.records import Job
from runtime.sandbox import SessionPool
from verifiers.proposals.found import Found
from verifiers.spec import Spec
from verifiers.verdict import Verdict


class Proposal(NamedTuple):
    text: str
    by: str
    """The tool that found it, with its version where it has one."""


class Desk(Protocol):
    """What a checker offers here: verdicts, and the proposals of the worker that decides texts."""

    def check_many(self, pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]: ...

    def propose(self, spec: Spec, way: str, question: str, seconds: float) -> Found: ...


@dataclass
class Tools:
    """What one solver works with on one job, and where it leaves what it learnt."""

    desk: Desk
    sessions: SessionPool | None
    """None where nothing can be put to work in a sandbox."""
    files: Mapping[str, bytes]
    """The job's, by name."""
    stop: Callable[[], bool]
    """Whether to come to an end now."""
    notes: list[str] = field(default_factory=list)
    """Why there were no proposals, or no more; a sentence each."""
    hopeless: str = ""
    """Set where a tool has shown that there is no answer: how."""
    complete: bool = False
    """Set where nothing but what was proposed can be an answer."""


class JobSolver(Protocol):
    name: str
    at_once: int
    """Proposals that are given to the verifier together."""

    def proposals(self, job: Job, tools: Tools, seconds: float) -> Generator[Proposal, None, None]:
        """The likeliest first. Takes about so many seconds at most, without those that the verifier takes.

        Raises SandboxError where what it needs broke: that says nothing of the question.
        """
        ...
