"""Holds where vLLM runs: which GPUs, how many for one model, and what it gives back while the learner trains.

What always holds: what this machine, or this version of ours, cannot do is refused before anything starts; nothing that
was asked for is left out silently. Nothing heavy is imported.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from appliance.inference.engine import ModelError
from appliance.inference.gpu_numbers import VISIBLE, shown_gpus
from appliance.inference.vllm.environment import VllmEnvironment
from runtime.model import FrozenModel, UnitName

GPUS = Path("/proc/driver/nvidia/gpus")
"""Where NVIDIA's driver lists what it drives."""
NO_GPU = "this machine has no NVIDIA GPU"


class VllmSettings(FrozenModel):
    gpus: Annotated[tuple[int, ...], UnitName("numbers of GPUs")] = ()
    """The NVIDIA GPUs that vLLM samples on, by the numbers that `nvidia-smi` lists; otherwise all that the worker sees.
    Where they suffice, each of several engines has its own."""
    tensor_parallel: Annotated[int, UnitName("GPUs")] = Field(1, ge=1, le=64)
    """GPUs that hold one model together; each reads its part of a push from the same file."""
    memory_share: Annotated[float | None, UnitName("share")] = Field(None, gt=0, lt=1)
    """The share of a GPU's memory that vLLM takes; otherwise what a learner on the same GPU leaves, or what vLLM takes
    by itself."""
    sleep: Literal[0, 1, 2] = 0
    """What vLLM gives back while the learner trains on the same GPU: 0 nothing, 1 its cache and the weights, which wait
    in memory, 2 both for good. What wakes is pushed to and proved before it samples."""
    graphs: bool = False
    """Whether vLLM records CUDA graphs of decoding, which saves it the launching of kernels, for some seconds at each
    start. A push is proved through them, too."""
    transfer: Literal["file", "ipc", "nccl"] = "file"
    """How weights get to vLLM, which says the digest of what it read: `file`, a safetensors file in /dev/shm; `ipc`,
    memory that both see, which takes no room there; `nccl`, a broadcast from a GPU that vLLM does not sample on."""

    @field_validator("gpus")
    @classmethod
    def _each_once(cls, gpus: tuple[int, ...]) -> tuple[int, ...]:
        if any(number < 0 for number in gpus) or len(set(gpus)) < len(gpus):
            raise ValueError(f"GPUs are numbered from 0, and each is named once, not {list(gpus)}")
        return gpus

    @property
    def needs_gpu(self) -> bool:
        """Whether anything is asked for that only a GPU has."""
        asked = bool(self.gpus) or self.tensor_parallel > 1 or self.memory_share is not None or self.sleep > 0
        return asked or self.graphs or self.transfer == "nccl"

    def torch_gpus(self, visible: str | None) -> tuple[int, ...]:
        """Gives `gpus` the numbers that torch has for them under this CUDA_VISIBLE_DEVICES; None: it is not set.

        Raises ModelError for one that it does not name by its number."""
        shown = [] if visible is None else [word.strip() for word in visible.split(",")]
        for number in self.gpus if visible is not None else ():
            if str(number) not in shown:
                raise ModelError(
                    f"vllm.gpus names GPU {number}, and CUDA_VISIBLE_DEVICES is {visible!a}, without this number",
                    hint="name GPUs in both by the numbers that `nvidia-smi` lists, or unset CUDA_VISIBLE_DEVICES",
                )
        return self.gpus if visible is None else tuple(shown.index(str(number)) for number in self.gpus)

    def offering_device(self, visible: str | None) -> str:
        """Names the first GPU that is not vLLM's, as torch does under this CUDA_VISIBLE_DEVICES."""
        taken = self.torch_gpus(visible)
        return f"cuda:{next(number for number in itertools.count() if number not in taken)}"

    def gpus_of(self, number: int, count: int) -> tuple[int, ...]:
        """Lists the GPUs that one of so many engines sees: `tensor_parallel` of its own, where `gpus` names as many for
        each; otherwise the same as the others."""
        each = self.tensor_parallel
        if count == 1 or count * each > len(self.gpus):
            return self.gpus
        return self.gpus[number * each : (number + 1) * each]

    @property
    def chosen(self) -> tuple[str, ...]:
        """Lists what somebody set to something else than the default, each as `vllm.key = value`."""
        own = type(self).model_fields
        return tuple(f"vllm.{name} = {getattr(self, name)}" for name in own if getattr(self, name) != own[name].default)

    def without_effect(self, engine: str) -> str:
        """Says that what was set changes nothing, where it is another engine that samples; empty otherwise."""
        if engine == "vllm" or not self.chosen:
            return ""
        return f"{', '.join(self.chosen)} changes nothing: model.engine is {engine}"

    def require(self, environment: VllmEnvironment, gpus: int | None = None, visible: str | None = None) -> None:
        """Raises ModelError where a machine with so many GPUs, under this CUDA_VISIBLE_DEVICES (otherwise this machine
        and ours), cannot do what is asked for."""
        if gpus is None:
            gpus, visible = count_gpus(), os.environ.get(VISIBLE)
        shown = len(shown_gpus(visible, gpus))
        if not self.needs_gpu:
            return
        asked = ", ".join(self.chosen)
        if environment.package != "vllm" or not shown:
            why = "vLLM's environment is its build for processors"
            why = why if shown else f"CUDA_VISIBLE_DEVICES is {visible!a}, which shows none" if gpus else NO_GPU
            raise ModelError(f"{asked} needs a GPU, and {why}", hint="remove it from the section [vllm]")
        self.require_gpus(shown, visible)
        if self.transfer == "nccl" and not 0 < len(self.gpus) < shown:
            raise ModelError(
                "vllm.transfer is nccl, which sends from a GPU that vLLM does not sample on",
                hint=f"leave one of {shown} out of vllm.gpus" if shown > 1 else "set vllm.transfer to ipc or file",
            )

    def require_gpus(self, shown: int, visible: str | None) -> None:
        """Raises ModelError where one of `gpus`, or enough for `tensor_parallel`, is not there, of so many that CUDA
        shows under this CUDA_VISIBLE_DEVICES."""
        for number, place in zip(self.gpus, self.torch_gpus(visible), strict=True):
            if place >= shown:
                raise ModelError(
                    f"vllm.gpus names GPU {number}, and CUDA shows {shown} here",
                    hint="`nvidia-smi` lists them, numbered from 0",
                )
        if self.tensor_parallel > (len(self.gpus) or shown):
            raise ModelError(
                f"vllm.tensor_parallel is {self.tensor_parallel}, and vLLM is given {len(self.gpus) or shown} GPUs",
                hint="name more in vllm.gpus, or set it lower",
            )


def count_gpus() -> int:
    """Counts the NVIDIA GPUs that the driver lists."""
    return len(list(GPUS.iterdir())) if GPUS.is_dir() else 0
