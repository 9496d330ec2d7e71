"""What a plan is worked out from: a model, a machine, and how its GPUs are shared out. Nothing is looked up here."""

from __future__ import annotations

from dataclasses import dataclass, replace

GIB = 1 << 30
VLLM_SHARE = 0.92
"""Of each of its GPUs, what vLLM takes by itself."""


@dataclass(frozen=True)
class Shape:
    """What of a model decides what it takes."""

    parameters: int
    """Tied weights counted once."""
    linear: tuple[tuple[int, int], ...]
    """Outputs and inputs of every linear layer that takes an adapter."""
    layers: int
    hidden: int
    intermediate: int
    attention: int
    """Query heads times the size of one."""
    key_value: int
    """Key/value heads times the size of one."""
    vocabulary: int
    tied: bool
    positions: int
    """The most tokens that it reads; 0: not known."""
    file_bytes: int
    """Of its weights on disk."""


@dataclass(frozen=True)
class Gpu:
    name: str
    total: int
    free: int
    flops: float
    """Of bfloat16, a second."""
    bandwidth: float
    """Bytes a second."""


@dataclass(frozen=True)
class Hardware:
    memory: int
    """Bytes that this process may ever have."""
    cores: int
    gpus: tuple[Gpu, ...] = ()
    shared: int = 0
    """Bytes that are free in /dev/shm; 0: not known."""


@dataclass(frozen=True)
class Vllm:
    """What of `[vllm]` decides what an engine takes. Each is a process of its own."""

    given: float | None = None
    """The part of each of its GPUs that was settled; None: what a learner there leaves it, or `VLLM_SHARE`."""
    sleep: int = 0
    """What it gives back while a learner works: 0 nothing, 1 its cache, and its weights wait in memory, 2 both."""
    files: bool = True
    """Whether weights come to it through files in /dev/shm."""
    memory_share: float = VLLM_SHARE
    """The part that it takes, whatever it needs of that; a plan says it."""


@dataclass(frozen=True)
class Layout:
    """How the GPUs of a machine are shared out; on a processor `engines` and `vllm` count."""

    learners: int = 1
    """Each on a GPU of its own, with its part of weights, gradients and moments (FSDP2)."""
    engines: int = 1
    """Each with all rows; on GPUs of its own where those of engines suffice, otherwise all on the same."""
    tensor_parallel: int = 1
    """GPUs that hold an engine together."""
    engine_gpus: int = 1
    """That learners leave to engines where there are enough others; 0 where engines are on other hosts."""
    vllm: Vllm | None = None
    """Where engines are vLLM's."""

    @property
    def together(self) -> int:
        """Engines that are on the same GPUs."""
        return 1 if self.engines * self.tensor_parallel <= self.engine_gpus else self.engines

    def apart(self, gpus: int) -> bool:
        """Whether no learner is on a GPU of an engine's."""
        return self.learners + self.engine_gpus <= gpus


ONE = Layout()


def without_gpus(machine: Hardware) -> Hardware:
    return replace(machine, gpus=())
