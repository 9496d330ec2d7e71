"""Transfers weights in shared memory: main memory, or a GPU's if the model is on one.

Invariants: main memory is anonymous (memfd_create(2)) and sealed once offered; readers of the same user open it through
the offerer's /proc, and it is freed with its last process, however that ends. It uses no space in /dev/shm. For GPU
memory a reader gets CUDA's handle and torch's reference counter, as numbers and text.
"""

from __future__ import annotations

import base64
import fcntl
import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from appliance.inference.vllm.transfers import OfferSettings
from appliance.inference.vllm.transfers.buffer import Layout, fill, lay_out, views

SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
CUDA_HANDLE = (
    ("handle", bytes),
    ("bytes", int),
    ("offset", int),
    ("counter", bytes),
    ("counter_offset", int),
    ("event", bytes),
    ("event_sync", bool),
)
"""Values of `torch.UntypedStorage._share_cuda_` after the device number, as `_new_shared_cuda` takes them."""


class SharedMemory:
    """Weight offer in shared main memory."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._layout, size = lay_out(tensors)
        self._descriptor = os.memfd_create("assay-weights", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            for row in self._layout:
                self._write(tensors[row["name"]].cpu().view(-1).view(torch.uint8), row["at"])
            os.ftruncate(self._descriptor, size)
            fcntl.fcntl(self._descriptor, fcntl.F_ADD_SEALS, SEALS)
        except BaseException:
            self.remove()
            raise

    def _write(self, part: Tensor, at: int) -> None:
        content = part.numpy().data
        while content:
            written = os.pwrite(self._descriptor, content, at)
            content, at = content[written:], at + written

    @contextmanager
    def taken(self, readers: int) -> Iterator[dict[str, Any]]:
        place = f"/proc/{os.getpid()}/fd/{self._descriptor}"
        yield {"way": "ipc", "layout": self._layout, "memory": place}

    def remove(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


class GpuMemory:
    """Weight offer in memory of the tensors' GPU."""

    def __init__(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        self._layout, size = lay_out(tensors)
        self._memory: Tensor | None = torch.empty(size, dtype=torch.uint8, device=device)
        fill(self._memory, tensors, self._layout)
        torch.cuda.synchronize(device)
        self._gpu = str(torch.cuda.get_device_properties(device).uuid)

    @contextmanager
    def taken(self, readers: int) -> Iterator[dict[str, Any]]:
        assert self._memory is not None
        handles = [self._handle(self._memory) for _ in range(readers)]
        yield {"way": "ipc", "layout": self._layout, "gpu": self._gpu, "handles": handles}

    def _handle(self, memory: Tensor) -> dict[str, Any]:
        """Returns a handle to GPU memory for exactly one reader process, since torch counts them."""
        given = memory.untyped_storage()._share_cuda_()[1:]  # type: ignore[no-untyped-call]
        return {
            name: base64.b64encode(value).decode() if kind is bytes else value
            for (name, kind), value in zip(CUDA_HANDLE, given, strict=True)
        }

    def remove(self) -> None:
        self._memory = None


def offer(tensors: Mapping[str, Tensor], settings: OfferSettings) -> SharedMemory | GpuMemory:
    """Copies the tensors to memory that engine processes can map: their GPU's, or shared main memory. Raises OSError
    without space."""
    devices = {tensor.device for tensor in tensors.values()}
    if len(devices) == 1 and (device := next(iter(devices))).type == "cuda":
        return GpuMemory(tensors, device)
    return SharedMemory(tensors)


@contextmanager
def received(told: Mapping[str, Any], reader: int) -> Iterator[dict[str, Tensor]]:
    if "gpu" in told:
        yield from _on_gpu(told["gpu"], told["handles"][reader], told["layout"])
    else:
        yield from _in_memory(told["memory"], told["layout"])


def _in_memory(place: str, layout: Layout) -> Iterator[dict[str, Tensor]]:
    with Path(place).open("rb") as file:
        # Copy on write, because torch requires writable memory.
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    yield views(torch.frombuffer(memory, dtype=torch.uint8), layout)


def _on_gpu(gpu: str, handle: Mapping[str, Any], layout: Layout) -> Iterator[dict[str, Tensor]]:
    here = [str(torch.cuda.get_device_properties(number).uuid) for number in range(torch.cuda.device_count())]
    if gpu not in here:
        raise RuntimeError(f"the weights are on GPU {gpu}, which this engine does not see: set vllm.transfer = 'file'")
    given = [base64.b64decode(handle[name]) if kind is bytes else handle[name] for name, kind in CUDA_HANDLE]
    storage = torch.UntypedStorage._new_shared_cuda(here.index(gpu), *given)
    memory = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    yield views(memory, layout)
    torch.cuda.synchronize(memory.device)
