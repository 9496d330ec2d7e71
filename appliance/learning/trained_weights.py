"""Says what of a model a checkpoint keeps: every weight, or the adapter and the digest of what lies frozen beside it.

What always holds: nothing of the model is changed by a folder that does not fit it. An adapter is only ever put beside
the weights that it was trained with.
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
    """Digest of the frozen weights; empty where there are none."""

    def files(self, *, hashed: bool = True) -> Mapping[str, Content]:
        """What a checkpoint has of the model, beside frozen weights that are looked at as in `require_frozen`."""

    def load(self, folder: Path, files: Mapping[str, bytes], base: str, *, hashed: bool = True) -> None:
        """Puts what `folder` has in its files into the model. Raises CheckpointError when it is of another one, or was
        trained beside other weights than `base`, or as `require_frozen`."""

    def require_frozen(self, *, hashed: bool = True) -> None:
        """Raises CheckpointError when frozen weights have changed: by all their bytes, or unless `hashed` by what torch
        has counted (`frozen_digest`)."""


def weights_of(model: nn.Module) -> TrainedWeights:
    """Makes what keeps a model: its adapter where it has one."""
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
                f"{folder} holds the weights of another architecture",
                hint="load the model folder that it was made from",
            )
        with torch.no_grad():
            for name, tensor in weights.items():
                own[name].copy_(like(own[name], tensor))

    def require_frozen(self, *, hashed: bool = True) -> None:
        """Nothing is frozen."""


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
                f"{folder} holds an adapter for the base model {base[:12] or '(unknown)'}, and this one is "
                f"{self.base[:12]}",
                hint="an adapter belongs to the weights that it was trained beside: load that folder, with the same "
                "training.precision, or start anew",
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
                f"the frozen weights have changed: they are {found[:12]}, and were {self.base[:12]}",
                hint="nothing was saved; start the worker again, which goes on from the last checkpoint",
            )


def _named(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Gives each tensor once, under the first of its names: tied weights are one object."""
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
            f"{folder} is not a checkpoint of this learner: it has no sound {name}",
            hint="go on with the training.method that it was made with, or start anew",
        ) from error
    return found
