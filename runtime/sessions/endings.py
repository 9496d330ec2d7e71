"""How a call ended, and what the host makes of it: its status, its words, and whether a repetition ended the same.

What the host measured goes before what the guest says. Reports may have been written by hostile code: what comes out of
here is capped, valid Unicode, and never a structure.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from hashlib import blake2b
from typing import NamedTuple

from runtime.backends.backend import Cause
from runtime.guest.wire import LIMITS_TOLD, Kind
from runtime.sandbox import CallResult, CallStatus, Limits, Tier

ADDRESS = re.compile(rb"0x[0-9a-f]+")
ERROR_CHARS = 500
TRACEBACK_CHARS = 2_000
KEPT_BYTES = 64
"""Longer outputs of a history are kept as digests."""
EMPTY = "; the session starts again with no names and no files"
EMPTY_BUT_FILES = "; the session starts again with no names and only the files that it began with"


class Lost(Enum):
    """Why a whole sandbox ended under its calls."""

    TIMEOUT = "timeout"
    MEMORY = "memory"
    CPU = "cpu"
    EXPIRED = "expired"
    DIED = "died"
    BROKER = "broker"
    """Whoever started it is gone, and it with them."""


LOST_BY: dict[Cause, Lost] = {Cause.MEMORY: Lost.MEMORY, Cause.CPU: Lost.CPU, Cause.EXPIRED: Lost.EXPIRED}


class Ending(NamedTuple):
    """How one call ended: what the guest said of it, or why it could not say anything."""

    kind: Kind | Lost
    output: bytes
    report: bytes
    seconds: float
    blamed: bool = True
    """False for a call that was only waiting its turn in a sandbox that was lost."""


SENTENCES = {
    CallStatus.TIMEOUT: "the call took longer than {seconds:g} seconds and was stopped",
    CallStatus.MEMORY: "the call used more memory than {memory} MiB and was stopped",
    CallStatus.CPU: "the sandbox has used its {cpu:g} seconds of CPU time and was ended",
    CallStatus.EXPIRED: "the sandbox has had its {life:g} seconds and was ended",
    CallStatus.OUTPUT: "the call printed more than {output} bytes and was stopped",
    CallStatus.CALLS: "all {calls} calls have been made; this one did not run",
    CallStatus.DIED: "the interpreter ended during the call",
}
STATUS_OF: dict[Kind | Lost, CallStatus] = {
    Kind.OUTPUT: CallStatus.OUTPUT,
    Kind.KILLED: CallStatus.TIMEOUT,
    Kind.TIMEOUT: CallStatus.TIMEOUT,
    Kind.SLICE: CallStatus.TIMEOUT,
    Kind.MEMORY: CallStatus.MEMORY,
    Kind.DIED: CallStatus.DIED,
    Lost.TIMEOUT: CallStatus.TIMEOUT,
    Lost.MEMORY: CallStatus.MEMORY,
    Lost.CPU: CallStatus.CPU,
    Lost.EXPIRED: CallStatus.EXPIRED,
    Lost.DIED: CallStatus.DIED,
}
TIER_OF = {"shared": Tier.SHARED, "process": Tier.PROCESS, "sandbox": Tier.SANDBOX}


class Told(NamedTuple):
    """What the report of an exception says."""

    error: str = ""
    traceback: str = ""
    status: CallStatus = CallStatus.EXCEPTION
    """Finer when the guest names the limit that its code ran into."""


def told(ending: Ending) -> Told:
    """Nothing when the report is none. Lone surrogates, which no file, database or socket would take later, come out as
    their escapes."""
    if not ending.report:
        return Told()
    try:
        report = json.loads(ending.report)
        error, trace, limit = report["error"], report["traceback"], report.get("limit")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Told()
    if not isinstance(error, str) or not isinstance(trace, str):
        return Told()
    named = isinstance(limit, str) and limit in LIMITS_TOLD
    return Told(
        _encodable(" ".join(error.split()))[:ERROR_CHARS],
        _encodable(trace)[:TRACEBACK_CHARS],
        CallStatus(limit) if named else CallStatus.EXCEPTION,
    )


def sentence(status: CallStatus, limits: Limits, seconds: float) -> str:
    return SENTENCES[status].format(
        seconds=seconds,
        memory=limits.memory_mib,
        cpu=limits.cpu_seconds,
        life=limits.life_seconds,
        output=limits.output_bytes,
        calls=limits.calls,
    )


def result_of(
    ending: Ending, *, limits: Limits, seconds: float, tier: Tier, sandbox: str, aside: str = ""
) -> CallResult:
    """What the caller gets to see. `seconds` is the call's limit; `aside` follows a sentence of the host's own."""
    kind = ending.kind
    output = ending.output.decode(errors="replace")
    if kind is Kind.OK:
        return CallResult(status=CallStatus.OK, output=output, seconds=ending.seconds, tier=tier, sandbox=sandbox)
    if kind is Kind.EXCEPTION:
        said = told(ending)
        status, error, trace = said.status, said.error, said.traceback
    else:
        status = STATUS_OF.get(kind, CallStatus.DIED)
        error, trace = sentence(status, limits, seconds) + aside, ""
    return CallResult(
        status=status,
        output=output,
        error=error,
        traceback=trace,
        seconds=ending.seconds,
        tier=tier,
        sandbox=sandbox,
    )


def not_run(limits: Limits, tier: Tier) -> CallResult:
    """For a call beyond the last one that a session may make."""
    status = CallStatus.CALLS
    return CallResult(status=status, error=sentence(status, limits, 0.0), seconds=0.0, tier=tier, sandbox="")


Fingerprint = tuple[Kind, bytes, str]


def fingerprint(ending: Ending) -> Fingerprint:
    """What has to be equal when a call is repeated. Addresses of objects differ between processes and mean nothing."""
    kind = ending.kind if isinstance(ending.kind, Kind) else Kind.DIED
    output = ADDRESS.sub(b"0x", ending.output) if b"0x" in ending.output else ending.output
    if len(output) > KEPT_BYTES:
        output = blake2b(output, digest_size=32).digest()
    error = told(ending).error if kind is Kind.EXCEPTION else ""
    return kind, output, ADDRESS.sub(b"0x", error.encode()).decode() if "0x" in error else error


class Past(NamedTuple):
    """A call of the history, and how it ended."""

    source: str
    ending: Fingerprint


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Then(Enum):
    """What follows for the session."""

    ANSWER = "answer"
    """The call is part of the history."""
    UNDO = "undo"
    """The call is answered, and the place has forgotten the session: what was whole is repeated before the next."""
    EMPTY = "empty"
    """The call is answered, and the session starts again with nothing: its history cannot be repeated."""
    AGAIN = "again"
    """Others lost the place; nothing of the call was seen, so it goes again."""
    PROCESS = "process"
    """Nothing of the call was seen; it goes again in a process of its own."""
    SANDBOX = "sandbox"
    """Likewise, in a sandbox of its own."""
    BROKEN = "broken"
    """The place is gone with its broker: this call and all later ones fail."""


def what_follows(tier: Tier, ending: Ending, seconds: float) -> Then:
    """`seconds` is the call's limit."""
    kind = ending.kind
    if kind in (Kind.OK, Kind.EXCEPTION):
        return Then.ANSWER
    if kind is Lost.BROKER:
        return Then.BROKEN
    if tier is Tier.SANDBOX:
        return Then.EMPTY
    if isinstance(kind, Lost) and not ending.blamed:
        return Then.AGAIN
    if tier is Tier.PROCESS:
        return Then.SANDBOX if kind in (Kind.DENIED, Lost.MEMORY, Lost.DIED) else Then.UNDO
    out_of_time = ending.seconds >= seconds and kind in (Kind.SLICE, Kind.KILLED, Lost.TIMEOUT)
    return Then.UNDO if kind is Kind.OUTPUT or out_of_time else Then.PROCESS
