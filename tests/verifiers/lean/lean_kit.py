"""The server in the box as an ordinary process, and what else several of these tests use."""

from __future__ import annotations

import os
import select
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from runtime.programs import READY
from verifiers.boxes.frames import Frames, encode
from verifiers.lean import server
from verifiers.lean.kind import LEAN
from verifiers.lean.toolchain import Toolchain
from verifiers.registry.canaries import specs_of

MOST_SECONDS = 120
SPECS = specs_of(LEAN)
FALSE, TRUE, DEFINED = SPECS["false"], SPECS["true"], SPECS["defined"]


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


def word(number: int) -> bytes:
    return struct.pack("<Q", number)
