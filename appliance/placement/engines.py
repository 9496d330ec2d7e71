"""Creates engines on cluster hosts, supervised like local processes.

Invariants: the trainer's own machine proves each push from the returned values, and keeps each token as sampled. An
engine whose process, actor or host is lost is replaced, if necessary on another host, with the same weights, and
proved; its conversations continue from their tokens (`appliance.inference.vllm`).
"""

from __future__ import annotations

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
from appliance.placement.possible import require_engines
from appliance.placement.settings import PlacementSettings
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
