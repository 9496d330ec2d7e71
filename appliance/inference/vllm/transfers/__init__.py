"""Transfers of a model's tensors to the processes of an engine: one module per way, with both sides.

Invariants: besides the tensors only plain data is exchanged, and nothing is unpickled. A transfer does not confirm
arrival: the engine's digest and answers do. The reader's side needs only torch and safetensors, since it runs in the
engine's environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import Tensor

WAYS = {"file": "file", "ipc": "ipc", "nccl": "collective"}
"""Module in this folder, with `offer` and `received`, by its configured name."""


@dataclass(frozen=True)
class OfferSettings:
    shared: Path
    """Folder in memory, for files."""
    device: str
    """Device for transfers that need one: `cpu`, or a GPU of the offering process that no engine uses."""


class WeightOffer(Protocol):
    """Tensors offered to engine processes, repeatedly if an engine restarts."""

    def taken(self, readers: int) -> AbstractContextManager[dict[str, Any]]:
        """Offers the tensors to `readers` engine processes, who must read within the context; yields the message for
        them. Raises errors of this side."""

    def remove(self) -> None:
        """Frees the memory of the offered tensors. Removing again does nothing."""


def offer_tensors(way: str, tensors: Mapping[str, Tensor], settings: OfferSettings) -> WeightOffer:
    """Copies tensors to where engine processes can read them, by the transfer `way`. Raises OSError without space."""
    made: WeightOffer = import_module(f"{__name__}.{WAYS[way]}").offer(tensors, settings)
    return made


@contextmanager
def received_tensors(told: Mapping[str, Any], reader: int) -> Iterator[dict[str, Tensor]]:
    """Context that reads an offer's tensors in an engine process: yields them by name, valid within it; `reader` counts
    from 0."""
    with import_module(f"{__name__}.{WAYS[told['way']]}").received(told, reader) as tensors:
        yield tensors
