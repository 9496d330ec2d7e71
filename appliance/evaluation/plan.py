"""The plan of an evaluation: model, questions and repeats. Runs of equal plans are comparable.

Invariants: questions come from seeds of the validation split and belong to it by content, so neither training nor the
nights' sealed sets use them. Equal plans ask equal questions on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pydantic import Field

from curriculum import seeds
from curriculum.contract.errors import ExhaustedError
from curriculum.contract.task import Split, Task
from curriculum.registry import make_draft, stable_random, task_of, taskset_named
from runtime.model import FrozenModel

MOST_DRAWS = 500
"""Draws for one question before its level counts as exhausted."""


class EvaluationPlan(FrozenModel):
    """All parameters that determine an evaluation's figures, apart from chance."""

    model: str
    """Digest of the weights, or the model's name at its endpoint."""
    engine: str
    """`torch` or `vllm`, or the endpoint's address."""
    tasksets: tuple[str, ...] = Field(min_length=1)
    """Names with versions, such as `programs@2`."""
    items: int = Field(ge=1, le=100_000)
    """Questions of each taskset for each seed, spread evenly over its levels."""
    seeds: tuple[int, ...] = Field(min_length=1)
    repeats: int = Field(ge=1, le=1_024)
    """Attempts at each question."""
    temperature: float = Field(ge=0)
    max_tokens: int = Field(ge=1)
    """Tokens of one conversation; with an endpoint, of one turn."""
    max_calls: int = Field(ge=0)
    max_result_chars: int = Field(ge=8)
    assay: str
    """Version of Assay that made the plan."""

    @property
    def digest(self) -> str:
        """SHA-256 of the evaluation plan's canonical JSON."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the plan's tasksets, without versions."""
        return tuple(name.partition("@")[0] for name in self.tasksets)


class OpenQuestion(FrozenModel):
    """A task of an evaluation's plan, with the seed it was drawn for."""

    task: Task
    seed: int


def questions(plan: EvaluationPlan) -> list[OpenQuestion]:
    """Draws the distinct questions of an evaluation's plan. Raises ExhaustedError if there are too few,
    UnknownTasksetError."""
    seen: set[str] = set()
    return [
        OpenQuestion(task=task, seed=seed)
        for seed in plan.seeds
        for name in plan.names
        for task in _drawn(name, plan.items, seed, seen)
    ]


def _drawn(name: str, count: int, seed: int, seen: set[str]) -> list[Task]:
    rng = stable_random("open evaluation", seed, name)
    levels = list(range(taskset_named(name).level_count))
    found: list[Task] = []
    while len(found) < count:
        if not levels:
            raise ExhaustedError(
                f"{name} has only {len(found)} of {count} different questions",
                hint="lower --items, or give fewer seeds",
            )
        level = levels[len(found) % len(levels)]
        for _ in range(MOST_DRAWS):
            drawn = seeds.draw(Split.VALIDATION, rng)
            draft = make_draft(name, level, drawn)
            if draft.key not in seen and seeds.split_of_question(draft.key) is Split.VALIDATION:
                seen.add(draft.key)
                found.append(task_of(draft, name, level, drawn))
                break
        else:
            levels.remove(level)
    return found


def versioned(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the taskset names with their versions, `name@version`, each once. Raises UnknownTasksetError."""
    return tuple(f"{name}@{taskset_named(name).version}" for name in dict.fromkeys(names))
