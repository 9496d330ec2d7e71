"""Ways to get a model's tensors into the processes of an engine: one module each, with both of its sides.

What always holds: what goes from process to process beside the tensors is plain data in a message, and nothing is
unpickled. A way says nothing about whether the weights arrived: the engine's digest and its answers do. A reader's side
needs torch and safetensors only, for it runs in the engine's environment.
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
"""By the name that the configuration gives: the module of this folder that has `offer` and `received`."""


@dataclass(frozen=True)
class OfferSettings:
    shared: Path
    """A folder in memory, for what is a file."""
    device: str
    """What a way computes on that needs a device: `cpu`, or a GPU of the offering process that no engine samples on."""


class WeightOffer(Protocol):
    """Holds tensors for engines to take, as often as an engine has to be started anew."""

    def taken(self, readers: int) -> AbstractContextManager[dict[str, Any]]:
        """Yields what to tell so many readers; they read before it is left. Raises what went wrong on this side."""

    def remove(self) -> None:
        """Gives its memory back. Doing so again does nothing."""


def offer_tensors(way: str, tensors: Mapping[str, Tensor], settings: OfferSettings) -> WeightOffer:
    """Copies tensors to where engines can take them. Raises OSError when there is no room."""
    made: WeightOffer = import_module(f"{__name__}.{WAYS[way]}").offer(tensors, settings)
    return made


@contextmanager
def received_tensors(told: Mapping[str, Any], reader: int) -> Iterator[dict[str, Tensor]]:
    """Yields an offer's tensors by their names, layer by layer; `reader` counts from 0. They are gone afterwards."""
    with import_module(f"{__name__}.{WAYS[told['way']]}").received(told, reader) as tensors:
        yield tensors
