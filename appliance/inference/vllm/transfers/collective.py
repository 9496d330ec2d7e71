"""Broadcasts weights from the offering process to all readers: NCCL between GPUs, gloo on CPUs.

Invariants: both sides meet through a file in a folder of mode 0700, and a group lasts for one transfer, so a replaced
engine leaves nothing behind. The tensors stay in main memory on both sides, and a GPU has one piece at a time. The
sender survives readers that die, hang or never connect.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed
from torch._C._distributed_c10d import FileStore, PrefixStore

from appliance.inference.vllm.transfers import OfferSettings
from appliance.inference.vllm.transfers.buffer import DTYPES
from appliance.inference.vllm.transfers.folders import private_folder, remove_folder

PIECE = 256 << 20
"""Bytes per broadcast."""
DEADLINE = timedelta(minutes=10)
"""Timeout of a group for a missing member, during a piece and while meeting."""
POLL_SECONDS = 0.01
END_SECONDS = 10.0
"""Seconds for an abandoned sender to end before its file is removed; without the file torch retries for minutes, and
keeps the tensors."""


class Broadcast:
    """Weight offer that is broadcast again to each engine."""

    def __init__(self, tensors: Mapping[str, Tensor], settings: OfferSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._tensors = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}

    @contextmanager
    def taken(self, readers: int) -> Iterator[dict[str, Any]]:
        """Broadcasts the offered tensors to one engine at a time. Raises RuntimeError if the group broke without an
        error from its readers."""
        with self._lock, self._sent(readers) as told:
            yield told

    @contextmanager
    def _sent(self, readers: int) -> Iterator[dict[str, Any]]:
        device = torch.device(self._settings.device)
        backend = "nccl" if device.type == "cuda" else "gloo"
        folder = private_folder(0, self._settings.shared)
        sending = _Sending(list(self._tensors.values()), folder / "store", readers, backend, device)
        rows = [
            {"name": name, "dtype": str(one.dtype).removeprefix("torch."), "shape": list(one.shape)}
            for name, one in self._tensors.items()
        ]
        sending.start()
        try:
            yield {"way": "nccl", "backend": backend, "store": str(folder / "store"), "readers": readers, "rows": rows}
            sending.join()
        except BaseException:
            sending.give_up()
            sending.join(END_SECONDS)
            raise
        finally:
            remove_folder(folder)
        if sending.error is not None:
            raise RuntimeError(f"the weights were not sent: {sending.error}") from sending.error

    def remove(self) -> None:
        self._tensors = {}


class _Sending(threading.Thread):
    """Thread that broadcasts tensors once all readers are connected."""

    def __init__(self, tensors: list[Tensor], store: Path, readers: int, backend: str, device: torch.device) -> None:
        super().__init__(name="weights", daemon=True)
        self._tensors, self._store, self._readers = tensors, store, readers
        self._backend, self._device = backend, device
        self._given_up = threading.Event()
        self._group: Any = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            store = FileStore(str(self._store), self._readers + 1)
            ready = [_ready(reader) for reader in range(self._readers)]
            while not store.check(ready):
                if self._given_up.wait(POLL_SECONDS):
                    return
            self._group = _make_group(store, 0, self._readers + 1, self._backend)
            for tensor in self._tensors:
                for piece in _pieces(tensor):
                    if self._given_up.is_set():
                        return
                    _broadcast(self._group, piece.to(self._device))
        except Exception as error:  # noqa: BLE001 - any error is raised by the waiting caller
            # Without the traceback, whose frames would keep the group alive and its readers waiting.
            self.error = error.with_traceback(None)
        finally:
            self._group = None

    def give_up(self) -> None:
        """Ends the sending thread soon: during a broadcast with its readers, while meeting by `DEADLINE`."""
        self._given_up.set()
        if (group := self._group) is not None:
            with suppress(RuntimeError):
                group.abort()


def offer(tensors: Mapping[str, Tensor], settings: OfferSettings) -> Broadcast:
    return Broadcast(tensors, settings)


@contextmanager
def received(told: Mapping[str, Any], reader: int) -> Iterator[dict[str, Tensor]]:
    on_gpu = told["backend"] == "nccl"
    device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")
    store = FileStore(told["store"], told["readers"] + 1)
    store.set(_ready(reader), "")
    group = _make_group(store, reader + 1, told["readers"] + 1, told["backend"])
    found = {}
    for row in told["rows"]:
        tensor = found[row["name"]] = torch.empty(row["shape"], dtype=DTYPES[row["dtype"]])
        for piece in _pieces(tensor):
            given = torch.empty_like(piece, device=device) if on_gpu else piece
            _broadcast(group, given)
            if on_gpu:
                piece.copy_(given)
    del group
    yield found


def _ready(reader: int) -> str:
    return f"ready {reader}"


def _make_group(store: Any, rank: int, size: int, backend: str) -> Any:
    """Creates a torch process group separate from this process's own."""
    apart = PrefixStore("weights", store)
    if backend == "nccl":
        os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
        options = distributed.ProcessGroupNCCL.Options()
        options._timeout = DEADLINE
        return distributed.ProcessGroupNCCL(apart, rank, size, options)
    gloo: Any = distributed.ProcessGroupGloo
    local = gloo._Options()
    local._devices, local._timeout = [gloo.create_device(interface="lo")], DEADLINE
    return gloo(apart, rank, size, local)


def _broadcast(group: Any, piece: Tensor) -> None:
    options = distributed.BroadcastOptions()
    options.rootRank, options.rootTensor = 0, 0
    group.broadcast([piece], options).wait()
    if piece.device.type == "cuda":
        torch.cuda.synchronize(piece.device)


def _pieces(tensor: Tensor) -> Iterator[Tensor]:
    flat = tensor.view(-1).view(torch.uint8)
    for at in range(0, flat.numel(), PIECE):
        yield flat[at : at + PIECE]
