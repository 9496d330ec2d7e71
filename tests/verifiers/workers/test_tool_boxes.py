"""Tools in boxes: asked, waited for no longer than was said, killed, and the reason for an end is the kernel's."""

from __future__ import annotations

import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from runtime.conformance import host
from runtime.errors import InfrastructureError, RefusedError
from runtime.profile import BackendName, Cause
from runtime.programs import READY, Program
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.boxes.box import BoxLost, ToolBox, ToolBoxes
from verifiers.workers.program import python_folders

SOURCE = """
import json, os, struct, sys, time
os.write(1, bytes.fromhex(sys.argv[1]))
while header := sys.stdin.buffer.read(4):
    asked = json.loads(sys.stdin.buffer.read(struct.unpack(">I", header)[0]))
    match asked:
        case {"say": said}:
            body = json.dumps(said).encode()
            os.write(1, struct.pack(">I", len(body)) + body)
        case {"raw": text}:
            os.write(1, bytes.fromhex(text))
        case {"eat": size}:
            bytearray(size)
        case {"sleep": seconds}:
            time.sleep(seconds)
        case _:
            sys.exit(3)
"""


@pytest.fixture(scope="module")
def boxes(guest_roots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolBoxes]:
    program = Program(
        name="parrot",
        argv=(str(Path(sys.executable).resolve()), "-I", "-S", "-c", SOURCE, READY.hex()),
        folders=python_folders(),
        environment={"LD_LIBRARY_PATH": sysconfig.get_config_var("LIBDIR") or "/usr/lib"},
    )
    own = BrokerSettings(
        state_dir=tmp_path_factory.mktemp("state"),
        root_dir=guest_roots,
        backends=(BackendName.NSJAIL,),
        programs=(program,),
    )
    with ToolBoxes(RuntimeSettings(own=own)) as made:
        yield made


@pytest.fixture
def box(boxes: ToolBoxes) -> Iterator[ToolBox]:
    made = boxes.box("parrot", memory_mib=64)
    yield made
    made.kill()


def test_what_is_asked_is_answered(box: ToolBox) -> None:
    large = {"text": "x" * 3_000_000}
    assert box.ask({"say": {"a": [1, None]}}, 60) == {"a": [1, None]}
    assert box.ask({"say": large}, 60) == large
    assert box.isolation == "nsjail"
    assert box.usage().cpu_seconds > 0


def test_silence_is_a_time_out_and_the_box_is_ended_by_who_asked(box: ToolBox) -> None:
    started = time.monotonic()
    with pytest.raises(BoxLost) as lost:
        box.ask({"sleep": 600}, 0.3)
    assert lost.value.cause == "timeout"
    assert time.monotonic() - started < 240
    assert box.kill().cause is Cause.ASKED
    assert box.kill().cause is Cause.ASKED


def test_memory_is_told_from_an_end_by_itself(boxes: ToolBoxes) -> None:
    for message, cause in (({"eat": 1 << 27}, "memory"), ({"end": True}, "died")):
        box = boxes.box("parrot", memory_mib=64)
        with pytest.raises(BoxLost) as lost:
            box.ask(message, 60)
        assert lost.value.cause == cause
        assert lost.value.usage.oom_kills == (cause == "memory")


@pytest.mark.parametrize("raw", ["ffffffff", "00000002" + b"{]".hex(), "00000001" + b"7".hex()])
def test_an_answer_that_is_none_is_no_answer(box: ToolBox, raw: str) -> None:
    with pytest.raises(BoxLost) as lost:
        box.ask({"raw": raw}, 60)
    assert lost.value.cause == "died"


def test_a_program_that_nobody_named_is_refused_and_descriptors_do_not_leak(boxes: ToolBoxes) -> None:
    boxes.box("parrot", memory_mib=64).kill()
    before = psutil.Process().num_fds()
    for _ in range(3):
        with pytest.raises(RefusedError, match="no program sh"):
            boxes.box("sh", memory_mib=64)
        boxes.box("parrot", memory_mib=64).kill()
    assert host.becomes_true(lambda: psutil.Process().num_fds() <= before, seconds=120)


def test_closing_ends_what_is_open_and_closed_boxes_say_so(guest_roots: Path, tmp_path: Path) -> None:
    own = BrokerSettings(state_dir=tmp_path / "s", root_dir=guest_roots, backends=(BackendName.NSJAIL,))
    boxes = ToolBoxes(RuntimeSettings(own=own))
    with pytest.raises(RefusedError):
        boxes.box("parrot", memory_mib=64)
    boxes.close()
    boxes.close()
    with pytest.raises(InfrastructureError, match="closed"):
        boxes.box("parrot", memory_mib=64)
