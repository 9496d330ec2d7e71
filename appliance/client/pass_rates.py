"""Pass rates by taskset and level over cycles, with a sign for each. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from appliance.records.clustered_interval import AttemptSums
from appliance.records.rollouts import Purpose
from appliance.records.training import PassCount

LOW, HIGH = 0.2, 0.8
"""Range of pass rates worth training on (`curriculum.difficulty`)."""
BLOCKS = "▁▂▃▄▅▆▇█"
NONE = "·"


@dataclass
class RateLine:
    """Rollouts and passes by cycle for one taskset and level."""

    family: str
    level: int | None
    rollouts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    passed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    state: str = ""
    """The sampler's rating at the end of the last cycle that recorded one."""

    def rate(self, cycle: str) -> float | None:
        return self.passed[cycle] / self.rollouts[cycle] if self.rollouts[cycle] else None

    @property
    def name(self) -> str:
        return self.family if self.level is None else f"{self.family} {self.level}"


def lines_of(counts: Sequence[PassCount]) -> list[RateLine]:
    """Sums pass counts into a line for each taskset and level, sorted by name; `counts` start with the oldest cycle."""
    found: dict[tuple[str, int], RateLine] = {}
    for one in counts:
        if one.rollouts:
            line = found.setdefault(
                (one.family, -1 if one.level is None else one.level), RateLine(one.family, one.level)
            )
            line.rollouts[one.cycle] += one.rollouts
            line.passed[one.cycle] += one.passed
            line.state = one.state or line.state
    return [found[key] for key in sorted(found)]


def rates_of(counts: Sequence[PassCount]) -> dict[str, AttemptSums]:
    """Sums the training attempts and passes of each taskset over its levels."""
    found: dict[str, AttemptSums] = {}
    for one in counts:
        if one.purpose is Purpose.TRAIN:
            found[one.family] = found.get(one.family, AttemptSums()) + one.sums
    return found


def block(rate: float | None) -> str:
    """Returns one character that shows a pass rate: the lowest block for 0, a dot without rollouts."""
    return NONE if rate is None else BLOCKS[min(int(rate * len(BLOCKS)), len(BLOCKS) - 1)]


def zone(rate: float) -> str:
    """Returns "hard" for a low pass rate, "easy" for a high one; empty if worth training on."""
    return "hard" if rate < LOW else "easy" if rate > HIGH else ""
