"""Chooses tasks at the edge of the model's ability: a pass rate between .2 and .8.

Invariants: everything here is a pure function of the observations and the given generator, so a training run replayed
from its records asks the same tasks. Observations fade, because the model changes: a place that was always or never
solved is retried after a while, and dropped again if nothing changed.

Each (taskset, level, topic) has a Beta posterior over its pass rate, with counts that fade by `FADING` per step. If
half of a level's topics are always solved and the others never, none is at the edge. A choice draws pass rates from
each (Thompson, Biometrika 25, 1933) and takes a place whose draws lie within the band; a place never asked has a wide
posterior and is therefore tried. Within the band a group of rollouts has both passes and failures: dynamic sampling
(2503.14476) discards the groups that this never asks for.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from random import Random
from typing import NamedTuple

from pydantic import Field, PrivateAttr

from runtime.model import FrozenModel

LOW, HIGH = 0.2, 0.8
FADING = 0.95
"""Factor by which counts shrink per step: half is left after about 14 steps."""
WEIGHT = 0.5
"""Count per rollout: rollouts of one task are not independent."""
PRIOR = 2.0
"""Weight of the prior guess, in observations."""
SLOPE = 0.6
"""Factor from a level's pass rate to the prior guess for the next level."""
DRAWS = 4
"""Draws that must all lie within the band. More draws waste fewer tasks on places that are hardly known."""
OUTSIDE = 0.002
"""Weight of a place with a draw outside the band."""
SURE = 0.95
DIGITS = 6
NIGHT = 14
"""Extra steps of fading between two cycles: about half is left."""
LEAST = 0.05
"""Fewest faded observations of a place; below this, it is forgotten."""


class Place(NamedTuple):
    taskset: str
    level: int
    topic: str = ""
    """Topic of the taskset; empty for observations of a whole level."""

    @property
    def key(self) -> str:
        return "/".join((self.taskset, str(self.level), *([self.topic] if self.topic else ())))


_KEY = re.compile(r"(.*?)/(\d+)(?:/(.*))?", re.DOTALL)


def place_of(key: str) -> Place:
    """Returns the place of a key of `Difficulty.counts`."""
    found = _KEY.fullmatch(key)
    return Place(found[1], int(found[2]), found[3] or "") if found else Place(key, 0)


class Seen(NamedTuple):
    """Result of one group of rollouts at a place: how many passed, of those that were judged."""

    place: Place
    passed: int
    judged: int


class LevelState(StrEnum):
    """Assessment of one level of a taskset."""

    NEW = "new"
    EDGE = "at the edge"
    SOLVED = "solved"
    TOO_HARD = "too hard"
    MIXED = "mixed"
    """Some topics of the level are solved, and the others are too hard."""


class PassCounts(FrozenModel):
    """Fading counts of passes and failures at one place, as of `step`."""

    passed: float = Field(ge=0)
    failed: float = Field(ge=0)
    step: int

    def at(self, step: int) -> tuple[float, float]:
        """Returns the counts of passes and failures, faded to a later step."""
        left = FADING ** max(0, step - self.step)
        return self.passed * left, self.failed * left


