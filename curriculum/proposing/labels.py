"""Turns proposals into tasks: a label that was executed or proved, and the task made from it. No other way exists.

Invariants: a `ProvenLabel` is made by `_minted` alone, which only the modules that execute and prove call (a test scans
all sources for the name); it cannot be constructed, copied, changed or unpickled. A `ProvenTask` is made from such a
label, takes its spec's answer from it, and refuses a label of another statement. Training takes proposed tasks only as
`ProvenTask`, so voted answers cannot enter: in a toy with one common wrong answer, labels by vote were wrong in 77 to
94 of 100 cases.
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
"""Taskset name of proposed tasks, not in any table; also the prefix of their provenance."""


class LabelError(TypeError):
    """Attempt to make or use a label that was neither executed nor proved."""


class Basis(StrEnum):
    EXECUTED = "executed"
    """Two runs, each in a fresh sandbox process, with equal results."""
    SOLVED = "solved"
    """Found by a solver, and shown to be unique."""
    PROVED = "proved"
    """Accepted by Lean's kernel."""


@final
class ProvenLabel:
    """Answer of a proposed task, with the basis it rests on: execution or proof."""

    __slots__ = ("__weakref__", "answer", "basis", "of")

    answer: str
    basis: Basis
    of: str
    """Digest of the answered statement (`statement_digest`)."""

    def __init__(self, *_: object, **__: object) -> None:
        raise LabelError("a label is made by execution or proof, never by hand")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise LabelError("a label does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise LabelError("a label does not change")

    def __reduce__(self) -> NoReturn:
        raise LabelError("a label is never read from a file: execute or prove again")

    def __init_subclass__(cls) -> NoReturn:
        raise LabelError("a label cannot be subclassed")


_LABELS: WeakSet[ProvenLabel] = WeakSet()


def _minted(basis: Basis, of: str, answer: str) -> ProvenLabel:
    """Makes the label of a proposed task. Only for modules that execute and prove, with a result just obtained."""
    label = object.__new__(ProvenLabel)
    for name, value in (("basis", basis), ("of", of), ("answer", answer)):
        object.__setattr__(label, name, value)
    _LABELS.add(label)
    return label


def statement_digest(*parts: str) -> str:
    """Returns the digest of the parts of a statement, which identifies what a label is about."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class ProposedQuestion:
    """Question of a proposal's task, without an answer."""

    kind: str
    of: str
    key: str
    """Identity of the question, independent of words and names."""
    messages: tuple[TaskMessage, ...]
    specify: Callable[[str], Spec]
    """Makes the spec from the label's answer."""
    form: AnswerForm = AnswerForm.BOXED
    tools: tuple[str, ...] = ("python",)
    turns: int | None = None
    tokens: int | None = None


@final
class ProvenTask:
    """Proposed task that may be trained on."""

    __slots__ = ("label", "reference", "task")

    def __init__(self, question: ProposedQuestion, label: ProvenLabel, reference: str, provenance: str) -> None:
        """Makes the task of a proposed question, with the label as its answer. `reference` is an answer that passes,
        for tests and reports, never for the agent. Raises LabelError if the label was not minted, or is about another
        statement."""
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
        raise LabelError("a proven task cannot be subclassed")


def proven_tasks(found: Sequence[ProvenTask]) -> list[Task]:
    """Returns tasks of proved proposals, for training. Raises LabelError for anything but a `ProvenTask`."""
    if not isinstance(found, list | tuple):
        raise LabelError("only a list of executed or proved tasks is trained on")
    for one in found:
        if type(one) is not ProvenTask or one.label not in _LABELS:
            raise LabelError("only executed or proved tasks are trained on")
    return [one.task for one in found]


def is_proposed(task: Task) -> bool:
    """True if a model proposed the task."""
    return task.taskset == PROPOSED


def provenance(cycle: str, step: int) -> str:
    """Returns the provenance of a task proposed at this step of a cycle: `proposed:CYCLE@STEP`."""
    return f"{PROPOSED}:{cycle}@{step}"


def proposed_at(task: Task) -> int:
    """Returns the step of the cycle in which a task was proposed. Raises ValueError for any other task."""
    return int(task.provenance.removeprefix(f"{PROPOSED}:").rpartition("@")[2])


def _training_seed(key: str) -> int:
    """Returns a seed of the training split, derived from a proposed task's key."""
    return seeds.derive(PROPOSED, key) // 4 * 4
