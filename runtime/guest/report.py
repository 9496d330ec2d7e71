"""Reports a failed snippet to its author: one line, and the frames of the author's own code."""

from __future__ import annotations

import errno

TYPE_CHECKING = False  # guards imports for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from types import FrameType, TracebackType

FILENAME = "<call>"
ERROR_CHARS = 400
FRAMES = 4
NAME_CHARS, LINE_CHARS = 60, 120
REPORT_BYTES = 1 << 14
"""Largest result of `report`, in bytes: every character may become twelve."""
LIMIT_OF = {
    errno.ENOMEM: "memory",
    errno.ENOSPC: "disk",
    errno.EDQUOT: "disk",
    errno.EFBIG: "disk",
    errno.EMFILE: "files",
    errno.ENFILE: "files",
}
STARTS = frozenset(["fork", "forkpty", "fork_exec", "_fork_exec", "posix_spawn", "posix_spawnp"])


def describe(error: BaseException) -> str:
    """Describes an exception as `Type: message` on one line; an unprintable exception still gets its type."""
    name = type(error).__name__
    try:
        message = " ".join(str(error).split())
    except BaseException:  # noqa: BLE001
        message = "(its message could not be made)"
    line = f"{name}: {message}" if message else name
    return line if len(line) <= ERROR_CHARS else line[: ERROR_CHARS - 3] + "..."


def frames(trace: TracebackType | None, source: str) -> str:
    """Returns a traceback's innermost frames in the snippet itself, each with its source line if known."""
    lines = source.split("\n")
    own: list[tuple[int, FrameType]] = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            own.append((trace.tb_lineno, trace.tb_frame))
        trace = trace.tb_next
    complaint = []
    for number, frame in own[-FRAMES:]:
        text = lines[number - 1].strip()[:LINE_CHARS] if 0 < number <= len(lines) else ""
        complaint.append(f"line {number}, in {frame.f_code.co_name[:NAME_CHARS]}: {text}")
    return "\n".join(complaint)


def limit(error: BaseException) -> str | None:
    """Returns the resource limit that an exception indicates, one of `wire.REPORTED_LIMITS`, or None."""
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, RuntimeError) and error.args == ("can't start new thread",):
        return "pids"
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EAGAIN:
        return "pids" if _was_starting(error.__traceback__) else None
    return LIMIT_OF.get(number or 0)


def _was_starting(trace: TracebackType | None) -> bool:
    """True if a traceback's innermost function starts processes: a read that would block also fails with EAGAIN."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and not STARTS.isdisjoint(trace.tb_frame.f_code.co_names)


def report(error: BaseException, source: str) -> bytes:
    """Returns an exception's report as JSON {error, traceback, limit}, the last if known. Built by hand, because `json`
    costs a guest 1 MB."""
    complaint = {"error": describe(error), "traceback": frames(error.__traceback__, source), "limit": limit(error)}
    members = [f"{_quoted(name)}: {_quoted(text)}" for name, text in complaint.items() if text is not None]
    return ("{" + ", ".join(members) + "}").encode()


def _quoted(text: str) -> str:
    return '"' + "".join([c if " " <= c <= "~" and c not in '"\\' else _escaped(ord(c)) for c in text]) + '"'


def _escaped(code: int) -> str:
    """Returns a character's UTF-16 escapes for JSON, two beyond the basic plane."""
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + ((code - 0x10000) >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
