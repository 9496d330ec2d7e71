"""Finds this machine's memory, cores, free /dev/shm, and NVIDIA GPUs by `nvidia-smi`.

Invariants: nothing is loaded onto a GPU or changed; `nvidia-smi` has a timeout, and without it a machine has no usable
GPU.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from appliance.config.configuration import ModelSettings
from appliance.inference.gpu_numbers import VISIBLE, shown_gpus
from appliance.inference.memory import memory_limit
from appliance.inference.vllm.placement import VllmSettings
from appliance.learning.learner_devices import learner_devices, sampled_on
from appliance.placement.settings import PlacementSettings
from appliance.planning import VLLM_SHARE, Gpu, Hardware, Layout, Vllm

MIB = 1 << 20
SECONDS = 20.0
SPEEDS = (
    ("B200", 2250e12, 8000e9),
    ("H200", 989e12, 4800e9),
    ("H100", 989e12, 3350e9),
    ("A100", 312e12, 1555e9),
    ("L40", 181e12, 864e9),
    ("A6000", 155e12, 768e9),
    ("RTX 5090", 209e12, 1792e9),
    ("RTX 4090", 165e12, 1008e9),
    ("RTX 3090", 71e12, 936e9),
    ("L4", 121e12, 300e9),
    ("A10", 125e12, 600e9),
    ("T4", 65e12, 320e9),
)
"""Part of a GPU's name, bfloat16 (T4: float16) operations per second, bytes per second, from data sheets."""
UNKNOWN = (60e12, 400e9)
"""Assumed speed of an unknown GPU."""


def find_machine() -> Hardware:
    """Returns the hardware of this machine, with the GPUs that CUDA shows."""
    gpus, cores = shown(find_gpus(), os.environ.get(VISIBLE)), len(os.sched_getaffinity(0))
    try:
        native = computes_bfloat16(Path("/proc/cpuinfo").read_text(errors="replace"))
    except OSError:
        native = False
    shared = free_in("/dev/shm")  # noqa: S108
    return Hardware(memory=memory_limit(), cores=cores, gpus=gpus, shared=shared, bfloat16=native)


def computes_bfloat16(cpuinfo: str) -> bool:
    """True if the first processor in the text of /proc/cpuinfo has instructions that multiply bfloat16.

    >>> computes_bfloat16("processor : 0\\nflags : fpu avx512f avx512_bf16\\n")
    True
    """
    flags = next((line.partition(":")[2].split() for line in cpuinfo.splitlines() if line.startswith("flags")), [])
    return bool({"avx512_bf16", "amx_bf16"} & {*flags})


def shown(gpus: tuple[Gpu, ...], visible: str | None) -> tuple[Gpu, ...]:
    """Selects the GPUs visible under CUDA_VISIBLE_DEVICES, in torch's order. If it does not use numbers, returns as
    many with the least free memory."""
    named = shown_gpus(visible, len(gpus))
    if all(map(str.isdecimal, named)):
        return tuple(gpus[int(number)] for number in named)
    return tuple(sorted(gpus, key=lambda one: one.free)[: len(named)])


def free_in(folder: str) -> int:
    """Returns the free bytes of a folder's file system; 0 if unreadable."""
    try:
        space = os.statvfs(folder)
    except OSError:
        return 0
    return space.f_bavail * space.f_frsize


def find_gpus(program: str = "nvidia-smi") -> tuple[Gpu, ...]:
    """Lists the GPUs with their memory by the driver's tool; empty if it is missing, failing or too slow."""
    found = shutil.which(program)
    if found is None:
        return ()
    command = [found, "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits"]
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return read_gpus(asked.stdout)


def read_gpus(table: str) -> tuple[Gpu, ...]:
    """Parses the GPU tool's lines of `name, MiB, MiB free`; skips other lines."""
    gpus = []
    for line in table.splitlines():
        name, *numbers = (part.strip() for part in line.rsplit(",", 2))
        if len(numbers) == 2 and all(number.isdigit() for number in numbers):
            total, free = (int(number) * MIB for number in numbers)
            flops, bandwidth = next((speed for part, *speed in SPEEDS if part in name), UNKNOWN)
            gpus.append(Gpu(name=name, total=total, free=free, flops=flops, bandwidth=bandwidth))
    return tuple(gpus)


def gpu_layout(
    model: ModelSettings, vllm: VllmSettings, placement: PlacementSettings, gpus: int, visible: str | None
) -> Layout:
    """Assigns learners and engines to `gpus` GPUs among those in CUDA_VISIBLE_DEVICES. Raises ModelError for more
    learners than GPUs, and for engines on missing or invisible GPUs."""
    engines_here = placement.engines == "here"
    there = None
    if model.engine == "vllm" and engines_here:
        share = VLLM_SHARE if vllm.memory_share is None and placement.learners != "here" else vllm.memory_share
        there = Vllm(share, vllm.sleep, vllm.transfer == "file", fp8=vllm.fp8)
    if not gpus:
        return Layout(engines=model.engines if engines_here else 1, vllm=there, dtype=model.dtype)
    if there is not None:
        vllm.require_gpus(gpus, visible)
    taken = sampled_on(model.engine, vllm, visible, here=engines_here)
    if placement.learners == "here":
        learner_devices(model.device, model.learners, gpus, taken)
    together = vllm.tensor_parallel if model.engine == "vllm" else 1
    return Layout(model.learners, model.engines, together, len(taken), there, model.dtype)
