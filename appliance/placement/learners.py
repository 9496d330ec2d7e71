"""Has the ranks that train a model run on a host of the cluster, and asks them as if they were here.

What always holds: a checkpoint is written here, whole and under the digest that was written there, or not at all. When
the ranks, their actor or their host end, that is an InfrastructureError: who asked starts again from the last
checkpoint, and the ranks may then be on another host.
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
    """Is a `RankGroup` on one host of the cluster. Not thread-safe."""

    def __init__(
        self,
        ranks: int,
        *,
        cluster: ClusterSettings | None,
        placement: PlacementSettings,
        threads: int | None = None,
        engines: int = 0,
    ) -> None:
        """So many `engines` are in the cluster, too: without GPUs, the host behind theirs is asked first.

        Raises ModelError without a cluster and for more learners than they have GPUs, InfrastructureError where no host
        takes them."""
        require_learners(ranks, placement, clustered=cluster is not None)
        assert cluster is not None
        gpus = placement.learner_gpus
        devices = learner_devices("cuda" if gpus else CPU, ranks, gpus)
        self._placed = PlacedChannel(cluster, PlacementRequest(servant=SERVANT, gpus=gpus, prefer=engines))
        self.folder = make_folder("assay-learners-")
        """What comes back lies here until it is compared."""
        self._written = 0
        try:
            self.pids: list[int] = self._ask("begin", devices=devices, threads=threads)["pids"]
            """Of the ranks, on their host."""
        except BaseException:
            self.close()
            raise

    @property
    def host(self) -> str:
        """Names where they run."""
        return self._placed.host

    @property
    def pid(self) -> int:
        """Of the actor, on its host."""
        return self._placed.pid

    def ask(self, what: str, **message: Any) -> dict[str, Any]:
        """As `RankProcesses.ask`: folders are paths on this machine, whoever reads or writes them."""
        if "folder" not in message:
            return self._ask(what, **message)
        here = Path(message.pop("folder"))
        if what in GIVEN:
            verify(here)  # before it is copied: what is not there is said as it is of learners here
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
                raise InfrastructureError(f"{here} was written otherwise than it arrived", hint=GO_ON)
        self._ask("taken", folder=there)
        return answer

    def close(self) -> None:
        """Ends them. Closing again does nothing."""
        self._placed.close()
        remove_folder(self.folder)

    def _ask(self, what: str, **message: Any) -> dict[str, Any]:
        try:
            answer = self._placed.ask({"ask": what, **message})
        except InfrastructureError as error:
            raise InfrastructureError(
                f"the learners ended while they were asked to {what}: {error}", hint=GO_ON
            ) from error
        if "error" not in answer:
            return answer
        if answer["kind"] in ERRORS:
            raise ERRORS[answer["kind"]](answer["error"], hint=answer["hint"])
        raise InfrastructureError(answer["error"], hint=answer["hint"] or GO_ON)
