"""Runs the ranks that train a model on a cluster host, with the interface of local ones.

Invariants: a checkpoint is written here completely, under the digest from the host, or not at all. If the ranks, their
actor or their host end, an InfrastructureError is raised: the caller restarts from the last checkpoint, possibly on
another host.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from appliance.inference.vllm.transfers.folders import make_folder, remove_folder
from appliance.learning.folders import MANIFEST, verify, write_folder
from appliance.learning.learner_devices import CPU, learner_devices
from appliance.learning.rank_processes import ERRORS, GO_ON
from appliance.placement.learner_servant import GIVEN
from appliance.placement.possible import require_learners
from appliance.placement.settings import PlacementSettings
from runtime.cluster import PlacedChannel, PlacementRequest
from runtime.errors import InfrastructureError
from runtime.settings import ClusterSettings

SERVANT = "appliance.placement.learner_servant:LearnerServant"


class PlacedLearners:
    """Training processes (`RankGroup`) on one cluster host. Not thread-safe."""

    def __init__(
        self,
        ranks: int,
        *,
        cluster: ClusterSettings | None,
        placement: PlacementSettings,
        threads: int | None = None,
        engines: int = 0,
    ) -> None:
        """Places training processes on a cluster host. `engines` is the number of engines in the cluster: without GPUs,
        the host after theirs is preferred. Raises ModelError without a cluster and for more learners than GPUs,
        InfrastructureError if no host accepts them."""
        require_learners(ranks, placement, clustered=cluster is not None)
        assert cluster is not None
        gpus = placement.learner_gpus
        devices = learner_devices("cuda" if gpus else CPU, ranks, gpus)
        self._placed = PlacedChannel(cluster, PlacementRequest(servant=SERVANT, gpus=gpus, prefer=engines))
        self.folder = make_folder("assay-learners-")
        """Folder of received files until verified."""
        self._written = 0
        try:
            self.pids: list[int] = self._ask("begin", devices=devices, threads=threads)["pids"]
            """Process ids of the ranks, on their host."""
        except BaseException:
            self.close()
            raise

    @property
    def host(self) -> str:
        """Name of the cluster host on which the training processes run."""
        return self._placed.host

    @property
    def pid(self) -> int:
        """Process id of the actor that owns the training processes, on its host."""
        return self._placed.pid

    def ask(self, what: str, **message: Any) -> dict[str, Any]:
        """Sends a request to the training processes, as `RankProcesses.ask`; folders are local paths."""
        if "folder" not in message:
            return self._ask(what, **message)
        here = Path(message.pop("folder"))
        if what in GIVEN:
            verify(here)  # before copying: a missing folder raises the same error as local learners
            return self._ask(what, folder=self._placed.put(here), **message)
        self._written += 1
        there = f"w{self._written}"
        answer = self._ask(what, folder=there, **message)
        with tempfile.TemporaryDirectory(dir=self.folder) as text:
            copied = Path(text)
            self._placed.get(there, copied)
            verify(copied, expect=answer["digest"])
            files = {file.name: file for file in copied.iterdir() if file.name != MANIFEST}
            if write_folder(here, files) != answer["digest"]:
                raise InfrastructureError(f"{here} differs from what arrived", hint=GO_ON)
        self._ask("taken", folder=there)
        return answer

    def close(self) -> None:
        """Ends the training processes. Closing again does nothing."""
        self._placed.close()
        remove_folder(self.folder)

    def _ask(self, what: str, **message: Any) -> dict[str, Any]:
        try:
            answer = self._placed.ask({"ask": what, **message})
        except InfrastructureError as error:
            raise InfrastructureError(f"the learners ended during {what}: {error}", hint=GO_ON) from error
        if "error" not in answer:
            return answer
        if answer["kind"] in ERRORS:
            raise ERRORS[answer["kind"]](answer["error"], hint=answer["hint"])
        raise InfrastructureError(answer["error"], hint=answer["hint"] or GO_ON)
