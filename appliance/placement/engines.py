"""Creates engines on cluster hosts, supervised like local processes.

Invariants: the trainer's own machine proves each push from the returned values, and keeps each token as sampled. An
engine whose process, actor or host is lost is replaced, if necessary on another host, with the same weights, and
proved; its conversations continue from their tokens (`appliance.inference.vllm`).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from appliance.inference.engine import Engine
from appliance.inference.vllm.engine import VllmEngine
from appliance.inference.vllm.placement import VllmSettings
from appliance.inference.vllm.process import DivergedError, EngineFault, answered
from appliance.inference.vllm.transfers.folders import make_folder, remove_folder
from appliance.learning.folders import MANIFEST, verify, write_folder
from appliance.learning.learner_devices import CPU, learner_devices
from appliance.learning.rank_processes import ERRORS, GO_ON, OnPass
from appliance.placement.engine_servant import GIVEN
from appliance.placement.settings import PlacementSettings, require_engines, require_learners
from runtime.cluster import PlacedChannel, PlacementRequest
from runtime.errors import InfrastructureError
from runtime.settings import ClusterSettings

SERVANT = "appliance.placement.engine_servant:EngineServant"
FILES = {"open": "model", "adapt": "path"}
"""Message fields that are paths on this machine; weights have theirs inside."""


class PlacedEngineProcess:
    """`EngineProcess` that runs on a cluster host. Not thread-safe."""

    def __init__(
        self,
        cluster: ClusterSettings,
        request: PlacementRequest,
        engine: str,
        threads: int | None,
        settings: dict[str, Any],
    ) -> None:
        """Places an engine process on a cluster host. Raises InfrastructureError if no host accepts it, ModelError for
        a permanent problem, EngineFault."""
        self._placed = PlacedChannel(cluster, request)
        self._kind = ""
        """Kind of the last request."""
        self.preempted = 0
        try:
            opened = self.ask("open", engine=engine, threads=threads, **settings)
        except BaseException:
            self.kill()
            raise
        self.cache_tokens: int | None = opened["tokens"]
        self.block = int(opened["block"])
        self.engine_pid = int(opened["pid"])
        """Process id of the computing process, on its host."""

    @property
    def pid(self) -> int:
        """Process id of the actor that owns the engine, on its host."""
        return self._placed.pid

    @property
    def host(self) -> str:
        """Name of the cluster host on which the engine runs."""
        return self._placed.host

    def ask(self, kind: str, **message: Any) -> dict[str, Any]:
        """Sends a request to the engine process and returns its answer; see `EngineProcess`."""
        self.begin(kind, **message)
        return self.answer()

    def begin(self, kind: str, **message: Any) -> None:
        """Sends a request to the engine process without waiting; see `EngineProcess`. Copies local paths to the host
        first."""
        self._kind = kind
        with self._ending():
            if kind in FILES:
                message[FILES[kind]] = self._placed.put(Path(message[FILES[kind]]))
            elif kind == "load":
                told = message["weights"]
                message["weights"] = {**told, "path": self._placed.put(Path(told["path"]))}
            self._placed.begin({"ask": kind, **message})

    def answer(self) -> dict[str, Any]:
        with self._ending():
            answer = self._placed.answer()
        return answered(self._kind, answer)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        try:
            yield
        except InfrastructureError as error:
            raise EngineFault(f"the engine on {self.host} ended during {self._kind}: {error}") from error

    def count_preemptions(self) -> int:
        with suppress(EngineFault, DivergedError):  # the next real request reports them
            self.preempted = int(self.ask("figures")["preemptions"])
        return self.preempted

    def kill(self) -> None:
        self._placed.close()


def make_placed_engines(
    name: str,
    count: int,
    *,
    cluster: ClusterSettings | None,
    placement: PlacementSettings,
    rows: int,
    slots: int,
    threads: int | None = None,
    device: str = "auto",
    dtype: str = "auto",
    vllm: VllmSettings | None = None,
    said: Callable[[str], object] = lambda text: None,
) -> list[Engine]:
    """Creates `count` engines of this name (`torch` or `vllm`) in the cluster, each preferring the next host; reports
    each engine's host to `said`. Raises ModelError for settings not supported in a cluster."""
    require_engines(name, placement, clustered=cluster is not None, device=device, vllm=vllm)
    assert cluster is not None
    begun: Counter[int] = Counter()
    hosts: dict[int, str] = {}

    def start(first: int, settings: dict[str, Any]) -> PlacedEngineProcess:
        # A replacement goes to the next host: the previous host may have failed.
        request = PlacementRequest(servant=SERVANT, gpus=placement.engine_gpus, prefer=first + begun[first])
        begun[first] += 1
        made = PlacedEngineProcess(cluster, request, name, threads, settings)
        before, hosts[first] = hosts.get(first), made.host
        again = "" if before is None else f", replacing one on {before}"
        said(f"engine {first + 1} of {count} samples on {made.host}{again}")
        return made

    gpu = placement.engine_gpus > 0
    return [
        VllmEngine(
            rows,
            slots,
            threads,
            dtype="" if dtype == "auto" else dtype,
            gpu=gpu,
            start=partial(start, number),
            settings=vllm if name == "vllm" else None,
        )
        for number in range(count)
    ]


LEARNER_SERVANT = "appliance.placement.engine_servant:LearnerServant"


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
        self._placed = PlacedChannel(cluster, PlacementRequest(servant=LEARNER_SERVANT, gpus=gpus, prefer=engines))
        self.on_pass: OnPass | None = None
        """Never called: a host reports no passes."""
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
