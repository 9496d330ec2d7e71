"""Documents about models and trainings."""

from __future__ import annotations

from typing import Any

from pydantic import RootModel

from appliance.gpu_selftest.run import GpuResult
from appliance.planning import Hardware, Vllm
from runtime.model import FrozenModel


class ImportedModel(FrozenModel):
    name: str
    folder: str
    digest: str
    parameters: int
    license: str
    known: bool
    """True if the model was registered before, with the same files."""


class ExportedModel(FrozenModel):
    folder: str | None
    """Written folder, or file for llama.cpp."""
    gguf: str | None
    digest: str
    merged: bool
    difference: float
    """Largest difference of log-probabilities between merged and unmerged, in nats."""
    tensors: int | None
    """Tensors in a GGUF file."""


class ProvenanceDocument(FrozenModel):
    subjects: dict[str, str]
    predicate: dict[str, Any]
    """SLSA provenance, version 1."""


class AliasesDocument(RootModel[dict[str, str | None]]):
    """Digest of the model in service under each name."""


class ServedEngine(FrozenModel):
    base_url: str
    model: str
    version: str
    key: str
    """File with the key."""


class GpuSelftest(FrozenModel):
    gpus: int
    rows: tuple[GpuResult, ...]


class PlannedShape(FrozenModel):
    parameters: int
    layers: int
    hidden: int
    intermediate: int
    attention: int
    key_value: int
    vocabulary: int
    tied: bool
    positions: int
    file_bytes: int


class ConfiguredPlan(FrozenModel):
    method: str
    fits: bool
    needed: int
    """Bytes."""
    available: int
    phases: dict[str, int]
    beside: dict[str, int]
    """Machine memory needed beside a GPU, in bytes by phase."""
    limits: dict[str, tuple[int, int]]
    """Further limits by name: bytes needed, bytes available."""
    handed: int
    """Bytes of weights on their way in /dev/shm."""
    parts: dict[str, int]
    hours: float
    engine_share: float
    learners: int
    engines: int
    tensor_parallel: int
    engine_gpus: int
    """GPUs that learners leave to engines if there are enough others."""
    vllm: Vllm | None
    """Settings of vLLM if it samples."""
    fewest_learners: int
    """Smallest number of learners with which the plan fits; 0 if none does."""


class PlannedWay(FrozenModel):
    method: str
    precision: str
    gradient_checkpointing: bool
    fits: bool
    fewest_learners: int
    """Smallest number of learners with which a pass of one conversation fits; 0 if none does."""
    needed: int
    phase: str
    pass_tokens: int
    micro_batch_tokens: int
    """Tokens of the pass that the other figures describe."""
    context: int
    rollouts_at_once: int
    engine_share: float
    hours: float


class PlanDocument(FrozenModel):
    model: str
    shape: PlannedShape
    machine: Hardware
    configured: ConfiguredPlan
    ways: tuple[PlannedWay, ...]


class TrainingPlan(FrozenModel):
    name: str
    about: str
    digest: str
    stages: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    """Values that were scaled down to fit."""
