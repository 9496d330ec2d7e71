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

SHOWN_CHARS = 2_000
"""Longest question that a prompt for a proposal shows, in characters."""
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


@dataclass(frozen=True)
class Precedents:
    """Tasks of the step before, by how many of their rollouts passed; both in the order of their pass shares."""

    failed: Sequence[Task] = ()
    solved: Sequence[Task] = ()

    def for_kind(self, kind: ProposalKind) -> Precedents:
        """Returns those that a kind of proposals can build on, its own among them."""

        def suits(task: Task) -> bool:
            return len(task.question) <= SHOWN_CHARS and (
                kind.is_like(task) or (is_proposed(task) and task.key.startswith(kind.name))
            )

        return Precedents(*([one for one in tasks if suits(one)] for tasks in (self.failed, self.solved)))

    def drawn(self, rng: Random) -> tuple[Task, ...]:
        """Returns one failed task to vary, or two solved ones to combine; empty without any."""
        ways: list[Sequence[Task]] = [self.failed] if self.failed else []
        if len(self.solved) > 1:
            ways.append(self.solved)
        if not ways:
            return ()
        way = rng.choice(ways)
        return tuple(rng.sample(list(way), 1 if way is self.failed else 2))


class ProposalKind(Protocol):
    @property
    def name(self) -> str: ...

    def is_like(self, task: Task) -> bool:
        """True if proposals of this kind can vary that task, or combine it with another one."""

    def ask(self, rng: Random, precedents: Precedents) -> Task:
        """Returns a prompt that asks a model for one proposal: a variant of a failed task, a composition of two solved
        ones, or something new."""

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


def precedents_in(rng: Random, precedents: Precedents) -> str:
    """Returns the part of a prompt that shows what a proposal is to build on; empty without precedents."""
    shown = [task.question for task in precedents.drawn(rng)]
    match shown:
        case [one]:
            return f"\n\nYou do not solve this task yet. Propose a variant that takes the same idea:\n{one}"
        case [one, other]:
            return f"\n\nYou solve these two tasks. Propose one that needs both ideas:\n{one}\n\nand\n{other}"
    return ""
