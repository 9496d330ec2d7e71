"""Sealed question sets, and task streams that avoid their questions.

Partitioned seeds keep generators apart, but small numbers make the same question by chance: without a check, several in
a hundred sealed questions also turn up in training. So a question belongs to one split by its key (`TaskDraft.key`), in
any wording, and is drawn for that split only. A finite taskset divides its own items. A task that copies a sealed
question in another way (`curriculum.separation`) is redrawn; so is a sealed question one word from a task trained on
before.

Everything here is a pure function of its arguments; a stream has no state, so training resumes at any step.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random

from curriculum import seeds
from curriculum.catalog import Catalog
from curriculum.contract.errors import CurriculumError, ExhaustedError
from curriculum.contract.task import Split, Task
from curriculum.contract.taskset import TaskDraft
from curriculum.difficulty import Difficulty, Place, places_of
from curriculum.registry import BUILT_IN, CALCULATORS, key_of, stable_random
from curriculum.separation.index import SeparationIndex, TrainedQuestions
from curriculum.separation.rules import Match

ATTEMPTS = 2_000
"""Draws for one place in a set or stream before it counts as exhausted."""
LEVEL_ATTEMPTS = 200
"""Consecutive draws of a level without a new question before its difficulty no longer selects it."""
WHOLE = 100.0
"""Percent."""


@dataclass(frozen=True)
class SealedSet:
    """Sealed evaluation questions, which are never trained on. All differ in id, prompt and key."""

    tasks: tuple[Task, ...]
    seed: int

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the ids of the sealed tasks, in order."""
        return hashlib.sha256("\n".join(task.id for task in self.tasks).encode()).hexdigest()

    @cached_property
    def questions(self) -> frozenset[str]:
        """Keys of the sealed questions, which training streams avoid."""
        return frozenset(key_of(task) for task in self.tasks)

    @property
    def description(self) -> dict[str, str | int | float]:
        """Description of the sealed set for the ledger: how to make it again, and its contents."""
        counts = Counter(task.taskset for task in self.tasks)
        levels = Counter(task.level for task in self.tasks)
        return {
            "items": len(self.tasks),
            "seed": self.seed,
            "versions": " ".join(sorted({task.provenance for task in self.tasks})),
            **{f"family {name}": counts[name] for name in sorted(counts)},
            **{f"level {level}": levels[level] for level in sorted(levels)},
        }


