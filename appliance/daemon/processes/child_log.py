"""Log of a child's standard error: a size-limited file, and its last lines in memory.

Its content is untrusted (a library may print what a guest wrote); it is stored byte by byte and never shown without
being escaped.
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
"""Start of a line that has a timestamp or continues the previous line."""
PART_BYTES = 256 << 10


class ChildLog:
    """Appends lines of a child's output to the file `path`, adding a timestamp where one is missing.

    At `max_bytes` the file becomes `path.1`, the previous one `path.2`; older ones are dropped.
    """

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
        """Logs lines from a child's pipe until its end; lines over 8 KiB are split. Clears the last lines of the
        previous child first."""
        self.forget()
        while line := pipe.readline(LINE_BYTES):
            self.keep(line)

    def forget(self) -> None:
        """Clears the last lines in memory for a new child; the log file stays."""
        self._tail.clear()
        self.trouble = ""

    def keep(self, line: bytes) -> None:
        """Appends a line of a child's output to the log. A write error (a full disk) is only noted in `trouble`: a
        child must not block because its output is not read."""
        self._tail.append(line)
        timed = line if self._goes_on or _HAS_TIME.match(line) else f"{self._now()[:19]}Z ".encode() + line
        self._goes_on = not line.endswith(b"\n")
        try:
            self._append(timed)
        except OSError as error:
            self.trouble = f"{self.path} cannot be written: {error.strerror}"

    def last_line(self) -> str:
        """Returns the child's last non-empty line, at most 300 characters: for Python programs the exception."""
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
    """Returns the last lines of a log file; with `after`, everything after that position, or from the start if the file
    was replaced. At most 256 KiB; an unfinished line is left for later."""
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
