"""What a failed snippet leaves behind for its author: one line, and the frames of the author's own code."""

from __future__ import annotations

import json
from types import FrameType, TracebackType

FILENAME = "<call>"
ERROR_CHARS = 400
FRAMES = 4


def describe(error: BaseException) -> str:
    """`Type: message` on one line; an exception that cannot even be printed still gets its type."""
    name = type(error).__name__
    try:
        message = " ".join(str(error).split())
    except BaseException:  # noqa: BLE001
        message = "(its message could not be made)"
    line = f"{name}: {message}" if message else name
    return line if len(line) <= ERROR_CHARS else line[: ERROR_CHARS - 3] + "..."


def frames(trace: TracebackType | None, source: str) -> str:
    """The innermost frames of the snippet itself, each with its line of source when that line is known."""
    lines = source.split("\n")
    own: list[tuple[int, FrameType]] = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            own.append((trace.tb_lineno, trace.tb_frame))
        trace = trace.tb_next
    told = []
    for number, frame in own[-FRAMES:]:
        text = lines[number - 1].strip()[:120] if 0 < number <= len(lines) else ""
        told.append(f"line {number}, in {frame.f_code.co_name}: {text}")
    return "\n".join(told)


def report(error: BaseException, source: str) -> bytes:
    return json.dumps({"error": describe(error), "traceback": frames(error.__traceback__, source)}).encode()
