"""Sealed question sets, and streams of tasks that keep clear of them.

Partitioned seeds keep generators apart, but small numbers make the same question by chance: without a check, several in
a hundred sealed questions also turn up in training. So a set knows its questions as (operation, numbers), and a stream
skips each of them in whatever words it is asked.

Everything here is a pure function of its arguments; a stream has no state, so training resumes at any step.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from random import Random

from curriculum import seeds
from curriculum.errors import CurriculumError, ExhaustedError
from curriculum.family import Problem
from curriculum.registry import FAMILIES, make_problem, problem_of, stable_random, task_of
from curriculum.task import Split, Task

ATTEMPTS = 2_000
"""Draws for one place in a set or stream before it counts as exhausted."""


def question_key(problem: Problem) -> str:
    """What a problem asks, whatever the words: its operation and numbers."""
    return f"{problem.operation}:{','.join(map(str, problem.numbers))}"


@dataclass(frozen=True)
class SealedSet:
    """Questions that no training ever sees. Different in id, in prompt and in substance, whatever the wording."""

    tasks: tuple[Task, ...]
    seed: int

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the task ids in order."""
        return hashlib.sha256("\n".join(task.id for task in self.tasks).encode()).hexdigest()

    @cached_property
    def questions(self) -> frozenset[str]:
        """Keys of everything asked: what a stream is told to keep clear of."""
        return frozenset(question_key(problem_of(task)) for task in self.tasks)

    @property
    def description(self) -> dict[str, str | int | float]:
        """For the ledger: how to make the set again, and what is in it."""
        counts = Counter(task.family for task in self.tasks)
        levels = Counter(task.level for task in self.tasks)
        return {
            "items": len(self.tasks),
            "seed": self.seed,
            "versions": " ".join(sorted({task.provenance for task in self.tasks})),
            **{f"family {name}": counts[name] for name in sorted(counts)},
            **{f"level {level}": levels[level] for level in sorted(levels)},
        }


def sealed_set(
    items: int, seed: int, levels: Sequence[int] | None = None, *, exclude: AbstractSet[str] = frozenset()
) -> SealedSet:
    """`items` sealed tasks, as evenly over operations and levels as their number allows.

    `levels` restricts the levels; families that lack one are asked on those they have. `exclude` holds keys of
    questions that must not be asked (`question_key`). Raises ExhaustedError when not
    so many different questions exist, and CurriculumError when no family has any of the levels.
    """
    if items < 1:
        raise CurriculumError(f"a sealed set of {items} items is none", hint="ask for at least one")
    rng = stable_random("sealed", seed)
    places = _places(levels)
    rng.shuffle(places)
    seen = set(exclude)
    tasks: list[Task] = []
    turn = 0
    while len(tasks) < items:
        place = places[turn % len(places)]
        task = _fresh(place, turn // len(places), rng, seen)
        if task is not None:
            tasks.append(task)
            turn += 1
            continue
        # This operation has no more to ask; the others fill up, and the rounds begin anew among them.
        places.remove(place)
        turn = 0
        if not places:
            raise ExhaustedError(
                f"only {len(tasks)} of {items} different questions were found", hint="ask for fewer, or more levels"
            )
    return SealedSet(tasks=tuple(tasks), seed=seed)


@dataclass(frozen=True)
class TaskStream:
    """Tasks for training or validation, uniform over operations: `tasks(step, count)` depends on nothing else.

    `exclude` holds the keys of the questions to keep clear of (`SealedSet.questions`).
    """

    split: Split
    seed: int
    exclude: AbstractSet[str] = frozenset()
    shares: Mapping[str, float] | None = None
    """Percent of any first so many tasks of a step that each family may be; others are not drawn. None: no bounds."""

    def tasks(self, step: int, count: int) -> list[Task]:
        """`count` different tasks of that step; more of them begin with these. Raises ExhaustedError when there are not
        so many."""
        rng = stable_random("stream", self.split.value, self.seed, step)
        seen = set(self.exclude)
        drawn: list[Task] = []
        for _ in range(count):
            drawn.append(draw_task(self.split, rng, seen, self._full(drawn))[0])
        return drawn

    def _full(self, drawn: Sequence[Task]) -> AbstractSet[str]:
        """Families that may not be drawn next: one more would be above their share, rounded up."""
        if self.shares is None:
            return frozenset()
        counts = Counter(task.family for task in drawn)
        room = len(drawn) + 1
        return {name for name in FAMILIES if counts[name] + 1 > ceil_share(self.shares.get(name, 0.0), room)}


def ceil_share(percent: float, of: int) -> int:
    """So many percent of so many tasks, rounded up: small steps are not left empty."""
    return math.ceil(round(of * percent / 100, 9))


def draw_task(
    split: Split, rng: Random, seen: set[str], without: AbstractSet[str] = frozenset()
) -> tuple[Task, Problem]:
    """A task uniform over operations, then over its family's levels, that asks nothing in `seen`; adds it there.

    Families in `without` are not drawn. Raises ExhaustedError when nothing else is left."""
    names = [name for name in FAMILIES if name not in without]
    if not names:
        raise ExhaustedError("no family may be drawn", hint="raise the shares of families in the policy's [data]")
    weights = [len(FAMILIES[name].operations) for name in names]
    for _ in range(ATTEMPTS):
        name = rng.choices(names, weights)[0]
        level = rng.randrange(FAMILIES[name].level_count)
        seed = seeds.draw(split, rng)
        problem = make_problem(name, level, seed)
        if question_key(problem) not in seen:
            seen.add(question_key(problem))
            return task_of(problem, name, level, seed), problem
    raise ExhaustedError(
        "no new question was found", hint="ask for fewer tasks, or exclude fewer (fresh_nights in [data])"
    )


@dataclass(frozen=True)
class _Place:
    """One operation's place in each round of a set, and the levels that it goes through round after round."""

    family: str
    operation: str
    levels: tuple[int, ...]


def _places(levels: Sequence[int] | None) -> list[_Place]:
    places = []
    for name, family in FAMILIES.items():
        allowed = tuple(level for level in range(family.level_count) if levels is None or level in levels)
        if allowed:
            places += [_Place(name, operation.name, allowed) for operation in family.operations]
    if not places:
        raise CurriculumError(f"no family has any of the levels {list(levels or ())}", hint="levels count from 0")
    return places


def _fresh(place: _Place, turn: int, rng: Random, seen: set[str]) -> Task | None:
    """A sealed task for that place with a question that is not in `seen`, which then holds it; None when exhausted."""
    for further in range(len(place.levels)):
        level = place.levels[(turn + further) % len(place.levels)]
        for _ in range(ATTEMPTS):
            seed = seeds.draw(Split.SEALED, rng)
            problem = make_problem(place.family, level, seed)
            key = question_key(problem)
            if problem.operation == place.operation and key not in seen:
                seen.add(key)
                return task_of(problem, place.family, level, seed)
    return None