def sealed_set(
    items: int,
    seed: int,
    levels: Sequence[int] | None = None,
    *,
    exclude: AbstractSet[str] = frozenset(),
    tasksets: Sequence[str] = CALCULATORS,
    catalog: Catalog = BUILT_IN,
    divided: bool = True,
    trained: TrainedQuestions | None = None,
) -> SealedSet:
    """Draws `items` sealed tasks of these tasksets, as evenly over topics and levels as possible.

    `levels` restricts the levels; tasksets that lack one are asked on those they have. `exclude` has keys of questions
    that must not be asked. `divided=False` recreates sets recorded before questions belonged to splits. A generated
    task that `trained` matches is redrawn. Raises ExhaustedError if too few different questions exist, and
    CurriculumError if no taskset has any of the levels.
    """
    if items < 1:
        raise CurriculumError(f"invalid number of sealed items ({items})", hint="ask for at least one")
    rng = stable_random("sealed", seed)
    places = _places(catalog, tasksets, levels)
    rng.shuffle(places)
    seen = set(exclude)
    tasks: list[Task] = []
    turn = 0
    while len(tasks) < items:
        place = places[turn % len(places)]
        task = _fresh(catalog, place, turn // len(places), rng, seen, trained, divided=divided)
        if task is not None:
            tasks.append(task)
            turn += 1
            continue
        # This topic is exhausted; the others fill the set, in new rounds.
        places.remove(place)
        turn = 0
        if not places:
            raise ExhaustedError(
                f"only {len(tasks)} of {items} different questions were found", hint="ask for fewer, or more levels"
            )
    return SealedSet(tasks=tuple(tasks), seed=seed)


@dataclass(frozen=True)
class TaskStream:
    """Tasks for training or validation, uniform over topics; `tasks(step, count)` is deterministic.

    `exclude` has the keys of questions to avoid (`SealedSet.questions`).
    """

    split: Split
    seed: int
    exclude: AbstractSet[str] = frozenset()
    shares: Mapping[str, float] | None = None
    """Highest percentage of each taskset in every prefix of a step's tasks; tasksets without one are not drawn. An
    exhausted taskset's share goes to the others, in proportion. None: no limits."""
    tasksets: Sequence[str] = CALCULATORS
    before: Sequence[Task] = ()
    """Tasks to ask before any draw, in an order of each step's own."""
    catalog: Catalog = BUILT_IN
    kept: SeparationIndex | None = None
    """Evaluation questions that no task may copy."""
    thrown_out: Callable[[Match], object] = lambda match: None
    """Called with each copy that was rejected."""
    exhausted: Callable[[str], object] = lambda name: None
    """Called with each taskset that had no new question when its turn came, once per step."""

    def tasks(self, step: int, count: int, known: Difficulty | None = None) -> list[Task]:
        """Returns `count` different tasks of a step; a larger count extends the same list. Levels are uniform, unless
        `known` favours the edge of the model's ability. Raises ExhaustedError if the tasksets have too few."""
        rng = stable_random("stream", self.split.value, self.seed, step)
        seen = set(self.exclude)
        drawn: list[Task] = []
        order = stable_random("pool", self.split.value, self.seed, step)
        pool = order.sample(list(self.before), len(self.before))
        missed: Counter[Place] = Counter()
        spent: set[str] = set()
        told: set[str] = set()
        while len(drawn) < count:
            spent.update(self._used_up(seen))
            may = self._open(drawn, spent)
            for name in self._open(drawn):
                if name in spent and name not in told:
                    told.add(name)
                    self.exhausted(name)
            waiting = next((task for task in pool if task.taskset in may and key_of(task) not in seen), None)
            if waiting is not None:
                pool.remove(waiting)
                seen.add(key_of(waiting))
                drawn.append(waiting)
                continue
            if spent and not may:
                raise nothing_new()
            try:
                task, _ = draw_task(
                    self.split, rng, seen, may, known, self.kept, self.thrown_out, catalog=self.catalog, missed=missed
                )
            except ExhaustedError:
                if not self._open(drawn, spent.union(may)):
                    raise
                spent.update(may)
            else:
                drawn.append(task)
        return drawn

    def without(self, keys: Iterable[str]) -> TaskStream:
        """Returns the same task stream that also avoids the questions with these keys."""
        more = frozenset(keys)
        return replace(self, exclude=self.exclude | more) if more else self

    def _used_up(self, seen: AbstractSet[str]) -> Iterator[str]:
        """Yields the stream's finite tasksets whose items are all in `seen`."""
        for name in self.tasksets:
            finite = self.catalog.finite(name)
            if finite is not None and finite.keys(self.split) <= seen:
                yield name

    def _open(self, drawn: Sequence[Task], spent: AbstractSet[str] = frozenset()) -> list[str]:
        """Returns the tasksets that the next task may come from without exceeding their shares, rounded up. The shares
        of those not `spent` grow to fill a step."""
        left = [name for name in self.tasksets if name not in spent]
        if self.shares is None:
            return left
        shares = {name: self.shares.get(name, 0.0) for name in left}
        together = sum(shares.values())
        grown = WHOLE / together if spent and 0 < together < WHOLE else 1.0
        counts = Counter(task.taskset for task in drawn)
        room = len(drawn) + 1
        return [name for name in left if counts[name] < ceil_share(shares[name] * grown, room)]


def belongs(catalog: Catalog, key: str, taskset: str, split: Split) -> bool:
    """True if that split may ask the question of this key."""
    return is_written(taskset, catalog) or seeds.split_of_question(key) is split


def is_written(taskset: str, catalog: Catalog = BUILT_IN) -> bool:
    """True if the taskset's items were given, not generated, so that it divides them among the splits itself."""
    return catalog.finite(taskset) is not None


def ceil_share(percent: float, of: int) -> int:
    """Returns a percentage of a count, rounded up, so small steps are not left empty."""
    return math.ceil(round(of * percent / 100, 9))


def draw_task(
    split: Split,
    rng: Random,
    seen: set[str],
    tasksets: Sequence[str] = CALCULATORS,
    known: Difficulty | None = None,
    kept: SeparationIndex | None = None,
    thrown_out: Callable[[Match], object] = lambda match: None,
    *,
    catalog: Catalog = BUILT_IN,
    missed: Counter[Place] | None = None,
) -> tuple[Task, TaskDraft]:
    """Draws a task, uniform over these tasksets' topics, then over levels, whose key is not in `seen`; adds the key.
    With `known`, levels at the edge of the model's ability come more often, unless exhausted: `missed` counts that
    across draws. A copy of anything in `kept` is passed to `thrown_out` and redrawn.

    Raises ExhaustedError if no new question is left.
    """
    if not tasksets:
        raise ExhaustedError("no taskset may be drawn", hint="raise the shares of tasksets in the policy's [data]")
    missed = Counter() if missed is None else missed
    for place in _tries(catalog, tasksets, known, missed, rng):
        missed[place] += 1
        name, level, topic = place
        seed = _seed(catalog, split, place, rng)
        try:
            draft = catalog.draft(name, level, seed)
        except ExhaustedError:
            continue  # a finite taskset without items of this level
        if topic and draft.topic != topic:
            continue
        if draft.key in seen or not belongs(catalog, draft.key, name, split):
            continue
        task = catalog.task_of(draft, name, level, seed)
        if kept is not None and (found := kept.met_by(task, written=is_written(name, catalog))) is not None:
            thrown_out(found)
            if is_written(name, catalog):
                seen.add(draft.key)  # a given item has no other wording
            continue
        seen.add(draft.key)
        missed[place] = 0
        return task, draft
    raise nothing_new()


def _seed(catalog: Catalog, split: Split, place: Place, rng: Random) -> int:
    """Draws a seed of that split; if the taskset tells topics beforehand, one of the place's topic."""
    for _ in range(ATTEMPTS):
        seed = seeds.draw(split, rng)
        if not place.topic or catalog.topic(place.taskset, place.level, seed) in (None, place.topic):
            break
    return seed


def nothing_new() -> ExhaustedError:
    return ExhaustedError(
        "no new question was found", hint="ask for fewer tasks, or exclude fewer (fresh_nights in [data])"
    )


def _tries(
    catalog: Catalog, tasksets: Sequence[str], known: Difficulty | None, missed: Mapping[Place, int], rng: Random
) -> Iterator[Place]:
    """Yields places to draw a task from. With `known`, these are its choices, with a topic, while any may have new
    questions; then any taskset and level, `ATTEMPTS` times."""
    weights = [len(catalog.named(name).topics) for name in tasksets]
    levels = {name: catalog.named(name).level_count for name in tasksets}
    topics = {name: catalog.named(name).topics for name in tasksets}
    while known is not None:
        without = {place for place, times in missed.items() if times >= LEVEL_ATTEMPTS}
        if all(place in without for name in tasksets for place in places_of(name, levels[name], topics[name])):
            break
        yield known.choose(levels, weights, rng, without, topics)
    for _ in range(ATTEMPTS):
        name = rng.choices(tasksets, weights)[0]
        yield Place(name, rng.randrange(levels[name]))


@dataclass(frozen=True)
class _Place:
    """Topic of a taskset that each round of a sealed set asks once, with the levels that it cycles through."""

    taskset: str
    topic: str
    levels: tuple[int, ...]


def _places(catalog: Catalog, tasksets: Sequence[str], levels: Sequence[int] | None) -> list[_Place]:
    places = []
    for taskset in map(catalog.named, tasksets):
        allowed = tuple(level for level in range(taskset.level_count) if levels is None or level in levels)
        if allowed:
            places += [_Place(taskset.name, topic, allowed) for topic in taskset.topics]
    if not places:
        raise CurriculumError(f"no taskset has any of the levels {list(levels or ())}", hint="count levels from 0")
    return places


def _fresh(
    catalog: Catalog,
    place: _Place,
    turn: int,
    rng: Random,
    seen: set[str],
    trained: TrainedQuestions | None,
    *,
    divided: bool,
) -> Task | None:
    """Draws a sealed task of one topic whose question is not in `seen`, and adds its key there. None if exhausted.
    Redraws what `trained` matches."""
    for further in range(len(place.levels)):
        level = place.levels[(turn + further) % len(place.levels)]
        for _ in range(ATTEMPTS):
            seed = _seed(catalog, Split.SEALED, Place(place.taskset, level, place.topic), rng)
            try:
                draft = catalog.draft(place.taskset, level, seed)
            except ExhaustedError:
                break
            own = not divided or belongs(catalog, draft.key, place.taskset, Split.SEALED)
            if own and draft.topic == place.topic and draft.key not in seen:
                task = catalog.task_of(draft, place.taskset, level, seed)
                if trained is not None and trained.meets(task) and not is_written(place.taskset, catalog):
                    continue
                seen.add(draft.key)
                return task
    return None
