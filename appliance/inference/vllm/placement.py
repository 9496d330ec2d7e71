"""Holds where vLLM runs: which GPUs, how many for one model, and what it gives back while the learner trains.

What always holds: what this machine, or this version of ours, cannot do is refused before anything starts; nothing that
was asked for is left out silently. Nothing heavy is imported.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from appliance.inference.engine import ModelError
from appliance.inference.vllm.environment import VllmEnvironment
from runtime.model import FrozenModel, UnitName

GPUS = Path("/proc/driver/nvidia/gpus")
"""Where NVIDIA's driver lists what it drives."""


class VllmSettings(FrozenModel):
    gpus: Annotated[tuple[int, ...], UnitName("numbers of GPUs")] = ()
    """The numbers of the NVIDIA GPUs that vLLM samples on; otherwise all that the worker sees. Where they suffice, each
    of several engines has its own."""
    tensor_parallel: Annotated[int, UnitName("GPUs")] = Field(1, ge=1, le=64)
    """GPUs that hold one model together; each reads its part of a push from the same file."""
    memory_share: Annotated[float | None, UnitName("share")] = Field(None, gt=0, lt=1)
    """The share of a GPU's memory that vLLM takes; otherwise what vLLM takes by itself."""
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

    @property
    def offering_device(self) -> str:
        """Names the first GPU that is not vLLM's, as torch does."""
        return f"cuda:{next(number for number in itertools.count() if number not in self.gpus)}"

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

    def require(self, environment: VllmEnvironment, gpus: int | None = None) -> None:
        """Raises ModelError where a machine with so many GPUs (otherwise this one) cannot do what is asked for."""
        gpus = count_gpus() if gpus is None else gpus
        if not self.needs_gpu:
            return
        asked = ", ".join(self.chosen)
        if environment.package != "vllm" or not gpus:
            why = "this machine has no NVIDIA GPU" if not gpus else "vLLM's environment is its build for processors"
            raise ModelError(f"{asked} needs a GPU, and {why}", hint="remove it from the section [vllm]")
        if self.gpus and max(self.gpus) >= gpus:
            raise ModelError(
                f"vllm.gpus names GPU {max(self.gpus)}, and this machine has {gpus}, numbered from 0",
                hint="`nvidia-smi` lists them",
            )
        if self.transfer == "nccl" and not 0 < len(self.gpus) < gpus:
            raise ModelError(
                "vllm.transfer is nccl, which sends from a GPU that vLLM does not sample on",
                hint=f"leave one of {gpus} out of vllm.gpus" if gpus > 1 else "set vllm.transfer to ipc or file",
            )
        if self.tensor_parallel > (len(self.gpus) or gpus):
            raise ModelError(
                f"vllm.tensor_parallel is {self.tensor_parallel}, and vLLM is given {len(self.gpus) or gpus} GPUs",
                hint="name more in vllm.gpus, or set it lower",
            )


def count_gpus() -> int:
    """Counts the NVIDIA GPUs that the driver lists."""
    return len(list(GPUS.iterdir())) if GPUS.is_dir() else 0
