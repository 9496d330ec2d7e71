"""Chooses the learners' devices from settings and available GPUs. Imports nothing heavy.

Invariants: no learner falls back to the CPU when a GPU was requested, and no two share a GPU. GPUs used by engines are
avoided while enough others exist.
"""

from __future__ import annotations

from collections.abc import Collection

from appliance.inference.engine import ModelError
from appliance.inference.vllm.placement import VllmSettings

CPU = "cpu"


def learner_devices(asked: str, learners: int, gpus: int, taken: Collection[int] = ()) -> tuple[str, ...]:
    """Returns a torch device name per learner. `asked` is `model.device`, `gpus` the usable GPUs, `taken` the torch
    numbers used by engines. Raises ModelError for more learners than GPUs."""
    if asked == CPU or (asked == "auto" and not gpus):
        return (CPU,) * learners
    if not gpus:
        raise ModelError(
            "model.device is cuda, but torch finds no GPU here",
            hint="set model.device to auto or cpu, or run `assay doctor` to list GPUs",
        )
    if learners > gpus:
        raise ModelError(
            f"{learners} learners need a GPU each, but there {'is 1' if gpus == 1 else f'are {gpus}'}",
            hint=f"set model.learners to {gpus} at most, or model.device to cpu",
        )
    free = [number for number in range(gpus) if number not in taken]
    numbers = free if len(free) >= learners else range(gpus)
    return tuple(f"cuda:{number}" for number in numbers[:learners])


def usable_gpus(asked: str) -> int:
    """Counts the GPUs that torch can use, without touching one; 0 if `asked` is cpu."""
    if asked == CPU:
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def sampled_on(engine: str, vllm: VllmSettings, visible: str | None, *, here: bool, placed: int = 0) -> tuple[int, ...]:
    """Returns the GPUs that the sampling engines use, as torch numbers under this CUDA_VISIBLE_DEVICES (`visible`). For
    engines elsewhere in a cluster, returns the first `placed` numbers, since a host may be this one. Raises ModelError
    if `vllm.gpus` names an invisible GPU."""
    if not here:
        return tuple(range(placed))
    return (vllm.torch_gpus(visible) or tuple(range(vllm.tensor_parallel))) if engine == "vllm" else (0,)
