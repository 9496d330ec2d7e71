"""The model that the gateway answers with: the one in service, and another one as soon as that is in service.

What always holds: a model is read with its digest, pushed with the proof that every push has, and answers only with the
renderer of its own files. While there is none, or it cannot be used, whoever asks is told so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from appliance.inference.engine import ADAPTER
from appliance.inference.engine_loop import EngineLoop
from appliance.learning.folders import read_verified
from appliance.rendering.formats import load_renderer
from appliance.rendering.guarded import GuardedTokenizer
from appliance.rendering.renderer import Renderer

log = structlog.get_logger("assay")
NAME = "champion"
SECONDS = 2.0
"""Between two looks at which model is in service."""


@dataclass(frozen=True)
class ServedModel:
    version: str
    """Digest of the model."""
    renderer: Renderer
    marks: tuple[str, ...]
    """What stands for special tokens in its format, as text."""


class ServedChampion:
    """Context manager: keeps the engine at the model in service."""

    def __init__(self, loop: EngineLoop, data: Path, in_service: Callable[[], str | None]) -> None:
        """`in_service` gives the digest of the model; None where there is none."""
        self._loop, self._data, self._in_service = loop, data, in_service
        self._closing = threading.Event()
        self._refused = ""
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
        """Takes the model that is in service now, if it is another one."""
        digest = self._in_service()
        known = self.model.version if self.model is not None else ""
        if digest is None or digest in (known, self._refused):
            return
        try:
            self.model = self._load(digest)
        except Exception as error:  # noqa: BLE001 - whatever a folder holds: it is told, and the one before goes on
            self._refused = digest
            self.problem = f"the model in service, {digest[:12]}, cannot be used here: {str(error)[:300]}"
            log.warning("the gateway cannot serve the champion", problem=self.problem)
        else:
            self.problem = ""
            log.info("the gateway serves", model=digest[:12])

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