class Difficulty(FrozenModel):
    """All observed passes and failures by place. In JSON, keys are `taskset/level/topic`."""

    counts: dict[str, PassCounts] = Field(default_factory=dict)
    step: int = 0
    _posteriors: dict[Place, tuple[float, float]] = PrivateAttr(default_factory=dict)

    def after(self, seen: Iterable[Seen]) -> Difficulty:
        """Returns the difficulty state after one more step, with its rollout results added."""
        step = self.step + 1
        counts = dict(self.counts)
        for place, passed, judged in seen:
            if judged <= 0:
                continue
            key = place.key
            known = counts.get(key)
            before = known.at(step) if known is not None else (0.0, 0.0)
            counts[key] = PassCounts(
                passed=round(before[0] + WEIGHT * passed, DIGITS),
                failed=round(before[1] + WEIGHT * (judged - passed), DIGITS),
                step=step,
            )
        return Difficulty(counts=counts, step=step)

    def overnight(self) -> Difficulty:
        """Returns the difficulty state at the start of the next cycle: counts faded, steps counted from 0."""
        left = {key: known.at(self.step + NIGHT) for key, known in self.counts.items()}
        counts = {
            key: PassCounts(passed=round(passed, DIGITS), failed=round(failed, DIGITS), step=0)
            for key, (passed, failed) in left.items()
            if passed + failed >= LEAST
        }
        return Difficulty(counts=counts)

    def posterior(self, place: Place, levels: int) -> tuple[float, float]:
        """Returns the parameters of the Beta distribution of a place's pass rate. `levels` is the taskset's count."""
        if place not in self._posteriors:
            known = self.counts.get(place.key)
            passed, failed = known.at(self.step) if known is not None else (0.0, 0.0)
            guess = self._guess(place, levels)
            self._posteriors[place] = passed + PRIOR * guess, failed + PRIOR * (1 - guess)
        return self._posteriors[place]

    def rate(self, place: Place, levels: int) -> float:
        """Returns the model's expected pass rate at a place: the mean of its posterior."""
        a, b = self.posterior(place, levels)
        return a / (a + b)

    def state(self, place: Place, levels: int, draws: int = 200) -> LevelState:
        """Returns the assessment of a place (new, solved, too hard or between), for people. Deterministic."""
        if place.key not in self.counts:
            return LevelState.NEW
        found = self._drawn(place, levels, draws)
        if sum(one > HIGH for one in found) >= SURE * draws:
            return LevelState.SOLVED
        if sum(one < LOW for one in found) >= SURE * draws:
            return LevelState.TOO_HARD
        return LevelState.EDGE

    def promise(self, place: Place, levels: int, draws: int = 200) -> float:
        """Returns the probability that a place's pass rate lies within the band, for people. Deterministic."""
        return sum(LOW <= one <= HIGH for one in self._drawn(place, levels, draws)) / draws

    def _drawn(self, place: Place, levels: int, draws: int) -> list[float]:
        rng, (a, b) = Random(0), self.posterior(place, levels)
        return [rng.betavariate(a, b) for _ in range(draws)]

    def level_states(self, levels: Mapping[str, int]) -> dict[tuple[str, int], LevelState]:
        """Returns the assessment of each observed level of these tasksets: that of its topics, if they agree, and
        between if any is. `levels` maps each taskset to its number of levels."""
        found: dict[tuple[str, int], set[LevelState]] = {}
        for place in map(place_of, self.counts):
            if place.taskset in levels:
                state = self.state(place, levels[place.taskset])
                found.setdefault((place.taskset, place.level), set()).add(state)
        return {
            level: next(iter(states))
            if len(states) == 1
            else LevelState.EDGE
            if LevelState.EDGE in states
            else LevelState.MIXED
            for level, states in found.items()
        }

    def choose(
        self,
        levels: Mapping[str, int],
        weights: Sequence[float],
        rng: Random,
        without: Container[Place] = (),
        topics: Mapping[str, Sequence[str]] | None = None,
    ) -> Place:
        """Draws the taskset, level and topic to ask next, favouring the edge of the model's ability. `levels` maps each
        taskset to its number of levels, `topics` to its topics, `weights` are relative frequencies, and `without`
        excludes places. Raises ValueError if none is left."""
        places: list[Place] = []
        chances: list[float] = []
        for (taskset, count), weight in zip(levels.items(), weights, strict=True):
            all_of = places_of(taskset, count, (topics or {}).get(taskset))
            found = [place for place in all_of if place not in without]
            places += found
            chances += [weight / len(all_of) * self._promise(place, count, rng) for place in found]
        if not places:
            raise ValueError("no place is left to choose from")
        return rng.choices(places, chances)[0]

    def _promise(self, place: Place, levels: int, rng: Random) -> float:
        """Returns a place's weight in the draw of the next task. It is 1 if all pass rates drawn from its posterior lie
        within the band, else little. A place never asked gets one draw."""
        a, b = self.posterior(place, levels)
        draws = DRAWS if place.key in self.counts else 1
        inside = all(LOW <= rng.betavariate(a, b) <= HIGH for _ in range(draws))
        return 1.0 if inside else OUTSIDE

    def _guess(self, place: Place, levels: int) -> float:
        """Returns the prior pass rate of a place: that of the nearest asked levels of its topic, lower above them,
        higher below, and that of its level's other topics."""
        below = self._nearest(place, range(place.level - 1, -1, -1))
        above = self._nearest(place, range(place.level + 1, levels))
        guesses = [self._by_level[place[:2]]] if place.topic and place[:2] in self._by_level else []
        if below is not None:
            guesses.append(below[1] * SLOPE ** (place.level - below[0]))
        if above is not None:
            guesses.append(1 - (1 - above[1]) * SLOPE ** (above[0] - place.level))
        mean = sum(guesses) / len(guesses) if guesses else 0.5
        return min(0.95, max(0.05, mean))

    def _nearest(self, place: Place, levels: Iterable[int]) -> tuple[int, float] | None:
        for level in levels:
            known = self.counts.get(place._replace(level=level).key)
            if known is not None:
                passed, failed = known.at(self.step)
                return level, (passed + 0.5) / (passed + failed + 1)
        return None

    @cached_property
    def _by_level(self) -> dict[tuple[str, int], float]:
        """Pass rate of each observed level, over its topics."""
        found: dict[tuple[str, int], tuple[float, float]] = {}
        for key, known in self.counts.items():
            level, (passed, failed) = place_of(key)[:2], known.at(self.step)
            before = found.get(level, (0.0, 0.0))
            found[level] = before[0] + passed, before[1] + failed
        return {level: (passed + 0.5) / (passed + failed + 1) for level, (passed, failed) in found.items()}


def places_of(taskset: str, levels: int, topics: Sequence[str] | None = None) -> list[Place]:
    """Returns all places of a taskset with this many levels."""
    return [Place(taskset, level, topic) for level in range(levels) for topic in topics or ("",)]
