"""Interface of tasksets: generators of one kind of task, at several levels, with a reference answer each.

A taskset is deterministic: the same (level, generator) gives the same draft on every machine. It has no state, reads no
clock and draws all randomness from the generator it is given. Each has a file and a row in `curriculum.registry`; no
other code depends on its subject.
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
    """Generated item, before a seed and a split make it a task. Fields of the same names are `Task`'s."""

    topic: str
    key: str
    """Identity of the question, independent of wording. Tasksets never share a key."""
    messages: tuple[TaskMessage, ...]
    spec: Spec
    answer: str
    """Final answer that passes; for tests and reports, never for the agent."""
    form: AnswerForm = AnswerForm.BOXED
    tools: tuple[str, ...] = ("python",)
    environment: str = "python"
    world: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    turns: int | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class ToolTrace:
    """Sequence of tool calls that works on a task."""

    calls: tuple[str, ...]
    """Python sources in order. The last one prints the answer, those before it fail."""
    topic: str
    """Topic that the calls compute; in a demonstration of a wrong choice, not the task's."""


class Taskset(Protocol):
    """Makes tasks of one kind."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int:
        """Version number of the taskset. Changes whenever the same level and generator give another question."""

    @property
    def level_count(self) -> int:
        """Number of the taskset's levels; level 0 is the easiest."""

    @property
    def topics(self) -> Sequence[str]:
        """Names of the taskset's topics, which are asked equally often. No two tasksets share one."""

    @property
    def null_answers(self) -> Sequence[str]:
        """Answers of an agent that does no work; tests assert that they are right for almost no task."""

    def draft(self, level: int, rng: Random) -> TaskDraft:
        """Makes an item of that level, its topic drawn uniformly. Raises LevelError for an unknown level."""

    def unsolvable(self, draft: TaskDraft, number: int) -> Spec:
        """Returns a spec of the draft's kind that no honest answer passes. `number`, at most 63 bits, sets it apart."""

    def missing(self) -> str:
        """Returns the reason why the taskset's answers cannot be checked on this machine; empty if they can."""


@runtime_checkable
class Demonstrates(Protocol):
    """Taskset that can demonstrate how its tasks are solved; only these take part in the warm start."""

    def demonstrate(self, draft: TaskDraft, rng: Random, *, right_choice: float, fail_first: float) -> ToolTrace:
        """Returns tool calls that demonstrate a task: correct with probability `right_choice`, else those of another
        topic. With probability `fail_first` one or two failing beginner's calls come first."""


@runtime_checkable
class DrawsTopic(Protocol):
    """Taskset whose topic is known before the item is made, so that items of one topic are found quickly."""

    def topic_of(self, rng: Random) -> str:
        """Returns the topic that `draft` draws first from this generator."""


@runtime_checkable
class Described(Protocol):
    """Taskset that describes itself. Others are described by the first paragraph of their module."""

    @property
    def about(self) -> str: ...


@runtime_checkable
class SaysWhoScores(Protocol):
    """Taskset whose answers a foreign program may score."""

    @property
    def foreign(self) -> bool:
        """True if only a foreign program decides the taskset's answers. Its score is never trained on."""


@runtime_checkable
class RunsPackages(Protocol):
    """Taskset whose worlds run packages that may be reinstalled."""

    @property
    def packages(self) -> Sequence[str]:
        """Digests of the installed package sets that the taskset's worlds run."""


@runtime_checkable
class Finite(Protocol):
    """Taskset of given items, each of which belongs to one split for ever."""

    def draft_of(self, split: Split, level: int, rng: Random) -> TaskDraft:
        """Draws one of these items of that split and level. Raises LevelError, and ExhaustedError if none exists."""

    def keys(self, split: Split) -> AbstractSet[str]:
        """Returns the question keys of all given items of that split."""


def require_level(taskset: Taskset, level: int) -> None:
    """Raises LevelError if the taskset does not have that level."""
    if not 0 <= level < taskset.level_count:
        raise LevelError(
            f"{taskset.name} has no level {level}", hint=f"choose a level from 0 to {taskset.level_count - 1}"
        )
