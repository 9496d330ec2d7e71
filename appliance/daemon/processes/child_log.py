"""Where the standard error of a child process goes: a file that cannot grow without end, and its last lines in memory.

What is written there is untrusted (a library may print what a guest wrote); it is kept byte by byte and never shown
without being escaped.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO

from appliance.client.messages import LogPart
from appliance.system.clock import utc_now

LINE_BYTES = 8192
_HAS_TIME = re.compile(rb"\d{4}-\d\d-\d\d|\{|\s|\x1b")
"""How a line begins that says when it was written, or goes on with the one before."""
PART_BYTES = 256 << 10


class ChildLog:
    """Appends to `path`, with the time before each line that has none.

    At `max_bytes` the file becomes `path.1`, the one before `path.2`, the rest is dropped."""

    def __init__(
        self, path: Path, *, max_bytes: int = 1_000_000, keep: int = 3, now: Callable[[], str] = utc_now
    ) -> None:
        self.path = path
        self._now = now
        self._goes_on = False
        self._max_bytes = max_bytes
        self._keep = keep
        self._tail: deque[bytes] = deque(maxlen=40)
        self.trouble = ""

    def drain(self, pipe: IO[bytes]) -> None:
        """Forgets the last lines, then copies lines until the pipe's end; one longer than 8 KiB is cut into several."""
        self.forget()
        while line := pipe.readline(LINE_BYTES):
            self.keep(line)

    def forget(self) -> None:
        """Somebody else speaks from now on; the file stays."""
        self._tail.clear()
        self.trouble = ""

    def keep(self, line: bytes) -> None:
        """A file that cannot be written (a full disk) is said in `trouble`, and no error: a child must not stand still
        because nobody reads what it says."""
        self._tail.append(line)
        timed = line if self._goes_on or _HAS_TIME.match(line) else f"{self._now()[:19]}Z ".encode() + line
        self._goes_on = not line.endswith(b"\n")
        try:
            self._append(timed)
        except OSError as error:
            self.trouble = f"{self.path} cannot be written: {error.strerror}"

    def last_line(self) -> str:
        """The last line that says something, at most 300 characters: for Python programs the exception itself."""
        for line in reversed(self._tail):
            text = line.decode(errors="replace").strip()
            if text:
                return text[:300]
        return ""

    def _append(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size + len(line) > self._max_bytes:
            self._rotate()
        with self.path.open("ab") as file:
            file.write(line)

    def _rotate(self) -> None:
        for number in range(self._keep - 1, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number}")
            if older.exists():
                older.replace(self.path.with_name(f"{self.path.name}.{number + 1}"))
        self.path.replace(self.path.with_name(f"{self.path.name}.1"))


def log_part(path: Path, *, after: int | None, lines: int) -> LogPart:
    """The last lines of a log; with `after`, what came after that position, from the beginning where the file is
    another one since. At most 256 KiB, and a line that is still being written waits for its end."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = max(0, size - PART_BYTES) if after is None else after if after <= size else 0
            file.seek(start)
            content = file.read(PART_BYTES)
    except FileNotFoundError:
        return LogPart(lines=(), position=0)
    whole = content[: content.rfind(b"\n") + 1] or (content if len(content) == PART_BYTES else b"")
    found = [line.decode(errors="replace") for line in whole.splitlines()]
    return LogPart(lines=tuple(found[-lines:] if after is None else found), position=start + len(whole))
