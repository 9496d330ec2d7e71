"""Says which device each learner computes on, from what was asked for and what is there. Nothing heavy is imported.

What always holds: no learner takes the processor where a GPU was asked for, and no two take one GPU. GPUs that engines
sample on are left to them where there are enough others.
"""

from __future__ import annotations

from collections.abc import Collection

from appliance.inference.engine import ModelError
from appliance.inference.vllm.placement import VllmSettings

CPU = "cpu"


def learner_devices(asked: str, learners: int, gpus: int, taken: Collection[int] = ()) -> tuple[str, ...]:
    """Gives each of so many learners its device, as torch names it. `asked` is `model.device`, `gpus` how many can be
    used here, `taken` torch's numbers of those that engines sample on. Raises ModelError for more learners than GPUs.
    """
    if asked == CPU or (asked == "auto" and not gpus):
        return (CPU,) * learners
    if not gpus:
        raise ModelError(
            "model.device is cuda, and torch finds no GPU here",
            hint="set model.device to auto or cpu; `assay doctor` says what it finds of GPUs",
        )
    if learners > gpus:
        raise ModelError(
            f"{learners} learners train on a GPU each, and there {'is 1' if gpus == 1 else f'are {gpus}'}",
            hint=f"set model.learners to {gpus} at most, or model.device to cpu",
        )
    free = [number for number in range(gpus) if number not in taken]
    numbers = free if len(free) >= learners else range(gpus)
    return tuple(f"cuda:{number}" for number in numbers[:learners])


def usable_gpus(asked: str) -> int:
    """Counts the GPUs that torch can use here; 0 where `asked` is the processor. None is touched."""
    if asked == CPU:
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def sampled_on(engine: str, vllm: VllmSettings, visible: str | None, *, here: bool, placed: int = 0) -> tuple[int, ...]:
    """Lists the GPUs, by torch's numbers under this CUDA_VISIBLE_DEVICES, that engines of this name sample on where
    they are `here`. Of a cluster they have so many `placed` ones, the first of a host's: it may be this one.

    Raises ModelError where `vllm.gpus` names one that is not visible."""
    if not here:
        return tuple(range(placed))
    return (vllm.torch_gpus(visible) or tuple(range(vllm.tensor_parallel))) if engine == "vllm" else (0,)
