"""Transfers weights in a safetensors file in a folder of mode 0700, in memory if it fits."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from appliance.inference.vllm.transfers import OfferSettings
from appliance.inference.vllm.transfers.folders import private_folder, remove_folder


class WeightFile:
    """Weight offer as a file that stays until removed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def taken(self, readers: int) -> Iterator[dict[str, Any]]:
        yield {"way": "file", "path": str(self.path)}

    def remove(self) -> None:
        remove_folder(self.path.parent)


def offer(tensors: Mapping[str, Tensor], settings: OfferSettings) -> WeightFile:
    """Writes the tensors to a file in a private folder, to be read by engines. Raises OSError without space."""
    folder = private_folder(sum(tensor.nbytes for tensor in tensors.values()), settings.shared)
    try:
        save_file({name: tensor.cpu() for name, tensor in tensors.items()}, folder / "model.safetensors")
    except BaseException as error:
        remove_folder(folder)
        if isinstance(error, SafetensorError):  # its errno appears only in the message
            said = re.search(r"os error (\d+)", str(error))
            raise OSError(int(said[1]) if said else errno.EIO, str(error)) from error
        raise
    return WeightFile(folder / "model.safetensors")


@contextmanager
def received(told: Mapping[str, Any], reader: int) -> Iterator[dict[str, Tensor]]:
    with safe_open(told["path"], framework="pt", device="cpu") as file:
        yield {name: file.get_tensor(name) for name in file.offset_keys()}
