"""Is the one way from a proposal to a task: a label that was executed or proved, and the task that is made of it.

What always holds: a `ProvenLabel` is made by `_minted` alone, which the modules that execute and prove call and nobody
else (a test reads all sources for that name); it cannot be constructed, copied, changed or unpickled. A `ProvenTask` is
made of such a label, takes the answer of its spec from it, and refuses a label of another statement. Training takes
proposed tasks as `ProvenTask` and as nothing else, so an answer that was voted for has no way in: in a toy with one
common wrong answer, labels by vote were wrong in 77 to 94 of 100 cases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn, final
from weakref import WeakSet

from curriculum import seeds
from curriculum.contract.task import Split, Task, TaskMessage
from verifiers.contract.kinds import AnswerForm
from verifiers.registry.spec import Spec

PROPOSED = "proposed"
"""The taskset that proposed tasks name, which no table has, and how their provenance begins."""


class LabelError(TypeError):
    """Somebody tried to make or use a label that nothing executed or proved."""


class Basis(StrEnum):
    EXECUTED = "executed"
    """Twice, each time in a fresh process of a sandbox, with the same result."""
    SOLVED = "solved"
    """By a solver, and shown to be the only answer."""
    PROVED = "proved"
    """By Lean's kernel."""


@final
class ProvenLabel:
    """Is an answer with what it rests on."""

    __slots__ = ("__weakref__", "answer", "basis", "of")

    answer: str
    basis: Basis
    of: str
    """What it answers: the digest of the statement (`statement_digest`)."""

    def __init__(self, *_: object, **__: object) -> None:
        raise LabelError("a label is made by execution or proof, never by hand")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise LabelError("a label does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise LabelError("a label does not change")

    def __reduce__(self) -> NoReturn:
        raise LabelError("a label is never read from a file: execute or prove again")

    def __init_subclass__(cls) -> NoReturn:
        raise LabelError("a label is of no other class")


_LABELS: WeakSet[ProvenLabel] = WeakSet()


def _minted(basis: Basis, of: str, answer: str) -> ProvenLabel:
    """For the modules that execute and prove, which call it with what they have just seen."""
    label = object.__new__(ProvenLabel)
    for name, value in (("basis", basis), ("of", of), ("answer", answer)):
        object.__setattr__(label, name, value)
    _LABELS.add(label)
    return label


def statement_digest(*parts: str) -> str:
    """Names what a label is about."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class ProposedQuestion:
    """What a task of a proposal asks, without an answer."""

    kind: str
    of: str
    """The digest of the statement that it is about."""
    key: str
    """What it asks, whatever the words and names."""
    messages: tuple[TaskMessage, ...]
    specify: Callable[[str], Spec]
    """Makes the check from the label's answer."""
    form: AnswerForm = AnswerForm.BOXED
    tools: tuple[str, ...] = ("python",)
    turns: int | None = None
    tokens: int | None = None


@final
class ProvenTask:
    """Is a proposed task that may be trained on."""

    __slots__ = ("label", "reference", "task")

    def __init__(self, question: ProposedQuestion, label: ProvenLabel, reference: str, provenance: str) -> None:
        """`reference`: an answer that passes, for tests and reports, never for the agent. Raises LabelError for a label
        that was not minted, or is about something else."""
        if type(label) is not ProvenLabel or label not in _LABELS:
            raise LabelError("the label was not made by execution or proof")
        if label.of != question.of:
            raise LabelError("the label is about another statement")
        self.label = label
        self.reference = reference
        self.task = Task(
            taskset=PROPOSED,
            level=0,
            seed=_training_seed(question.key),
            split=Split.TRAIN,
            messages=question.messages,
            spec=question.specify(label.answer),
            form=question.form,
            tools=question.tools,
            turns=question.turns,
            tokens=question.tokens,
            key=question.key,
            provenance=provenance,
        )

    def __init_subclass__(cls) -> NoReturn:
        raise LabelError("a proven task is of no other class")


def proven_tasks(found: Sequence[ProvenTask]) -> list[Task]:
    """The tasks of these, for the training set. Raises LabelError for anything in there that is no `ProvenTask`."""
    if not isinstance(found, list | tuple):
        raise LabelError("only a list of what was executed or proved is trained on")
    for one in found:
        if type(one) is not ProvenTask or one.label not in _LABELS:
            raise LabelError("only what was executed or proved is trained on")
    return [one.task for one in found]


def is_proposed(task: Task) -> bool:
    """Says whether a model proposed it."""
    return task.taskset == PROPOSED


def provenance(cycle: str, step: int) -> str:
    """Says where a proposed task came from."""
    return f"{PROPOSED}:{cycle}@{step}"


def proposed_at(task: Task) -> int:
    """The step of its cycle in which it was proposed. Raises ValueError for a task that was not."""
    return int(task.provenance.removeprefix(f"{PROPOSED}:").rpartition("@")[2])


def _training_seed(key: str) -> int:
    """A seed of the training split that stands for it."""
    return seeds.derive(PROPOSED, key) // 4 * 4
