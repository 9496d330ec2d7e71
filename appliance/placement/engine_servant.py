"""Engine worker on a cluster host: runs the engine process, and stores its files.

Invariants: files lie in a folder of mode 0700 that is removed with this process, in memory if it fits; only the
engine's current weights are kept. A failure is returned as an answer: the caller replaces the engine.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from appliance.inference.engine import ModelError
from appliance.inference.vllm.placement import VllmEnvironment, require_environment
from appliance.inference.vllm.process import DivergedError, EngineFault, VllmProcess
from appliance.inference.vllm.transfers.folders import make_folder, remove_folder
from appliance.learning.rank_processes import RankProcesses
from appliance.system.patience import Patience
from common.errors import HintedError
from runtime.cluster import PLAIN
from runtime.errors import BadRequestError

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
TORCH = "appliance.inference.torch.core"


def torch_environment() -> VllmEnvironment:
    """Returns the Python environment of torch engines: this interpreter's."""
    return VllmEnvironment(Path(sys.executable), "torch", "")


class EngineServant:
    """Passes requests on a cluster host to its engine process (`VllmProcess`); paths are names in its folder."""

    def __init__(self) -> None:
        self.folder = make_folder("assay-placed-", SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None)
        self._process: VllmProcess | None = None
        self._landed: dict[str, Path] = {}
        """Current files of the engine: whole weights under an empty name, adapters under theirs."""

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Passes a request to the engine process, and returns its answer or error."""
        kind = message.pop("ask")
        try:
            if kind == "open":
                return self._open(**message)
            return self._ask(kind, message)
        except DivergedError as error:
            return {"error": str(error), "kind": "diverged"}
        except ModelError as error:
            return {"error": str(error), "kind": "model", "hint": error.hint}
        except EngineFault as error:
            return {"error": str(error), "kind": "broken"}

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
        remove_folder(self.folder)

    def _open(self, engine: str, threads: int | None, model: str, **settings: Any) -> dict[str, Any]:
        settings["model"] = str(self.folder / model)
        if engine == "torch":
            process = VllmProcess(
                torch_environment(), settings, threads=threads, patience=Patience(), module=TORCH, paths=()
            )
        else:
            process = VllmProcess(require_environment(), settings, threads=threads, patience=Patience())
        self._process = process
        return {"tokens": process.cache_tokens, "block": process.block, "pid": process.pid}

    def _ask(self, kind: str, message: dict[str, Any]) -> dict[str, Any]:
        if self._process is None:
            raise EngineFault("no model is open")
        if kind not in ("load", "adapt"):
            return self._process.ask(kind, **message)
        if kind == "load":
            landed = self.folder / message["weights"]["path"]
            message["weights"]["path"] = str(landed)
        else:
            landed = self.folder / message["path"]
            message["path"] = str(landed)
        answer = self._process.ask(kind, **message)
        # For a file, its folder is removed with it.
        self._replace(message.get("name", ""), landed.parent if kind == "load" else landed)
        for name in message.get("drop", ()):
            self._replace(name, None)
        return answer

    def _replace(self, name: str, folder: Path | None) -> None:
        old = self._landed.pop(name, None)
        if old is not None:
            remove_folder(old)
        if folder is not None:
            self._landed[name] = folder


GIVEN = ("open", "restore", "take_moments")
"""Requests whose folder was copied here before; other folders are written here."""


class LearnerServant:
    """Passes requests on a cluster host to its training processes (`RankProcesses.ask`); folders are names in its own
    folder."""

    def __init__(self) -> None:
        self.folder = make_folder("assay-placed-", SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None)
        self._ranks: RankProcesses | None = None

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Passes a request to the training processes, and returns their answer or error."""
        what = message.pop("ask")
        try:
            if what == "begin":
                self._ranks = RankProcesses(message["devices"], threads=message["threads"])
                return {"pids": self._ranks.pids}
            if "folder" in message and not PLAIN.fullmatch(message["folder"]):
                raise BadRequestError(f"{message['folder']!r} is not a valid folder name")
            if what == "taken":
                shutil.rmtree(self.folder / message["folder"])
                return {}
            assert self._ranks is not None, "learners got a request before they began"
            if "folder" not in message:
                return self._ranks.ask(what, **message)
            place = self.folder / message["folder"]
            answer = self._ranks.ask(what, **{**message, "folder": str(place)})
            if what in GIVEN:
                shutil.rmtree(place)
            return answer
        except HintedError as error:
            return {"error": str(error), "kind": type(error).__name__, "hint": error.hint}

    def close(self) -> None:
        if self._ranks is not None:
            self._ranks.close()
        remove_folder(self.folder)
