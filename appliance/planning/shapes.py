"""Inputs of a plan: a model, a machine, and the layout of its GPUs. Nothing is queried here."""

from __future__ import annotations

from dataclasses import dataclass, replace

GIB = 1 << 30
VLLM_SHARE = 0.92
"""vLLM's default share of each of its GPUs."""


@dataclass(frozen=True)
class Shape:
    """Properties of a model that decide its memory use."""

    parameters: int
    """Parameters, with tied weights counted once."""
    linear: tuple[tuple[int, int], ...]
    """Outputs and inputs of every linear layer that takes an adapter."""
    layers: int
    hidden: int
    intermediate: int
    attention: int
    """Query heads times head size."""
    key_value: int
    """Key/value heads times head size."""
    vocabulary: int
    tied: bool
    positions: int
    """Maximum tokens; 0: unknown."""
    file_bytes: int
    """Bytes of its weights on disk."""


@dataclass(frozen=True)
class Gpu:
    name: str
    total: int
    free: int
    flops: float
    """bfloat16 operations per second."""
    bandwidth: float
    """Bytes per second."""


@dataclass(frozen=True)
class Hardware:
    memory: int
    """Memory limit of this process, in bytes."""
    cores: int
    gpus: tuple[Gpu, ...] = ()
    shared: int = 0
    """Free bytes in /dev/shm; 0: unknown."""
    bfloat16: bool = False
    """True if the CPU multiplies bfloat16 itself (AVX512_BF16 or AMX)."""


@dataclass(frozen=True)
class Vllm:
    """Settings of `[vllm]` that decide an engine's memory. Each engine is a process."""

    given: float | None = None
    """Configured share of each of its GPUs; None: what a learner leaves, or `VLLM_SHARE`."""
    sleep: int = 0
    """Memory freed while a learner works: 0 none, 1 its cache, with weights moved to main memory, 2 both."""
    files: bool = True
    """True if weights arrive through files in /dev/shm."""
    memory_share: float = VLLM_SHARE
    """Share that it takes, set by a plan."""
    fp8: bool = False
    """True if it computes linear layers in 8 bits."""


@dataclass(frozen=True)
class Layout:
    """Assignment of a machine's GPUs to learners and engines; on a CPU only `engines` and `vllm` count."""

    learners: int = 1
    """Learners, each on a GPU of its own, with a shard of weights, gradients and moments (FSDP2)."""
    engines: int = 1
    """Engines with all rows each; on GPUs of their own if there are enough, else all on the same."""
    tensor_parallel: int = 1
    """GPUs that share one engine."""
    engine_gpus: int = 1
    """GPUs reserved for engines if enough exist; 0 if engines are on other hosts."""
    vllm: Vllm | None = None
    """Settings if engines are vLLM's."""
    dtype: str = "auto"
    """Number format of engines, as in `[model]`."""

    def number_bytes(self, *, gpu: bool) -> int:
        """Returns the bytes of a number in an engine's layers and KV cache."""
        return 2 if self.dtype == "bfloat16" or (self.dtype == "auto" and gpu) else 4

    @property
    def together(self) -> int:
        """Number of engines that share the same GPUs."""
        return 1 if self.engines * self.tensor_parallel <= self.engine_gpus else self.engines

    def apart(self, gpus: int) -> bool:
        """True if no learner shares a GPU with an engine."""
        return self.learners + self.engine_gpus <= gpus


ONE = Layout()


def without_gpus(machine: Hardware) -> Hardware:
    return replace(machine, gpus=())
