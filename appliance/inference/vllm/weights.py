"""Writes a model's weights into a file that a vLLM process reads, in memory where there is room.

What always holds: the file lies in a folder of mode 0700, it has each tensor once, in the order of the layers, and its
digest is `base_digest` of the model, which the reader computes anew from what it reads.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from appliance.inference.adapters import base_digest, base_tensors
from appliance.inference.engine import ModelFiles
from appliance.inference.vllm.folders import make_folder, remove_folder

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
SPARE = 2
"""Times its size that must be free in shared memory: the last proven file stays until the next one is proved."""


@dataclass(frozen=True)
class WeightFile:
    path: Path
    digest: str
    aliases: dict[str, str] = field(default_factory=dict)
    """Names of tensors that are another's twin (a tied head), and that one's name."""

    def remove(self) -> None:
        """Removes it with its folder."""
        remove_folder(self.path.parent)


def write_weights(model: nn.Module, shared: Path = SHARED_MEMORY) -> WeightFile:
    """Writes all of them but those of an adapter. Raises OSError when there is no room."""
    tensors: dict[str, torch.Tensor] = {}
    aliases: dict[str, str] = {}
    seen: dict[tuple[object, ...], str] = {}
    for name, weight in base_tensors(model):
        where = (weight.data_ptr(), weight.dtype, tuple(weight.shape), weight.stride())
        if weight.numel() and where in seen:
            aliases[name] = seen[where]
        else:
            seen[where] = name
            tensors[name] = weight.detach().cpu().contiguous()
    folder = private_folder(sum(tensor.nbytes for tensor in tensors.values()), shared)
    path = folder / "model.safetensors"
    try:
        save_file(tensors, path)
    except BaseException:
        remove_folder(folder)
        raise
    return WeightFile(path, base_digest(model), aliases)


def write_files(files: ModelFiles, shared: Path = SHARED_MEMORY) -> Path:
    """Writes small files, such as an adapter's, into a folder of their own, and returns it."""
    folder = private_folder(sum(map(len, files.values())), shared)
    for name, content in files.items():
        (folder / Path(name).name).write_bytes(content)
    return folder


def private_folder(size: int, shared: Path = SHARED_MEMORY) -> Path:
    """Makes a folder of mode 0700 in shared memory, or among temporary files where that has no room for `size`."""
    roomy = shared.is_dir() and shutil.disk_usage(shared).free > SPARE * size
    return make_folder("assay-weights-", shared if roomy else None)


def written_config(model: Any) -> str:
    """Returns config.json of a live model, as another transformers reads it."""
    settings = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    settings.pop("_name_or_path", None)
    settings.pop("transformers_version", None)
    settings["dtype"] = "float32"
    return json.dumps(settings, sort_keys=True)
