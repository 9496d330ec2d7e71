"""Has a model's weights be there for vLLM processes to take, and writes its small files.

What always holds: each tensor is handed over once, those of a layer together, and the digest is `base_digest` of the
model, which the reader computes anew from what it reads.
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
    """Weights for engines to take; they stay until the last of those who hold them has let them go."""

    offer: WeightOffer
    digest: str
    aliases: dict[str, str]
    """Names of tensors that are another's twin (a tied head), and that one's name."""
    holders: int = 1

    def held(self) -> Self:
        """Has one more hold them."""
        self.holders += 1
        return self

    def let_go(self) -> None:
        self.holders -= 1
        if self.holders == 0:
            self.offer.remove()


def offer_weights(
    model: nn.Module, way: str = "file", *, shared: Path = SHARED_MEMORY, device: str = "cpu"
) -> OfferedWeights:
    """Offers all of them but those of an adapter, by one of the `transfers`; `device` is what that way computes on
    where it needs one. Raises OSError when there is no room, ModelError for numbers that this way does not carry."""
    tensors: dict[str, torch.Tensor] = {}
    aliases: dict[str, str] = {}
    seen: dict[tuple[object, ...], str] = {}
    for name, weight in base_tensors(model):
        if way != "file" and weight.dtype not in DTYPES.values():
            raise ModelError(
                f"the weights {name} are of {weight.dtype}, which vllm.transfer = {way} does not carry",
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
    """Writes small files, such as an adapter's, into a folder of their own, and returns it. Raises OSError when there
    is no room."""
    folder = private_folder(sum(map(len, files.values())), shared)
    try:
        for name, content in files.items():
            (folder / Path(name).name).write_bytes(content)
    except BaseException:
        remove_folder(folder)
        raise
    return folder


def written_config(model: Any) -> str:
    """Returns config.json of a live model, as another transformers reads it."""
    settings = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    settings.pop("_name_or_path", None)
    settings.pop("transformers_version", None)
    settings["dtype"] = "float32"
    return json.dumps(settings, sort_keys=True)
