"""Demonstrations for the warm start: a task and its calls, in order. They teach form, not choice.

A demonstration holds no answer. Its caller runs the calls, and the final answer is what the last one printed. With
probability `1 - right_choice` the calls compute something else: such a conversation shows how a tool is called,
repaired and quoted, and leaves the choice of call to be learned from verified success. The share of right choices thus
sets the level at which training starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from random import Random

from curriculum.catalog import Catalog
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Split, Task
from curriculum.contract.taskset import Demonstrates
from curriculum.registry import BUILT_IN, CALCULATORS
from curriculum.sealed import draw_task
from curriculum.separation.index import SeparationIndex


@dataclass(frozen=True)
class Demonstration:
    """Training task with tool calls that work on it."""

    task: Task
    calls: tuple[str, ...]
    """Python sources in order. All but the last one fail."""
    topic: str
    right: bool
    """True if the task asks for that topic."""


def demonstrable(tasksets: Sequence[str], catalog: Catalog = BUILT_IN) -> list[str]:
    """Returns those of the named tasksets that have demonstrations. Raises CurriculumError if none has."""
    found = [name for name in tasksets if isinstance(catalog.named(name), Demonstrates)]
    if not found:
        raise CurriculumError(
            f"none of these tasksets has demonstrations: {', '.join(tasksets) or 'none is left'}",
            hint="start from your own model (model.path), or add a calculator taskset to the recipe",
        )
    return found


def demonstration(
    rng: Random,
    *,
    right_choice: float,
    fail_first: float,
    exclude: AbstractSet[str] = frozenset(),
    tasksets: Sequence[str] = CALCULATORS,
    catalog: Catalog = BUILT_IN,
    kept: SeparationIndex | None = None,
) -> Demonstration:
    """Draws a training task, uniformly over the topics of `tasksets`, with example tool calls for it. The calls solve
    it with probability `right_choice`; else they compute something else. With probability `fail_first` one or two
    failing beginner's calls come first. The task has no key in `exclude`, and copies no evaluation question in `kept`.
    Raises ExhaustedError if no task is left, CurriculumError if no taskset has demonstrations."""
    task, draft = draw_task(Split.TRAIN, rng, set(exclude), demonstrable(tasksets, catalog), catalog=catalog, kept=kept)
    taskset = catalog.named(task.taskset)
    assert isinstance(taskset, Demonstrates)
    shown = taskset.demonstrate(draft, rng, right_choice=right_choice, fail_first=fail_first)
    return Demonstration(task=task, calls=shown.calls, topic=shown.topic, right=shown.topic == draft.topic)
