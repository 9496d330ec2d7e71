"""The model that the gateway answers with: the one in service, and another one as soon as that is in service.

What always holds: a model is read with its digest, pushed with the proof that every push has, and answers only with the
renderer of its own files. One that cannot be used leaves the one before in place. While none answers, whoever asks is
told so. What the machine failed at is tried again, and what is wrong with a model is not.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
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
"""Between two looks at which model is in service."""
PAUSE, LONGEST_PAUSE = 60.0, 3600.0
"""Seconds until a push is tried again that the machine failed at: after the first failure, twice as many after each
other one, and at most. Each try may take the model before from its askers."""


@dataclass(frozen=True)
class ServedModel:
    version: str
    """Digest of the model."""
    renderer: Renderer
    marks: tuple[str, ...]
    """What stands for special tokens in its format, as text."""


class ServedChampion:
    """Context manager: keeps the engine at the model in service."""

    def __init__(
        self,
        loop: EngineLoop,
        data: Path,
        in_service: Callable[[], str | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`in_service` gives the digest of the model, None where there is none; it raises AuditError."""
        self._loop, self._data, self._in_service, self._clock = loop, data, in_service, clock
        self._closing = threading.Event()
        self._refused = ""
        self._pause = self._again = 0.0
        """How long the one that was refused is left alone, and until when."""
        self.problem = "no model is in service yet"
        """Why there is none; empty while there is one."""
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
        """Takes the model that is in service now, unless it is what the engine holds. Where nobody can say which one
        that is, the one before goes on."""
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
        """Has the model before answer again where a push that failed took it from the engine."""
        if self.model is None or self.model.version == self._loop.version:
            return
        try:
            self.model = self._load(self.model.version)
        except Exception as error:  # noqa: BLE001 - as above; whoever asks is told of the one in service
            self.model = None
            log.warning("nor can it serve the model before", problem=str(error)[:300])

    def _load(self, digest: str) -> ServedModel:
        files = read_verified(self._data / "models" / digest, expect=digest)
        if ADAPTER in files:
            raise ValueError("it is an adapter without its base")
        renderer = load_renderer(files)
        marks = tuple(GuardedTokenizer(files).marks.values())
        self._loop.push(files, digest)
        return ServedModel(digest, renderer, marks)

    def _run(self) -> None:
        while not self._closing.wait(SECONDS):
            self.look()
