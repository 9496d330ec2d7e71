"""Selects what a checkpoint stores of a model: every weight, or the adapter and the frozen weights' digest.

Invariants: a folder that does not fit changes nothing of the model. An adapter is loaded only beside the weights it was
trained with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import safetensors.torch
import torch
from torch import Tensor, nn

from appliance.inference.adapters import adapter_files, base_digest, frozen_digest, has_adapter
from appliance.inference.engine import ADAPTER
from appliance.inference.shards import like
from appliance.learning.checkpoints import WEIGHTS
from appliance.learning.errors import CheckpointError, LearningError
from appliance.learning.folders import Content
from appliance.learning.lora import load_adapter
from appliance.learning.tensor_file import TensorFile


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
