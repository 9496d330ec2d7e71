"""Keeps what is trained on at the edge of what the model can do: a pass rate between .2 and .8.

What always holds: all of this is a pure function of what was observed and of the generator that is handed in, so a
training that is repeated from its records asks the same. What was observed fades, because the model changes: what was
always solved, or never, is asked again after a while, and dropped again where nothing changed.

Each (taskset, level) has a Beta posterior over its pass rate, with counts that fade by `FADING` a step. A choice draws
pass rates from each (Thompson, Biometrika 25, 1933) and takes a place whose draws lie within the band; what was never
asked has a wide posterior and is therefore tried. In the band a group of rollouts has right and wrong ones: dynamic
sampling (2503.14476) throws away what this does not ask in the first place.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import NamedTuple

from pydantic import Field

from runtime.model import FrozenModel

LOW, HIGH = 0.2, 0.8
FADING = 0.95
"""What is left of a count after a step: a half after some 14."""
WEIGHT = 0.5
"""What one rollout counts: those of one task are not independent."""
PRIOR = 2.0
"""Observations that a first guess is worth."""
SLOPE = 0.6
"""A level above one that passes so often is taken to pass so much less often, before it is asked."""
DRAWS = 4
"""Draws that have to lie within the band: with more, less is spent on what is hardly known."""
OUTSIDE = 0.002
"""Weight of a place whose draw lies outside of the band."""
SURE = 0.95
DIGITS = 6
NIGHT = 14
"""Steps that a count fades by from one night to the next: about a half is left."""
LEAST = 0.05
"""Observations; of a place of which less is left nothing is known."""


class Place(NamedTuple):
    taskset: str
    level: int


class Seen(NamedTuple):
    """What came of one group: so many of its rollouts passed, of so many that were judged."""

    place: Place
    passed: int
    judged: int


class LevelState(StrEnum):
    """What is thought of a place."""

    NEW = "new"
    EDGE = "at the edge"
    SOLVED = "solved"
    TOO_HARD = "too hard"


class PassCounts(FrozenModel):
    """Fading counts of one place, as they were after `step`."""

    passed: float = Field(ge=0)
    failed: float = Field(ge=0)
    step: int

    def at(self, step: int) -> tuple[float, float]:
        """What is left of them."""
        left = FADING ** max(0, step - self.step)
        return self.passed * left, self.failed * left


class Difficulty(FrozenModel):
    """What was observed so far. JSON by its fields: keys are `taskset/level`."""

    counts: dict[str, PassCounts] = Field(default_factory=dict)
    step: int = 0

    def after(self, seen: Iterable[Seen]) -> Difficulty:
        """What is known once a further step has been observed."""
        step = self.step + 1
        counts = dict(self.counts)
        for place, passed, judged in seen:
            if judged <= 0:
                continue
            key = _key(place)
            known = counts.get(key)
            before = known.at(step) if known is not None else (0.0, 0.0)
            counts[key] = PassCounts(
                passed=round(before[0] + WEIGHT * passed, DIGITS),
                failed=round(before[1] + WEIGHT * (judged - passed), DIGITS),
                step=step,
            )
        return Difficulty(counts=counts, step=step)

    def overnight(self) -> Difficulty:
        """What the next night begins with: the same, faded, its steps counted from 0."""
        left = {key: known.at(self.step + NIGHT) for key, known in self.counts.items()}
        counts = {
            key: PassCounts(passed=round(passed, DIGITS), failed=round(failed, DIGITS), step=0)
            for key, (passed, failed) in left.items()
            if passed + failed >= LEAST
        }
        return Difficulty(counts=counts)

    def posterior(self, place: Place, levels: int) -> tuple[float, float]:
        """The two parameters of the Beta distribution of its pass rate; `levels` is how many its taskset has."""
        known = self.counts.get(_key(place))
        passed, failed = known.at(self.step) if known is not None else (0.0, 0.0)
        guess = self._guess(place, levels)
        return passed + PRIOR * guess, failed + PRIOR * (1 - guess)

    def rate(self, place: Place, levels: int) -> float:
        """Mean of the posterior."""
        a, b = self.posterior(place, levels)
        return a / (a + b)

    def state(self, place: Place, levels: int, draws: int = 200) -> LevelState:
        """What is thought of a place, for people; the same for the same counts."""
        if _key(place) not in self.counts:
            return LevelState.NEW
        rng = Random(0)
        a, b = self.posterior(place, levels)
        found = [rng.betavariate(a, b) for _ in range(draws)]
        if sum(one > HIGH for one in found) >= SURE * draws:
            return LevelState.SOLVED
        if sum(one < LOW for one in found) >= SURE * draws:
            return LevelState.TOO_HARD
        return LevelState.EDGE

    def choose(
        self, levels: Mapping[str, int], weights: Sequence[float], rng: Random, without: Container[Place] = ()
    ) -> Place:
        """Draws a place of these tasksets, each with how many levels it has and how often it may come beside the
        others; none of those `without` which it is asked. Raises ValueError when there is none."""
        places: list[Place] = []
        chances: list[float] = []
        for (taskset, count), weight in zip(levels.items(), weights, strict=True):
            found = [place for level in range(count) if (place := Place(taskset, level)) not in without]
            places += found
            chances += [weight / count * self._promise(place, count, rng) for place in found]
        if not places:
            raise ValueError("there is nothing to choose from")
        return rng.choices(places, chances)[0]

    def _promise(self, place: Place, levels: int, rng: Random) -> float:
        """1 where each draw from its posterior lies within the band, else little; one draw where it was never asked."""
        a, b = self.posterior(place, levels)
        draws = DRAWS if _key(place) in self.counts else 1
        inside = all(LOW <= rng.betavariate(a, b) <= HIGH for _ in range(draws))
        return 1.0 if inside else OUTSIDE

    def _guess(self, place: Place, levels: int) -> float:
        """What is thought before it is asked: what its neighbours pass, less above them and more below."""
        below = self._nearest(place, range(place.level - 1, -1, -1))
        above = self._nearest(place, range(place.level + 1, levels))
        guesses = []
        if below is not None:
            guesses.append(below[1] * SLOPE ** (place.level - below[0]))
        if above is not None:
            guesses.append(1 - (1 - above[1]) * SLOPE ** (above[0] - place.level))
        mean = sum(guesses) / len(guesses) if guesses else 0.5
        return min(0.95, max(0.05, mean))

    def _nearest(self, place: Place, levels: Iterable[int]) -> tuple[int, float] | None:
        for level in levels:
            known = self.counts.get(_key(Place(place.taskset, level)))
            if known is not None:
                passed, failed = known.at(self.step)
                return level, (passed + 0.5) / (passed + failed + 1)
        return None


def _key(place: Place) -> str:
    return f"{place.taskset}/{place.level}"
