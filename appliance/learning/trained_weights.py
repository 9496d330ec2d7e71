"""Selects what a checkpoint stores of a model: every weight, or the adapter and the frozen weights' digest.

Invariants: a folder that does not fit changes nothing of the model. An adapter is loaded only beside the weights it was
trained with.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import safetensors.torch
import torch
from torch import Tensor, nn

from appliance.inference.adapters import (
    NAME,
    adapter_files,
    adapter_layers,
    adapter_parameters,
    base_digest,
    frozen_digest,
    has_adapter,
    is_adapter,
    like,
    whole,
)
from appliance.inference.engine import ADAPTER
from appliance.inference.nf4 import Nf4Linear
from appliance.learning.checkpoints import WEIGHTS
from appliance.learning.errors import CheckpointError, LearningError
from appliance.learning.folders import Content
from curriculum.seeds import derive


class TrainedWeights(Protocol):
    base: str
    """Digest of the frozen weights; empty without any."""

    def files(self, *, hashed: bool = True) -> Mapping[str, Content]:
        """Returns the model's trained weights as checkpoint files, after checking frozen ones as `require_frozen`."""

    def load(self, folder: Path, files: Mapping[str, bytes], base: str, *, hashed: bool = True) -> None:
        """Loads the checkpoint files of `folder` into the model. Raises CheckpointError for another model, for frozen
        weights other than `base`, or as `require_frozen`."""

    def require_frozen(self, *, hashed: bool = True) -> None:
        """Raises CheckpointError if the model's frozen weights changed, by all their bytes, or by torch's version
        counts (`frozen_digest`) unless `hashed`."""


def weights_of(model: nn.Module) -> TrainedWeights:
    """Returns the object that saves and loads a model's trained weights: its adapter's if it has one, else all."""
    return AdapterWeights(model) if has_adapter(model) else FullWeights(model)


class FullWeights:
    def __init__(self, model: nn.Module) -> None:
        self.base = ""
        self._model = model

    def files(self, *, hashed: bool = True) -> Mapping[str, Content]:
        return {WEIGHTS: TensorFile(dict(_named(self._model)), {"format": "pt"})}

    def load(self, folder: Path, files: Mapping[str, bytes], base: str, *, hashed: bool = True) -> None:
        weights = _read(folder, files, WEIGHTS)
        own = dict(_named(self._model))
        if {name: one.shape for name, one in own.items()} != {name: one.shape for name, one in weights.items()}:
            raise CheckpointError(
                f"{folder} has the weights of another architecture",
                hint="load the model folder that it was created from",
            )
        with torch.no_grad():
            for name, tensor in weights.items():
                own[name].copy_(like(own[name], tensor))

    def require_frozen(self, *, hashed: bool = True) -> None:
        """Accepts any model: full training leaves none of its weights frozen."""


class AdapterWeights:
    def __init__(self, model: Any) -> None:
        self.base = frozen_digest(model)
        self._model = model

    def files(self, *, hashed: bool = True) -> Mapping[str, Content]:
        self.require_frozen(hashed=hashed)
        return adapter_files(self._model)

    def load(self, folder: Path, files: Mapping[str, bytes], base: str, *, hashed: bool = True) -> None:
        if base != self.base:
            raise CheckpointError(
                f"{folder} has an adapter for the base model {base[:12] or '(unknown)'}, not for {self.base[:12]}",
                hint="an adapter fits only its own base weights: load that folder, with the same "
                "training.precision, or start again",
            )
        self.require_frozen(hashed=hashed)
        try:
            load_adapter(self._model, _read(folder, files, ADAPTER))
        except CheckpointError:
            raise
        except LearningError as error:
            raise CheckpointError(f"{folder}: {error}", hint=error.hint) from error

    def require_frozen(self, *, hashed: bool = True) -> None:
        if (found := (base_digest if hashed else frozen_digest)(self._model)) != self.base:
            raise CheckpointError(
                f"the frozen weights changed from {self.base[:12]} to {found[:12]}",
                hint="nothing was saved; restart the worker to resume from the last checkpoint",
            )


