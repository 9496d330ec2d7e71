"""Keeps the engine at the model in service, replacing it as soon as another one is in service.

Invariants: a model is loaded by its digest, pushed with the proof of every push, and answers only with the renderer of
its own files. An unusable model leaves the previous one in place. While none answers, requests get the reason. Failures
of the machine are retried, faults of a model are not.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from appliance.audit.log import AuditError
from appliance.inference.engine import ADAPTER
from appliance.inference.engine_loop import EngineLoop
from appliance.learning.folders import read_verified
from appliance.rendering.formats import load_renderer
from appliance.rendering.guarded import GuardedTokenizer
from appliance.rendering.renderer import Renderer
from runtime.errors import InfrastructureError

log = structlog.get_logger("assay")
NAME = "champion"
SECONDS = 2.0
"""Interval between looks at the alias in service, in seconds."""
PAUSE, LONGEST_PAUSE = 60.0, 3600.0
"""Seconds before a push that failed on the machine is retried: the first pause, doubled each time, and the longest.
Each retry may interrupt the previous model."""


@dataclass(frozen=True)
class ServedModel:
    version: str
    """Digest of the model."""
    renderer: Renderer
    marks: Mapping[int, str]
    """Special tokens of its format, as text, by id."""


class ServedChampion:
    """Context manager that keeps the gateway's engine at the model in service."""

    def __init__(
        self,
        loop: EngineLoop,
        data: Path,
        in_service: Callable[[], str | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepares the thread that follows the model in service. `in_service` returns the model's digest, None without
        one, and raises AuditError."""
        self._loop, self._data, self._in_service, self._clock = loop, data, in_service, clock
        self._closing = threading.Event()
        self._refused = ""
        self._pause = self._again = 0.0
        """Pause before the refused model is retried, and the time at which it ends."""
        self.problem = "no model is in service yet"
        """Reason why no model answers; empty while one does."""
        self.model: ServedModel | None = None
        self._thread = threading.Thread(target=self._run, name="champion", daemon=True)

    def __enter__(self) -> ServedChampion:
        self.look()
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._closing.set()
        self._thread.join()

    def look(self) -> None:
        """Loads the model in service into the engine unless it is there; if the alias is unreadable, the previous one
        stays."""
        try:
            digest = self._in_service()
        except AuditError as error:
            if self.problem != str(error):
                log.warning("the gateway cannot tell which model is in service", problem=str(error))
            self.problem = str(error)
            return
        known = self.model.version if self.model is not None else ""
        if digest is None or digest == known == self._loop.version or self._loop.failure is not None:
            return
        if digest == self._refused and self._clock() < self._again:
            return
        try:
            self.model = self._load(digest)
        except Exception as error:  # noqa: BLE001 - whatever a folder holds: it is told, and the one before goes on
            self._refuse(digest, error)
            self._restore()
        else:
            self._refused, self.problem = "", ""
            log.info("the gateway serves", model=digest[:12])

    def _refuse(self, digest: str, error: Exception) -> None:
        self.problem = f"the model in service, {digest[:12]}, cannot be used here: {str(error)[:300]}"
        if isinstance(error, (InfrastructureError, OSError)):
            self._pause = min(2 * self._pause, LONGEST_PAUSE) if digest == self._refused else PAUSE
            self.problem += f"; it is tried again in {self._pause / 60:.0f} min"
        else:
            self._pause = math.inf
        self._refused, self._again = digest, self._clock() + self._pause
        log.warning("the gateway cannot serve the champion", problem=self.problem)

    def _restore(self) -> None:
        """Reloads the previous model into the engine if a failed push removed it."""
        if self.model is None or self.model.version == self._loop.version:
            return
        try:
            self.model = self._load(self.model.version)
        except Exception as error:  # noqa: BLE001 - as above; whoever asks is told of the one in service
            self.model = None
            log.warning("the gateway cannot serve the previous model either", problem=str(error)[:300])

    def _load(self, digest: str) -> ServedModel:
        files = read_verified(self._data / "models" / digest, expect=digest)
        if ADAPTER in files:
            raise ValueError("it is an adapter without its base")
        renderer = load_renderer(files)
        marks = GuardedTokenizer(files).marks
        self._loop.push(files, digest)
        return ServedModel(digest, renderer, marks)

    def _run(self) -> None:
        while not self._closing.wait(SECONDS):
            self.look()
