"""Solver interface: a solver proposes candidate answers to a question and decides nothing.

Every proposal goes to the spec's own verifier, like any attempt of the policy model. Implementations import nothing
heavy, because the daemon lists the solvers.
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
    """Tool that found it, with its version if it has one."""


class SolverChecker(Protocol):
    """Checker interface for solvers: verdicts, and proposals of the text worker."""

    def check_many(self, pairs: Sequence[tuple[SpecModel, str]]) -> list[Verdict | SpecProblem]: ...

    def propose(self, spec: SpecModel, way: str, question: str, seconds: float) -> ProposalReply: ...


@dataclass
class SolverTools:
    """Resources of one solver for one question, and the results it reports."""

    checker: SolverChecker
    sessions: SessionPool | None
    """None if no sandbox is available."""
    files: Mapping[str, bytes]
    """Files that came with the question, by name."""
    caller: str
    """Caller name used when requesting sandboxes."""
    stop: Callable[[], bool]
    """True if the solver must stop now."""
    notes: list[str] = field(default_factory=list)
    """Reasons why there were no proposals, or no more; one sentence each."""
    hopeless: str = ""
    """Proof method, set if a tool has proved that no answer exists."""
    complete: bool = False
    """Set if the answer, if any, must be among the proposals."""


class Solver(Protocol):
    name: str
    at_once: int
    """Number of proposals put to the verifier together."""

    def proposals(
        self, spec: Any, question: str, tools: SolverTools, seconds: float
    ) -> Generator[Proposal, None, None]:
        """Yields proposals, most likely first. Takes about `seconds` at most, verification excluded.

        Raises SandboxError for an infrastructure failure, which says nothing about the question.
        """
