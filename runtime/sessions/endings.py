"""What the host makes of how a call ended: its status, its words, and whether a repetition ended the same.

Reports may have been written by hostile code: what comes out of here is capped, valid Unicode, and never a structure.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from runtime.guest.wire import Kind
from runtime.sandbox import CallStatus
from runtime.sessions.worker import Ending, Lost

ADDRESS = re.compile(r"0x[0-9a-f]+")
ERROR_CHARS = 500
TRACEBACK_CHARS = 2_000
SENTENCES = {
    CallStatus.TIMEOUT: "the call took longer than {seconds:g} seconds and was stopped",
    CallStatus.MEMORY: "the call used more memory than {memory} MiB and was stopped",
    CallStatus.OUTPUT: "the call printed more than {output} bytes and was stopped",
    CallStatus.DIED: "the interpreter ended during the call",
}
STATUS_OF: dict[Kind | Lost, CallStatus] = {
    Kind.OUTPUT: CallStatus.OUTPUT,
    Kind.KILLED: CallStatus.TIMEOUT,
    Kind.DIED: CallStatus.DIED,
    Lost.TIMEOUT: CallStatus.TIMEOUT,
    Lost.MEMORY: CallStatus.MEMORY,
    Lost.DIED: CallStatus.DIED,
}


@dataclass(frozen=True, slots=True)
class Past:
    """A call of the history, and how it ended."""

    source: str
    ending: tuple[Kind, str, str]


def told(ending: Ending) -> tuple[str, str]:
    """Error and traceback of a report, or nothing when it is not one. Lone surrogates, which no file, database or
    socket would take later, come out as their escapes."""
    if not ending.report:
        return "", ""
    try:
        report = json.loads(ending.report)
        error, trace = report["error"], report["traceback"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", ""
    if not isinstance(error, str) or not isinstance(trace, str):
        return "", ""
    return _encodable(" ".join(error.split()))[:ERROR_CHARS], _encodable(trace)[:TRACEBACK_CHARS]


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def fingerprint(ending: Ending) -> tuple[Kind, str, str]:
    """What has to be equal when a call is repeated. Addresses of objects differ between processes and mean nothing."""
    kind = ending.kind if isinstance(ending.kind, Kind) else Kind.DIED
    output = ending.output.decode(errors="replace")
    return kind, ADDRESS.sub("0x", output), ADDRESS.sub("0x", told(ending)[0])
