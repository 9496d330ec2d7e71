"""Recent durations and rates of events: the last few of each."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

MOST_SPANS = 256
LATELY_SECONDS = 10.0


class Span(NamedTuple):
    moment: float
    seconds: float


class Spans:
    """Recent durations of named operations. `moment` is on the caller's clock, in seconds."""

    def __init__(self) -> None:
        self._lately: dict[str, deque[Span]] = {}

    def add(self, name: str, seconds: float, moment: float) -> None:
        self._lately.setdefault(name, deque(maxlen=MOST_SPANS)).append(Span(moment, seconds))

    def per_second(self, name: str, moment: float) -> float:
        """Returns the rate of an operation over the last LATELY_SECONDS; slightly low above MOST_SPANS events."""
        spans = self._lately.get(name, ())
        return sum(1 for span in spans if moment - span.moment <= LATELY_SECONDS) / LATELY_SECONDS

    def figures(self) -> dict[str, float]:
        """Returns the median and 95th percentile of each operation's durations, as `NAME_p50_ms` and `NAME_p95_ms`."""
        found = {}
        for name, spans in self._lately.items():
            ordered = sorted(span.seconds for span in spans)
            for percent in (50, 95):
                found[f"{name}_p{percent}_ms"] = round(ordered[(len(ordered) - 1) * percent // 100] * 1e3, 3)
        return found
