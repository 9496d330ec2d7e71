"""Offers a model's weights to vLLM processes, and writes its small files.

Invariants: each tensor is transferred once, those of a layer together, and the digest is the model's `base_digest`,
which the reader recomputes from what it reads.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from appliance.inference.adapters import base_digest, base_tensors
from appliance.inference.engine import ModelError, ModelFiles
from appliance.inference.vllm.transfers import OfferSettings, WeightOffer, offer_tensors
from appliance.inference.vllm.transfers.buffer import DTYPES
from appliance.inference.vllm.transfers.folders import SHARED_MEMORY, private_folder, remove_folder


@dataclass
class OfferedWeights:
    """Reference-counted weight offer; freed when the last holder releases it."""

    offer: WeightOffer
    digest: str
    aliases: dict[str, str]
    """Tied tensors, by name, with their twin's name."""
    holders: int = 1

    def held(self) -> Self:
        """Adds a holder of the weight offer, and returns the offer."""
        self.holders += 1
        return self

    def let_go(self) -> None:
        self.holders -= 1
        if self.holders == 0:
            self.offer.remove()


def offer_weights(
    model: nn.Module, way: str = "file", *, shared: Path = SHARED_MEMORY, device: str = "cpu"
) -> OfferedWeights:
    """Offers a model's weights except an adapter's to engine processes, by one of the `transfers`; `device` is used by
    those that need one. Raises OSError without space, ModelError for a data type that this transfer does not support.
    """
    tensors: dict[str, torch.Tensor] = {}
    aliases: dict[str, str] = {}
    seen: dict[tuple[object, ...], str] = {}
    for name, weight in base_tensors(model):
        if way != "file" and weight.dtype not in DTYPES.values():
            raise ModelError(
                f"weights {name}: vllm.transfer = {way} does not support {weight.dtype}",
                hint="set vllm.transfer to file",
            )
        where = (weight.data_ptr(), weight.dtype, tuple(weight.shape), weight.stride())
        if weight.numel() and where in seen:
            aliases[name] = seen[where]
        else:
            seen[where] = name
            tensors[name] = weight.detach().contiguous()
    offer = offer_tensors(way, tensors, OfferSettings(shared, device))
    return OfferedWeights(offer, base_digest(model), aliases)


def write_files(files: ModelFiles, shared: Path = SHARED_MEMORY) -> Path:
    """Writes small files, such as an adapter's, to a new private folder; returns it. Raises OSError without space."""
    folder = private_folder(sum(map(len, files.values())), shared)
    try:
        for name, content in files.items():
            (folder / Path(name).name).write_bytes(content)
    except BaseException:
        remove_folder(folder)
        raise
    return folder


def written_config(model: Any) -> str:
    """Returns the config.json of a live model, readable by another transformers version."""
    settings = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    settings.pop("_name_or_path", None)
    settings.pop("transformers_version", None)
    settings["dtype"] = "float32"
    return json.dumps(settings, sort_keys=True)
