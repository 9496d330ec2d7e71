"""Says where the seconds of a training's steps went, apart from sampling and learning.

What always holds: a step's time begins where the step before was learned, or where this worker began to train, and ends
where it is learned itself. An engine waits while it neither samples nor takes weights: tools, verifiers, the learner or
a file are waited for then. vLLM works a few steps ahead by itself; those count as waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

PUSH, CHECKPOINT, WATCH = PARTS = "push", "checkpoint", "watch"


class StepSeconds:
    """Is of one training; not thread-safe."""

    def __init__(self, clock: Callable[[], float], engine_seconds: Callable[[], float]) -> None:
        """`engine_seconds`: how long the engines have sampled by now, for whomever."""
        self._clock, self._engine_seconds = clock, engine_seconds
        self.begin()

    def begin(self) -> None:
        """Begins a step; what was before is nobody's."""
        self._spent = dict.fromkeys(PARTS, 0.0)
        self._began, self._engines_had = self._clock(), self._engine_seconds()

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Counts what is done within as that part."""
        started = self._clock()
        try:
            yield
        finally:
            self._spent[part] += self._clock() - started

    def figures(self) -> dict[str, float]:
        """What the step took for each of these parts by now."""
        return {f"{part}_seconds": seconds for part, seconds in self._spent.items()}

    def end(self) -> dict[str, float]:
        """Ends the step and begins the next one; `engine_wait_share` of its time."""
        took = self._clock() - self._began
        worked = self._engine_seconds() - self._engines_had + self._spent[PUSH]
        self.begin()
        return {"engine_wait_share": min(1.0, max(0.0, 1 - worked / took))} if took > 0 else {}
