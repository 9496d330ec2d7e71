"""Runs the GPU self-test as far as this machine can, and reports the rest as not run.

Invariants: a row without any run part says so, with the reason and its command. Nothing heavy is loaded without an
NVIDIA GPU. A probe that raises has failed; it is never skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from appliance.gpu_selftest.errors import ProbeNotRunError

COMMAND = "assay selftest gpu --only {name}"
NO_GPU = "no GPU"
NO_CUDA = "PyTorch cannot use the GPU here: run install.sh again"
NO_VLLM = "vLLM's GPU environment is missing: run ./install.sh --with vllm"


@dataclass(frozen=True)
class GpuRow:
    """Row of the GPU self-test: one property that only a GPU can show."""

    name: str
    shows: str
    needs_vllm: bool = False
    missing: str = ""
    """Reason that no machine can run it yet; empty if it has a probe."""


@dataclass(frozen=True)
class GpuResult:
    name: str
    shows: str
    outcome: Literal["held", "failed", "not run"]
    seen: str
    """Observation of the probe, or the reason that it did not run."""
    command: str


GPU_ROWS = (
    GpuRow("G1", "a sleeping engine, at both levels, wakes with a push and a proof", needs_vllm=True),
    GpuRow("G2", "seconds per GB of a push by file, ipc and nccl, with equal proofs", needs_vllm=True),
    GpuRow("G3", "CUDA graphs use weights pushed after their recording"),
    GpuRow("G4", "effect of bfloat16 on log-probabilities, with a float32 head and without"),
    GpuRow(
        "G5",
        "sampling masks and traces are replayed",
        missing="not needed: training refuses top-p, top-k and min-p, so no mask is replayed",
    ),
    GpuRow("G6", "tokens per second of a step on half a billion parameters, and share of the data sheet"),
    GpuRow("G7", "cost of preemptions under cache pressure, and none with our scheduler", needs_vllm=True),
    GpuRow("G8", "continuing rollouts during learner steps gains 1.3 times"),
    GpuRow("G9", "adapters on vLLM's kernels, 8-bit moments, offloaded state, FSDP2 over NCCL"),
    GpuRow("G10", "a step that runs out of memory is retried in halves, then refused with a reason"),
)

Probes = Mapping[str, Callable[[], str]]
"""Probes by row name; each raises if its property does not hold, and ProbeNotRunError if nothing ran."""


def run_selftest(gpus: int, *, vllm: bool, only: str = "", probes: Probes | None = None) -> Iterator[GpuResult]:
    """Runs the GPU self-test on a machine with `gpus` GPUs; yields a result for each row, or only for the row named
    `only`."""
    for row in GPU_ROWS:
        if only in ("", row.name):
            yield _result(row, gpus, vllm, probes)


def _result(row: GpuRow, gpus: int, vllm: bool, probes: Probes | None) -> GpuResult:
    command = COMMAND.format(name=row.name)
    if not gpus:
        return GpuResult(row.name, row.shows, "not run", NO_GPU, command)
    if row.missing:
        return GpuResult(row.name, row.shows, "not run", row.missing, command)
    if probes is None and not _cuda_ready():
        return GpuResult(row.name, row.shows, "not run", NO_CUDA, command)
    if row.needs_vllm and not vllm:
        return GpuResult(row.name, row.shows, "not run", NO_VLLM, command)
    try:
        seen = (gpu_probes() if probes is None else probes)[row.name]()
    except ProbeNotRunError as error:
        return GpuResult(row.name, row.shows, "not run", str(error), command)
    except Exception as error:  # noqa: BLE001 - any error is the row's result
        said = " ".join(str(error).split()) or type(error).__name__
        return GpuResult(row.name, row.shows, "failed", said[:400], command)
    return GpuResult(row.name, row.shows, "held", seen, command)


def _cuda_ready() -> bool:
    import torch

    return torch.cuda.is_available()


def gpu_probes() -> Probes:
    """Returns the probes of the GPU self-test for the first GPU. They use a model of half a billion parameters where
    size matters."""
    import torch

    from appliance.gpu_selftest import probe_models as models
    from appliance.gpu_selftest import probes
    from appliance.gpu_selftest.probe_models import ProbeSize
    from appliance.gpu_selftest.probes import PushWay
    from appliance.gpu_selftest.ranks import OverlapSize, rollouts_beside_learner, sharded_learners
    from appliance.inference.gpu_numbers import VISIBLE, shown_gpus
    from appliance.inference.vllm.engine import VllmEngine
    from appliance.inference.vllm.placement import VllmSettings, count_gpus, find_environment, require_environment
    from appliance.inference.vllm.process import VllmProcess
    from appliance.planning.hardware import find_machine
    from appliance.system.patience import Patience

    device = torch.device("cuda", 0)
    small, middling, large = models.SMALL, models.MIDDLING, models.HALF_BILLION
    short = replace(large, tokens=256)
    overlapping = OverlapSize(replace(large, rollouts=64, tokens=1024), drawn=256, rounds=2)
    flops = next((one.flops for one in find_machine().gpus), 0.0)
    found = find_environment()
    shown = shown_gpus(os.environ.get(VISIBLE), count_gpus())
    first, second = (tuple(int(one) for one in part if one.isdecimal()) for part in (shown[:1], shown[1:2]))

    def make(level: int = 0, size: ProbeSize = small, **chosen: object) -> VllmEngine:
        settings = VllmSettings.model_validate({"gpus": first, "memory_share": 0.3, "sleep": level} | chosen)
        return VllmEngine(8, 2 * size.tokens, settings=settings)

    def pressed(cache_bytes: int) -> VllmEngine:
        def start(asked: dict[str, Any]) -> VllmProcess:
            bounded = asked | {"cache_bytes": cache_bytes}
            return VllmProcess(require_environment(), bounded, threads=None, patience=Patience(), gpus=first)

        return VllmEngine(middling.rollouts, middling.tokens, start=start, gpu=True)

    memory = torch.device("cpu")
    two = [f"cuda:{number}" for number in range(min(2, torch.cuda.device_count()))]
    ways = [
        PushWay("file", make, memory),
        PushWay("ipc from memory", partial(make, transfer="ipc"), memory),
        PushWay("ipc from the GPU", partial(make, transfer="ipc"), device),
        PushWay("nccl", partial(make, transfer="nccl", gpus=second), memory),
    ]
    one_gpu = "" if second else "nccl not run: no second GPU is visible by its number"
    ways = ways[:-1] if one_gpu else ways

    def freed(probe: Callable[[], str]) -> Callable[[], str]:
        """Wraps a probe so that all GPU memory is freed after it."""

        def run() -> str:
            try:
                return probe()
            finally:
                models.freed()

        return run

    engine = make if found is not None and found.package == "vllm" else None
    made: dict[str, Callable[[], str]] = {
        "G1": lambda: probes.sleep_and_wake(make, small),
        "G2": lambda: probes.push_each_way(ways, large, one_gpu),
        "G3": lambda: probes.graph_and_push(device, large, partial(make, graphs=True) if engine is not None else None),
        "G4": lambda: probes.half_precision(device, short),
        "G6": lambda: probes.step_time(device, large, flops),
        "G7": lambda: probes.cache_pressure(pressed, middling, 2),
        "G8": lambda: rollouts_beside_learner(device, overlapping),
        "G9": lambda: probes.in_parts(
            lambda: probes.adapter_on_vllm(small, engine),
            lambda: probes.moments_of_8_bits(device, small),
            lambda: probes.state_in_main_memory(device, small),
            lambda: sharded_learners(two, middling),
        ),
        "G10": lambda: probes.memory_ladder(device, models.MIDDLING),
    }
    return {name: freed(probe) for name, probe in made.items()}
