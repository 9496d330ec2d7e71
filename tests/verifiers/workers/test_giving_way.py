"""Who computes for long gives way to others, and a broker for tools makes nothing ready that no tool needs."""

from __future__ import annotations

import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.backends.cgroups import ControlGroup, Parents
from runtime.errors import InfrastructureError, RefusedError
from runtime.profile import BackendName
from runtime.programs import READY, Program
from runtime.sandbox import Limits
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.boxes import box as boxes_module
from verifiers.boxes.box import ToolBoxes
from verifiers.workers.program import python_folders

SOURCE = """
import os, struct, sys
os.write(1, bytes.fromhex(sys.argv[1]))
def read():
    header = sys.stdin.buffer.read(4)
    return header and sys.stdin.buffer.read(struct.unpack(">I", header)[0])
while asked := read():
    if b"wait" in asked:
        read()
    os.write(1, struct.pack(">I", 2) + b"{}")
"""
"""Answers, or waits for one more word before it does."""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> RuntimeSettings:
    program = Program(
        name="patient",
        argv=(str(Path(sys.executable).resolve()), "-I", "-S", "-c", SOURCE, READY.hex()),
        folders=python_folders(),
        environment={"LD_LIBRARY_PATH": sysconfig.get_config_var("LIBDIR") or "/usr/lib"},
    )
    own = BrokerSettings(
        state_dir=tmp_path_factory.mktemp("state"),
        root_dir=tmp_path_factory.mktemp("roots"),
        backends=(BackendName.NSJAIL,),
        programs=(program,),
    )
    return RuntimeSettings(own=own, backend=BackendName.NSJAIL)


@pytest.fixture(scope="module")
def boxes(settings: RuntimeSettings) -> Iterator[ToolBoxes]:
    with ToolBoxes(settings) as made:
        yield made


def weight_of(name: str) -> Path:
    found = [*Path("/sys/fs/cgroup").glob(f"cpu*/assay-*.{name}/cpu.shares")]
    found += Path("/sys/fs/cgroup").glob(f"**/assay-*.{name}/cpu.weight")
    return found[0]


def test_a_box_gives_way_while_it_is_silent_and_no_longer(boxes: ToolBoxes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes_module, "GIVES_WAY_SECONDS", 0.1)
    monkeypatch.setattr(boxes_module, "GIVES_WAY_UNTIL", 600.0)
    box = boxes.box("patient", memory_mib=64)
    weight = weight_of(box.id)
    usual = int(weight.read_text())
    asking = threading.Thread(target=box.ask, args=({"do": "wait"}, 600.0))
    asking.start()
    deadline = time.monotonic() + 240
    while int(weight.read_text()) * 4 > usual:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    box.send({"do": "go on"}, deadline)
    asking.join()
    while int(weight.read_text()) != usual:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert box.ask({"do": "answer"}, 60) == {}
    box.kill()


def test_a_box_that_is_silent_for_long_has_its_share_again(boxes: ToolBoxes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes_module, "GIVES_WAY_SECONDS", 0.05)
    monkeypatch.setattr(boxes_module, "GIVES_WAY_UNTIL", 0.1)
    box = boxes.box("patient", memory_mib=64)
    calls: list[bool] = []
    monkeypatch.setattr(box, "give_way", calls.append)
    asking = threading.Thread(target=box.ask, args=({"do": "wait"}, 600.0))
    asking.start()
    deadline = time.monotonic() + 240
    while calls != [True, False]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert asking.is_alive()
    box.send({"do": "go on"}, deadline)
    asking.join()
    box.kill()


def test_both_versions_of_the_kernel_s_interface_are_told(tmp_path: Path) -> None:
    for version, file in ((1, "cpu.shares"), (2, "cpu.weight")):
        group = object.__new__(ControlGroup)
        group._version, group._of = version, dict.fromkeys(Parents(version, {"cpu": tmp_path}).folders, tmp_path)
        group.give_way(True)
        lower = int((tmp_path / file).read_text())
        group.give_way(False)
        assert lower * 4 < int((tmp_path / file).read_text())
        group._of["cpu"] = tmp_path / "gone"
        with pytest.raises(InfrastructureError, match="could not be set"):
            group.give_way(True)


def test_tools_need_no_root_of_guests(boxes: ToolBoxes, settings: RuntimeSettings) -> None:
    box = boxes.box("patient", memory_mib=64)
    assert box.ask({"do": "answer"}, 60) == {}
    box.kill()
    assert not list(settings.own.root_dir.glob("root-*"))


def test_a_broker_without_guests_refuses_them(settings: RuntimeSettings) -> None:
    own = settings.own.model_copy(update={"guests": False})
    with (
        Sessions(settings.model_copy(update={"own": own})) as sessions,
        pytest.raises(RefusedError, match="programs only"),
    ):
        sessions.sandbox(Limits()).run("1")
