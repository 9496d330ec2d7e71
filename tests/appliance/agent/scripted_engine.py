"""An engine without a model behind it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path

from appliance.inference.engine import Request, Turn


class ScriptedEngine:
    """An engine that says what it was told to, a turn a step: the seam without a model behind it."""

    def __init__(self, scripts: dict[int, list[tuple[int, ...]]]) -> None:
        self._scripts = {name: deque(turns) for name, turns in scripts.items()}
        self._ready: deque[int] = deque()
        self._known: set[int] = set()
        self.forced: dict[int, list[tuple[int, ...]]] = {}
        self.requests: dict[int, Request] = {}
        self.steps = 0

    weights = "scripted"
    tokens_sampled = 0

    def load(self, folder: Path, digest: str) -> None: ...

    def submit(self, request: Request) -> None:
        self._ready.append(request.id)
        self._known.add(request.id)
        self.requests[request.id] = request
        self.forced[request.id] = []

    def step(self) -> Sequence[Turn]:
        self.steps += 1
        turns = []
        for _ in range(len(self._ready)):
            number = self._ready.popleft()
            ids = self._scripts[number].popleft()
            turns.append(Turn(number, ids, tuple(-0.5 for _ in ids), "stop"))
        return turns

    def resume(self, request: int, forced: Sequence[int]) -> None:
        self.forced[request].append(tuple(forced))
        self._ready.append(request)

    def finish(self, request: int) -> None:
        self._known.discard(request)

    @property
    def unfinished(self) -> int:
        return len(self._known)

    @property
    def runnable(self) -> int:
        return len(self._ready)
