"""Learner worker on a cluster host: runs the rank processes, and stores their files.

Invariants: all ranks are on this host; if one exits, all end with an error. Files lie in a folder of mode 0700 that is
removed with this process, and are removed once taken.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

from appliance.inference.vllm.transfers.folders import make_folder, remove_folder
from appliance.learning.rank_processes import RankProcesses
from appliance.placement.engine_servant import SHARED_MEMORY
from common.errors import HintedError
from runtime.cluster import PLAIN
from runtime.errors import BadRequestError

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