def _named(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yields each of a model's tensors once, under its first name: tied weights are one object."""
    seen: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, tensor


def _read(folder: Path, files: Mapping[str, bytes], name: str) -> dict[str, Tensor]:
    try:
        found: dict[str, Tensor] = safetensors.torch.load(files[name])
    except (KeyError, ValueError, safetensors.SafetensorError) as error:
        raise CheckpointError(
            f"{folder} is not a checkpoint of this learner: {name} is missing or damaged",
            hint="resume with its original training.method, or start again",
        ) from error
    return found


def add_adapter(model: Any, rank: int, alpha: float, seed: int) -> None:
    """Adds a new LoRA adapter to a transformers model in place and freezes the rest; deterministic in `seed`. It adds
    nothing at first, unless packed layers have a `start`. Raises LearningError for a model without linear layers of its
    own, and if other layers would get one: peft includes the fused experts of some mixtures."""
    from peft import LoraConfig, inject_adapter_in_model
    from transformers.pytorch_utils import Conv1D

    linear, head = (nn.Linear, Conv1D), model.get_output_embeddings()
    names = [name for name, one in model.named_modules() if isinstance(one, linear) and one is not head]
    config = LoraConfig(
        r=rank,
        lora_alpha=alpha,  # type: ignore[arg-type]
        lora_dropout=0.0,
        bias="none",
        target_modules=names,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive("lora", seed))
        try:
            inject_adapter_in_model(config, model)
        except ValueError as error:
            raise LearningError(
                f"{type(model).__name__} takes no adapter: {error}", hint="set training.method to full"
            ) from error
    if not all(isinstance(layer.get_base_layer(), linear) for layer in adapter_layers(model)):
        raise LearningError(
            f"{type(model).__name__} takes no adapter: its fused experts would get one too",
            hint="set training.method to full",
        )
    for layer in adapter_layers(model):
        packed = layer.get_base_layer()
        if isinstance(packed, Nf4Linear) and packed.start is not None:
            first, second = packed.start
            layer.lora_A[NAME].weight.data = first.to(packed.packed.device)
            layer.lora_B[NAME].weight.data = second.to(packed.packed.device) / layer.scaling[NAME]
            packed.start = None
    trained = 0
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(is_adapter(name))
        if is_adapter(name):
            parameter.data = parameter.data.float()
            trained += parameter.numel()
    if not trained:
        raise LearningError(f"no layer of {type(model).__name__} takes an adapter", hint="set training.method to full")


def load_adapter(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copies saved LoRA adapter values into the model. Raises LearningError if shapes differ."""
    own = adapter_parameters(model)
    if {name: one.shape for name, one in own.items()} != {name: one.shape for name, one in tensors.items()}:
        raise LearningError(
            "the adapter has other layers or another rank",
            hint="use the model folder and recipe that it was created with",
        )
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(like(parameter, tensors[name]))


def delta(layer: Any) -> Tensor:
    """Returns what a layer's LoRA adapter adds to its weight, float32, in the weight's shape."""
    with torch.no_grad():
        found: Tensor = layer.get_delta_weight(NAME)
        return found.float()


_NAMES = {
    torch.float64: "F64",
    torch.int64: "I64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int16: "I16",
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.bool: "BOOL",
}
_ORDER = {dtype: place for place, dtype in enumerate((torch.float64, torch.int64, torch.float32, torch.int32))} | {
    dtype: 4 + place
    for place, dtype in enumerate((torch.bfloat16, torch.float16, torch.int16, torch.int8, torch.uint8, torch.bool))
}


class TensorFile:
    """Content of a safetensors file as an iterable of chunks, repeatable. Tensors are read when their turn comes."""

    def __init__(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
        self._tensors = sorted(tensors.items(), key=lambda item: (_ORDER[item[1].dtype], item[0]))
        self._metadata = metadata

    def __iter__(self) -> Iterator[bytes | memoryview]:
        header: dict[str, object] = {"__metadata__": dict(self._metadata)} if self._metadata else {}
        start = 0
        for name, tensor in self._tensors:
            end = start + tensor.numel() * tensor.element_size()
            header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
            start = end
        written = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        written += b" " * (-len(written) % 8)
        yield struct.pack("<Q", len(written))
        yield written
        for _, tensor in self._tensors:
            yield whole(tensor.detach()).cpu().contiguous().flatten().view(torch.uint8).numpy().data
