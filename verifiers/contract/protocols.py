"""Protocols that verifiers, solvers and model judges implement, and the reply of a proposal method.

A solver proposes candidate answers to a question and decides nothing: every proposal goes to the spec's own verifier,
like any attempt of the policy model. Implementations import nothing heavy, because the daemon lists the solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from verifiers.contract.spec_data import SpecModel
from verifiers.contract.verdict import SpecProblem, Verdict

if TYPE_CHECKING:
    from runtime.sandbox import SessionPool


class ProposalReply(BaseModel):
    """Candidate answers of one proposal method. It decides nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    texts: tuple[str, ...] = ()
    """Candidate answers, most likely first."""
    by: str = ""
    """Tool that found them, with its version."""
    note: str = ""
    """One sentence: the reason for an empty or incomplete list."""
    hopeless: bool = False
    """True if the tool has proved that no answer exists; `note` gives the proof method."""
    complete: bool = False
    """True if the answer, if any, must be among these candidates."""


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


class JudgeError(Exception):
    """The judge gave no grade: it is missing, failed, or returned invalid probabilities."""


class Judge(Protocol):
    def judge(self, prompt: str, choices: Sequence[str]) -> Sequence[float]:
        """Returns the probability of each choice. Choices are short and differ in their first character.

        Deterministic. Raises JudgeError.
        """


S = TypeVar("S", bound=BaseModel, contravariant=True)


class Verifier(Protocol[S]):
    name: str
    version: str
    """Changes whenever the same input might get another verdict."""

    def check(self, spec: S, *, prove: bool = False) -> None:
        """Raises SpecError, with a hint, for a spec that cannot decide anything or would accept everything. Cheap
        unless `prove` is set, which is for workers only."""

    def verify(self, spec: S, submission: str) -> Verdict:
        """Returns the verdict on a submission. Never raises because of its content: an unreadable submission fails."""
