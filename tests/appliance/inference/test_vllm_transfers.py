"""What is offered is what each reader gets, whichever way it goes, and nobody waits for a reader that is gone."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from appliance.inference.vllm.server.worker import tensors_digest
from appliance.inference.vllm.transfers import WAYS, OfferSettings, WeightOffer, offer_tensors
from appliance.inference.vllm.transfers.buffer import DTYPES, fill, lay_out, views
from appliance.inference.vllm.weights import write_files

READER = """
import json, sys
from appliance.inference.vllm.server.worker import tensors_digest
from appliance.inference.vllm.transfers import received_tensors
with received_tensors(json.loads(sys.argv[1]), int(sys.argv[2])) as tensors:
    print(json.dumps([sorted(tensors), tensors_digest(tensors, {})]))
"""
NO_READER = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
KILLED_READER = READER.replace(
    "with received",
    "import os, signal, threading\nfrom torch import distributed\n"
    "from appliance.inference.vllm.transfers import collective\n"
    "collective._broadcast = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\nwith received",
)


def odd_tensors() -> dict[str, Tensor]:
    """Of each type, and of shapes that are easy to get wrong."""
    drawn = torch.Generator().manual_seed(3)
    found = {
        f"{name}": torch.randint(0, 2, (5, 3), generator=drawn).to(dtype) for name, dtype in reversed(DTYPES.items())
    }
    turned = torch.randn(7, 5, generator=drawn).T
    assert not turned.is_contiguous()
    return found | {"one": torch.tensor(2.5), "none": torch.zeros(0, 4), "turned": turned.contiguous()}


@contextmanager
def offered(way: str, tensors: dict[str, Tensor], shared: Path) -> Iterator[WeightOffer]:
    offer = offer_tensors(way, tensors, OfferSettings(shared, "cpu"))
    try:
        yield offer
    finally:
        offer.remove()


FILES: dict[str, Callable[[Path], object]] = {
    "weights": lambda folder: offer_tensors("file", {"one": torch.zeros(4096)}, OfferSettings(folder, "cpu")),
    "adapter": lambda folder: write_files({"adapter_model.safetensors": bytes(8192)}, folder),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_that_find_no_room_are_the_systems_error_and_leave_nothing(tmp_path: Path, kind: str) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as full:
            FILES[kind](tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (full.value.errno, list(tmp_path.iterdir())) == (errno.EFBIG, [])


def started(told: dict[str, Any], reader: int, program: str = READER) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, json.dumps(told), str(reader)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read(offer: WeightOffer, readers: int) -> list[tuple[list[str], str]]:
    with ExitStack() as processes, offer.taken(readers) as told:
        begun = [processes.enter_context(started(told, reader)) for reader in range(readers)]
        answers = [process.communicate() for process in begun]
    return [tuple(json.loads(out or f'["{error}", ""]')) for out, error in answers]


def lose_reader(offer: WeightOffer, program: str) -> None:
    with offer.taken(1) as told, started(told, 0, program) as process:
        assert process.wait() == -signal.SIGKILL
        raise LookupError("the engine is gone")


@pytest.mark.parametrize("way", WAYS)
def test_each_reader_gets_what_was_offered_as_often_as_it_is_asked_for(way: str, tmp_path: Path) -> None:
    tensors = odd_tensors()
    wanted = [(sorted(tensors), tensors_digest(tensors, {}))]
    with offered(way, tensors, tmp_path) as offer:
        for tensor in tensors.values():  # the learner goes on
            tensor.zero_()
        assert read(offer, 1) == wanted
        assert read(offer, 2) == 2 * wanted
    assert list(tmp_path.iterdir()) == []


def test_shared_memory_has_no_name_cannot_be_changed_and_goes_with_the_offer(tmp_path: Path) -> None:
    with offered("ipc", odd_tensors(), tmp_path) as offer, offer.taken(1) as told:
        assert list(tmp_path.iterdir()) == []
        place = Path(told["memory"])
        with pytest.raises(PermissionError), place.open("r+b") as file:
            file.write(b"other weights")
        with pytest.raises(PermissionError):
            os.truncate(place, 0)
    assert not place.exists()


def test_a_reader_that_dies_in_a_broadcast_or_never_comes_is_not_waited_for(tmp_path: Path) -> None:
    tensors = odd_tensors()
    with offered("nccl", tensors, tmp_path) as offer:
        for program in (NO_READER, KILLED_READER):
            with pytest.raises(LookupError):
                lose_reader(offer, program)
        assert read(offer, 1) == [(sorted(tensors), tensors_digest(tensors, {}))]


def test_nothing_waits_for_readers_that_never_came(tmp_path: Path) -> None:
    with offered("nccl", odd_tensors(), tmp_path) as offer:
        for _ in range(10):
            with pytest.raises(LookupError), offer.taken(1):
                raise LookupError("the engine is gone")
    waiting = [thread for thread in threading.enumerate() if thread.name == "weights"]
    for thread in waiting:
        thread.join(120)
    assert not any(thread.is_alive() for thread in waiting)


def test_what_could_not_be_sent_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from appliance.inference.vllm.transfers import collective

    def full(*_: object) -> None:
        raise RuntimeError("the GPU is full")

    with offered("nccl", odd_tensors(), tmp_path) as offer:
        monkeypatch.setattr(collective, "_broadcast", full)
        with pytest.raises(RuntimeError, match="the weights were not sent: the GPU is full"):
            read(offer, 1)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257])
def test_tensors_that_lie_behind_one_another_do_not_touch(size: int) -> None:
    tensors = {"a": torch.ones(size, dtype=torch.uint8), "b": torch.full((3,), 2.0, dtype=torch.float64)}
    layout, total = lay_out(tensors)
    memory = torch.zeros(total, dtype=torch.uint8)
    fill(memory, tensors, layout)
    assert all(torch.equal(found, tensors[name]) for name, found in views(memory, layout).items())
    assert memory.sum().item() == size + tensors["b"].view(torch.uint8).sum().item()
