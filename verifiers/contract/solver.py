"""The seam: a solver proposes texts that may answer a question, and decides nothing.

Every proposal goes to the spec's own verifier, like any attempt of the policy model. Who implements this imports
nothing heavy: the daemon asks which solvers there are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from runtime.sandbox import SessionPool
from verifiers.contract.proposal import ProposalReply
from verifiers.contract.spec_data import SpecModel
from verifiers.contract.verdict import SpecProblem, Verdict


class Proposal(NamedTuple):
    text: str
    by: str
    """The tool that found it, with its version where it has one."""


class SolverChecker(Protocol):
    """What a solver and whoever runs it ask of a checker: verdicts, and the proposals of the worker that decides."""

    def check_many(self, pairs: Sequence[tuple[SpecModel, str]]) -> list[Verdict | SpecProblem]: ...

    def propose(self, spec: SpecModel, way: str, question: str, seconds: float) -> ProposalReply: ...


@dataclass
class SolverTools:
    """What one solver works with on one question, and where it leaves what it learnt."""

    checker: SolverChecker
    sessions: SessionPool | None
    """None where nothing can be put to work in a sandbox."""
    files: Mapping[str, bytes]
    """Those that came with the question, by name."""
    caller: str
    """For whom sandboxes are asked."""
    stop: Callable[[], bool]
    """Whether to come to an end now."""
    notes: list[str] = field(default_factory=list)
    """Why there were no proposals, or no more; a sentence each."""
    hopeless: str = ""
    """Set where a tool has shown that there is no answer: how."""
    complete: bool = False
    """Set where nothing but what was proposed can be an answer."""


class Solver(Protocol):
    name: str
    at_once: int
    """Proposals that are given to the verifier together."""

    def proposals(
        self, spec: Any, question: str, tools: SolverTools, seconds: float
    ) -> Generator[Proposal, None, None]:
        """The likeliest first. Takes about so many seconds at most, without those that the verifier takes.

        Raises SandboxError where what it needs broke: that says nothing of the question.
        """
