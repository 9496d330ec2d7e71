"""The seam for tasksets: what makes tasks of one sort, at several levels, with a reference answer for each.

A taskset is deterministic: the same (level, generator) gives the same draft on every machine. It has no state, reads no
clock and draws all randomness from the generator that it is handed. Each has a file and a row in `curriculum.registry`;
nobody else knows what it asks about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol, runtime_checkable

from curriculum.contract.errors import LevelError
from curriculum.contract.task import Split, TaskMessage
from verifiers.contract.kinds import AnswerForm
from verifiers.registry.spec import Spec


@dataclass(frozen=True, kw_only=True)
class TaskDraft:
    """One generated item, before a seed and a split make it a task. The fields of the same names are `Task`'s."""

    topic: str
    """Which of the taskset's topics it is about."""
    key: str
    """What it asks, whatever the words. Tasksets never share a key."""
    messages: tuple[TaskMessage, ...]
    spec: Spec
    answer: str
    """A final answer that passes; for tests and reports, never for the agent."""
    form: AnswerForm = AnswerForm.BOXED
    tools: tuple[str, ...] = ("python",)
    environment: str = "python"
    world: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    turns: int | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class ToolTrace:
    """A way to work on a task with tool calls."""

    calls: tuple[str, ...]
    """Python sources in order. The last one prints the answer, those before it fail."""
    topic: str
    """What the calls work out; for a demonstration of a wrong choice not what the task asks."""


class Taskset(Protocol):
    """Makes tasks of one sort."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int:
        """Changes whenever the same level and generator give another question."""

    @property
    def level_count(self) -> int:
        """Counts the levels; 0 is the easiest."""

    @property
    def topics(self) -> Sequence[str]:
        """Lists what is asked equally often. No two tasksets share a topic."""

    @property
    def null_answers(self) -> Sequence[str]:
        """Lists what an agent that does no work would say; tests assert that it is right for almost no task."""

    def draft(self, level: int, rng: Random) -> TaskDraft:
        """One item of that level, its topic drawn uniformly. Raises LevelError when there is no such level."""

    def unsolvable(self, draft: TaskDraft, number: int) -> Spec:
        """A check of the same kind that no honest answer meets. `number`, of at most 63 bits, makes it its own."""

    def missing(self) -> str:
        """Why its answers cannot be checked on this machine, in a sentence; empty when they can."""


@runtime_checkable
class Demonstrates(Protocol):
    """A taskset that can also show how its tasks are worked on; one that cannot has no part in the warm start."""

    def demonstrate(self, draft: TaskDraft, rng: Random, *, right_choice: float, fail_first: float) -> ToolTrace:
        """Calls for that task: with probability `right_choice` the right ones, otherwise such as belong to another
        topic, and with probability `fail_first` a beginner's failing call, or two, before them."""


@runtime_checkable
class Described(Protocol):
    """A taskset that says itself what it asks for. Of all others the first paragraph of their file does."""

    @property
    def about(self) -> str: ...


@runtime_checkable
class SaysWhoScores(Protocol):
    """A taskset whose answers a program that is not ours may score."""

    @property
    def foreign(self) -> bool:
        """Whether nothing of ours decides about any answer: their score is a foreign reward, and never trained on."""


@runtime_checkable
class RunsPackages(Protocol):
    """A taskset whose worlds run packages that somebody may install anew."""

    @property
    def packages(self) -> Sequence[str]:
        """Digests of the sets that are installed now."""


@runtime_checkable
class Finite(Protocol):
    """A taskset of items that were given, each of which belongs to one split for ever."""

    def draft_of(self, split: Split, level: int, rng: Random) -> TaskDraft:
        """One of that split's items of that level. Raises LevelError, and ExhaustedError where there is none."""

    def keys(self, split: Split) -> AbstractSet[str]:
        """Those of all of that split's items."""


def require_level(taskset: Taskset, level: int) -> None:
    """Raises LevelError when the taskset has no such level."""
    if not 0 <= level < taskset.level_count:
        raise LevelError(
            f"{taskset.name} has no level {level}", hint=f"choose a level from 0 to {taskset.level_count - 1}"
        )
