"""How long things took lately: the last few of each, as percentiles."""

from __future__ import annotations

from collections import deque

KEPT = 256


class Spans:
    def __init__(self) -> None:
        self._lately: dict[str, deque[float]] = {}

    def add(self, name: str, seconds: float) -> None:
        self._lately.setdefault(name, deque(maxlen=KEPT)).append(seconds)

    def figures(self) -> dict[str, float]:
        """`NAME_p50_ms` and `NAME_p95_ms` of each."""
        found = {}
        for name, spans in self._lately.items():
            ordered = sorted(spans)
            for percent in (50, 95):
                found[f"{name}_p{percent}_ms"] = round(ordered[(len(ordered) - 1) * percent // 100] * 1e3, 3)
        return found
