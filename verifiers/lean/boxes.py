"""Boxes with Lean: some only compile what models wrote, others only check the result, others only run a second kernel.

Invariants: a box of one role never does the other's work, so no check box has ever run a submission's code. A box that
gave no answer is killed. Safe for several threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal, Protocol

from runtime.errors import SandboxError
from verifiers.lean.running import wall_limit

Role = Literal["compile", "check", "kernel"]
GRACE = 5.0
"""Seconds beyond a step's maximum duration for the box to report the timeout."""
LONGEST = 2
"""Multiple of a step's wall-clock limit: a header may have to be imported first."""
CLOSED = "this Lean verifier is closed"
CALLS = 2000
"""Steps after which a box is replaced."""


class LeanBox(Protocol):
    """Sandbox that runs Lean's steps, as implemented by verifiers.boxes.box.ToolBox."""

    isolation: Any

    def ask(self, message: dict[str, Any], seconds: float) -> dict[str, Any]: ...

    def kill(self) -> Any: ...


class LeanUnavailable(Exception):
    """No sandbox for Lean is available, or its Lean does not work."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class LeanBoxes:
    def __init__(self, launch: Callable[[], LeanBox], most: int) -> None:
        """Creates an empty pool of boxes that `launch` starts on demand. `most`: concurrent steps per role."""
        self._launch = launch
        self._free: dict[Role, list[tuple[LeanBox, int]]] = {"compile": [], "check": [], "kernel": []}
        self._places = {role: threading.BoundedSemaphore(most) for role in self._free}
        self._lock = threading.Lock()
        self._busy: set[LeanBox] = set()
        self._closed = False
        self.replays = False
        """True if the boxes can replay a compiled file; known after the first box."""
        self.headers = ""
        """`warm`, or why the boxes cannot preimport headers; known after the first box."""

    def ask(self, role: Role, message: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Runs a Lean step in a free or new box; returns its answer and the box's isolation. Raises LeanUnavailable,
        and the box's own errors (BoxLost)."""
        with self._places[role]:
            box, calls = self._take(role)
            try:
                answer = box.ask(message, LONGEST * wall_limit(message) + GRACE)
            except BaseException:
                with self._lock:
                    self._busy.discard(box)
                box.kill()
                raise
            isolation = str(box.isolation)
            self._put(role, box, calls + 1)
            return answer, isolation

    def close(self) -> None:
        """Kills all boxes, including busy ones, whose callers get BoxLost."""
        with self._lock:
            self._closed = True
            boxes = [*self._busy, *(box for free in self._free.values() for box, _ in free)]
            for free in self._free.values():
                free.clear()
        for box in boxes:
            box.kill()

    def _take(self, role: Role) -> tuple[LeanBox, int]:
        with self._lock:
            if self.is_closed():
                raise LeanUnavailable(CLOSED)
            if self._free[role]:
                found = self._free[role].pop()
                self._busy.add(found[0])
                return found
        try:
            box = self._launch()
        except SandboxError as error:
            raise LeanUnavailable(f"no box for Lean: {error}", getattr(error, "hint", "")) from error
        description = box.ask({"do": "describe", "kernel": role == "kernel"}, 60.0)
        if description.get("problem"):
            box.kill()
            part = "a second kernel" if role == "kernel" else "Lean"
            raise LeanUnavailable(
                f"{part} does not work here: {description['problem']}", "Run `assay doctor` to see which one this is."
            )
        self.replays = description.get("replay") in ("library", "tool")
        self.headers = str(description.get("headers", ""))[:1000]
        with self._lock:
            self._busy.add(box)
        if self.is_closed():
            box.kill()
            raise LeanUnavailable(CLOSED)
        return box, 0

    def is_closed(self) -> bool:
        return self._closed

    def _put(self, role: Role, box: LeanBox, calls: int) -> None:
        with self._lock:
            self._busy.discard(box)
            if not self._closed and calls < CALLS:
                self._free[role].append((box, calls))
                return
        box.kill()
