"""Interface of kinds of proposals: the prompt that asks a model to invent one, and its conversion into a task.

A kind is a file here and a row in `curriculum.proposing.registry`. Invariants: `make` returns a task whose answer was
executed or proved, or refuses with a named reason; a proposal lost to the infrastructure is neither.
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
from verifiers.contract.protocols import ProposalReply
from verifiers.contract.verdict import Outcome, SpecProblem, Verdict
from verifiers.registry.spec import Spec

PROPOSER = "proposer"
"""Taskset name of proposal prompts; not in any table."""


class SpecChecker(Protocol):
    """Part of `verifiers.checker.Checker` that proposals use."""

    def check_many(self, pairs: Sequence[tuple[Spec, str]]) -> list[Verdict | SpecProblem]: ...

    def propose(self, spec: Spec, way: str, question: str, seconds: float) -> ProposalReply: ...


@dataclass(frozen=True)
class Provers:
    """Executor and checker of proposals, and the provenance of their tasks."""

    executor: Executor
    checker: SpecChecker
    provenance: str


class ProposalKind(Protocol):
    @property
    def name(self) -> str: ...

    def ask(self, rng: Random, references: Sequence[Task]) -> Task:
        """Returns a prompt that asks a model for one proposal; `references` are tasks to differ from, failed first."""

    def make(self, text: str, provers: Provers) -> ProvenTask:
        """Makes a task of a model's proposal, with an executed or proved answer. Raises RefusedProposal, and
        InfrastructureError."""

    def missing(self) -> str:
        """Returns the reason why proposals of this kind cannot be proved on this machine; empty if they can."""


def is_generated(task: Task) -> bool:
    """True if a taskset made the task: neither a model's proposal nor a prompt for one."""
    return not is_proposed(task) and task.taskset != PROPOSER


def prompt(kind: str, text: str, rng: Random, *, turns: int | None = None) -> Task:
    """Returns a prompt for a proposal as a training task. Its spec is a placeholder that no answer satisfies."""
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
    """Makes the task of a proposed question, if its check accepts the reference and rejects an empty answer. Raises
    RefusedProposal otherwise."""
    made = ProvenTask(question, label, reference, provers.provenance)
    spec = made.task.spec
    right, empty = provers.checker.check_many([(spec, reference), (spec, "0")])
    for verdict in (right, empty):
        if isinstance(verdict, SpecProblem):
            raise RefusedProposal(Reason.UNCHECKABLE, "its check would take an answer without work")
        if verdict.outcome is Outcome.INFRA_ERROR:
            raise InfrastructureError(
                f"the check of a proposal failed to run: {verdict.reason}", hint="run `assay doctor`"
            )
    assert isinstance(right, Verdict)
    assert isinstance(empty, Verdict)
    if not right.passed or empty.passed:
        raise RefusedProposal(Reason.UNCHECKABLE, "its check does not take the reference, or takes a zero")
    return made


def examples_of(references: Sequence[Task], most: int = 2) -> str:
    """Returns the part of a proposal prompt that shows up to `most` earlier tasks; empty without any."""
    shown = [f"An earlier task, to differ from:\n{task.question}" for task in references[:most]]
    return "\n\n".join(["", *shown]) if shown else ""
