"""A real Lean for the tests of a worker process: made once, its boxes started once."""

from __future__ import annotations

import importlib.util
import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.profile import BackendName
from runtime.programs import READY
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.lean import server
from verifiers.lean.toolchain import Toolchain, find, program
from verifiers.lean.verifier import LeanVerifier
from verifiers.workers.box import ToolBoxes
from verifiers.workers.frames import Frames, encode

MOST_SECONDS = 120


@pytest.fixture(scope="session")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    spec = importlib.util.spec_from_file_location("stand_in", Path(__file__).with_name("stand_in.py"))
    assert spec is not None
    assert spec.loader is not None
    stand_in = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stand_in)
    found = find(stand_in.make(tmp_path_factory.mktemp("lean")))
    assert found is not None
    return found


@pytest.fixture(scope="session")
def boxes(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolBoxes]:
    own = BrokerSettings(
        state_dir=tmp_path_factory.mktemp("state"),
        root_dir=tmp_path_factory.mktemp("roots"),
        backends=(BackendName.NSJAIL,),
        programs=(program(toolchain),),
    )
    with ToolBoxes(RuntimeSettings(own=own), BackendName.NSJAIL) as made:
        yield made


@pytest.fixture(scope="session")
def lean(boxes: ToolBoxes, toolchain: Toolchain) -> Iterator[LeanVerifier]:
    found = LeanVerifier(boxes, toolchain, memory_mib=2560, most=1)
    yield found
    found.close()


class Local:
    """The server as an ordinary process, for tests of the server itself. It is no sandbox."""

    isolation = "process"

    def __init__(
        self,
        toolchain: Toolchain,
        folder: Path,
        *,
        environment: dict[str, str] | None = None,
        flags: tuple[str, ...] = (),
    ) -> None:
        argv = [sys.executable, "-I", "-B", "-S", server.__file__, str(toolchain.library), READY.hex(), *flags]
        known = {"LEAN_PATH": str(toolchain.compiled), "TMPDIR": str(folder), "PATH": os.environ["PATH"]}
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=known | (environment or {}), bufsize=0
        )
        self._frames = Frames()
        assert self._read(len(READY), time.monotonic() + MOST_SECONDS) == READY

    def ask(self, message: dict[str, Any], seconds: float = MOST_SECONDS) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(encode(message))
        deadline = time.monotonic() + max(seconds, MOST_SECONDS)
        while (answer := self._frames.next()) is None:
            self._frames.feed(self._read(1 << 20, deadline))
        assert isinstance(answer, dict)
        return answer

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def _read(self, most: int, deadline: float) -> bytes:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, "no answer in time"
        data = os.read(self.process.stdout.fileno(), most)
        assert data, "the server ended"
        return data


@pytest.fixture(scope="session")
def local(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    found = Local(toolchain, tmp_path_factory.mktemp("steps"))
    yield found
    found.kill()


def word(number: int) -> bytes:
    return struct.pack("<Q", number)
