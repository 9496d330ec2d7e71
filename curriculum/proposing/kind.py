"""The seam for kinds of proposals: what a model is asked to invent, and how that becomes a task.

A kind is a file here and a row in `curriculum.proposing.registry`. What always holds: `make` gives a task whose answer
was executed or proved, or refuses with a reason by name; a proposal that the infrastructure lost is neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from curriculum import seeds
from curriculum.contract.task import Split, Task, asked
from curriculum.contract.topics import IMPOSSIBLE
from curriculum.proposing.execution import Executor
from curriculum.proposing.labels import ProposedQuestion, ProvenLabel, ProvenTask, is_proposed
from curriculum.proposing.refusals import Reason, RefusedProposal
from runtime.errors import InfrastructureError
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.kinds import AnswerForm
from verifiers.contract.proposal import ProposalReply
from verifiers.contract.verdict import Outcome, SpecProblem, Verdict
from verifiers.registry.spec import Spec

PROPOSER = "proposer"
"""The taskset that prompts for proposals name, which no table has."""


class SpecChecker(Protocol):
    """Is the part of `verifiers.checker.Checker` that proposals need."""

    def check_many(self, pairs: Sequence[tuple[Spec, str]]) -> list[Verdict | SpecProblem]: ...

    def propose(self, spec: Spec, way: str, question: str, seconds: float) -> ProposalReply: ...


@dataclass(frozen=True)
class Provers:
    """What executes and proves, and where tasks say that they come from."""

    executor: Executor
    checker: SpecChecker
    provenance: str


class ProposalKind(Protocol):
    @property
    def name(self) -> str: ...

    def ask(self, rng: Random, references: Sequence[Task]) -> Task:
        """A prompt for one proposal; `references` are earlier tasks to differ from, failed ones first."""

    def make(self, text: str, provers: Provers) -> ProvenTask:
        """The task of what was written. Raises RefusedProposal, and InfrastructureError."""

    def missing(self) -> str:
        """Why none can be proved on this machine, in a sentence; empty when they can."""


def is_generated(task: Task) -> bool:
    """Says whether a taskset made it, not a model, and it is no prompt for a proposal."""
    return not is_proposed(task) and task.taskset != PROPOSER


def prompt(kind: str, text: str, rng: Random, *, turns: int | None = None) -> Task:
    """A prompt as a task of the training split. It is never judged by a spec; the one that it has is met by nothing."""
    return Task(
        taskset=PROPOSER,
        level=0,
        seed=seeds.draw(Split.TRAIN, rng),
        split=Split.TRAIN,
        messages=asked(text),
        spec=AnswerSpec(notation="digits", expected=str(IMPOSSIBLE)),
        form=AnswerForm.WHOLE,
        tools=(),
        turns=turns,
        key=f"{PROPOSER} {kind}:{text}",
        provenance=f"{PROPOSER}:{kind}",
    )


def checked(question: ProposedQuestion, label: ProvenLabel, reference: str, provers: Provers) -> ProvenTask:
    """The task, once its own check has taken the reference and turned away an answer that says nothing. Raises
    RefusedProposal where it does not."""
    made = ProvenTask(question, label, reference, provers.provenance)
    spec = made.task.spec
    right, empty = provers.checker.check_many([(spec, reference), (spec, "0")])
    for verdict in (right, empty):
        if isinstance(verdict, SpecProblem):
            raise RefusedProposal(Reason.UNCHECKABLE, "its check would take an answer without work")
        if verdict.outcome is Outcome.INFRA_ERROR:
            raise InfrastructureError(f"the check of a proposal broke: {verdict.reason}", hint="run `assay doctor`")
    assert isinstance(right, Verdict)
    assert isinstance(empty, Verdict)
    if not right.passed or empty.passed:
        raise RefusedProposal(Reason.UNCHECKABLE, "its check does not take the reference, or takes a zero")
    return made


def examples_of(references: Sequence[Task], most: int = 2) -> str:
    """What stands in a prompt of earlier tasks."""
    shown = [f"An earlier task, to differ from:\n{task.question}" for task in references[:most]]
    return "\n\n".join(["", *shown]) if shown else ""
