"""Is what answers for an engine on a host of the cluster: it keeps the process that holds it, and lands its files.

What always holds: files lie in a folder of mode 0700 that goes with this process, in memory where there is room; of
weights, only those that the engine holds stay. What fails is an answer: who asked has the engine replaced.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from appliance.inference.engine import ModelError
from appliance.inference.vllm.environment import VllmEnvironment, require_environment
from appliance.inference.vllm.process import DivergedError, EngineFault, VllmProcess
from appliance.inference.vllm.transfers.folders import make_folder, remove_folder
from appliance.system.patience import Patience

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
TORCH = "appliance.inference.torch.core"


def torch_environment() -> VllmEnvironment:
    """Is where torch engines run: this interpreter."""
    return VllmEnvironment(Path(sys.executable), "torch", "")


class EngineServant:
    """Answers what a `VllmProcess` answers; paths are names in its folder."""

    def __init__(self) -> None:
        self.folder = make_folder("assay-placed-", SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None)
        self._process: VllmProcess | None = None
        self._landed: dict[str, Path] = {}
        """What the engine holds: the whole weights by an empty name, adapters by theirs."""

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Asks the engine, and says what it answers or why it does not."""
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
            raise EngineFault("nothing is open")
        if kind not in ("load", "adapt"):
            return self._process.ask(kind, **message)
        if kind == "load":
            landed = self.folder / message["weights"]["path"]
            message["weights"]["path"] = str(landed)
        else:
            landed = self.folder / message["path"]
            message["path"] = str(landed)
        answer = self._process.ask(kind, **message)
        # Of a file, the folder that it came in goes with it.
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
