"""Evaluates how a call ended: its status, its error, and equality with a replay.

Host measurements take precedence over guest reports. Reports may come from hostile code: results here are capped, valid
Unicode, and never a structure.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from hashlib import blake2b
from typing import NamedTuple

from runtime.guest.wire import REPORTED_LIMITS, ReplyKind
from runtime.profile import Cause
from runtime.sandbox import CallResult, CallStatus, Limits, Tier

ADDRESS = re.compile(rb"0x[0-9a-f]+")
ERROR_CHARS = 500
TRACEBACK_CHARS = 2_000
RAW_OUTPUT_BYTES = 64
"""Longest output kept in a history, in bytes; longer ones are kept as digests."""
HAD_ENDED = "; it had ended before this call, which did not run"
EMPTY = "; the session starts again with no names and no files"
EMPTY_BUT_FILES = "; the session starts again with no names and only the files that it began with"


class LossCause(Enum):
    """Cause for which a sandbox ended during calls in it."""

    TIMEOUT = "timeout"
    MEMORY = "memory"
    CPU = "cpu"
    EXPIRED = "expired"
    DIED = "died"
    BROKER = "broker"
    """Lost together with its broker."""
    STARVED = "starved"
    """Others used the CPUs until the wall-clock limit of a call with patience."""


LOST_BY: dict[Cause, LossCause] = {
    Cause.MEMORY: LossCause.MEMORY,
    Cause.CPU: LossCause.CPU,
    Cause.EXPIRED: LossCause.EXPIRED,
}


class CallOutcome(NamedTuple):
    """Raw outcome of one call: the guest's report, or the reason for its absence."""

    kind: ReplyKind | LossCause
    output: bytes
    report: bytes
    seconds: float
    blamed: bool = True
    """False for a call that was only waiting its turn in a lost sandbox."""


SENTENCES = {
    CallStatus.TIMEOUT: "the call took longer than {seconds:g} seconds and was stopped",
    CallStatus.MEMORY: "the call used more memory than {memory} MiB and was stopped",
    CallStatus.CPU: "the sandbox has used its {cpu:g} seconds of CPU time and was ended",
    CallStatus.EXPIRED: "the sandbox has had its {life:g} seconds and was ended",
    CallStatus.OUTPUT: "the call printed more than {output} bytes and was stopped",
    CallStatus.CALLS: "all {calls} calls have been made; this one did not run",
    CallStatus.DIED: "the interpreter ended",
}
STATUS_OF: dict[ReplyKind | LossCause, CallStatus] = {
    ReplyKind.OUTPUT: CallStatus.OUTPUT,
    ReplyKind.KILLED: CallStatus.TIMEOUT,
    ReplyKind.TIMEOUT: CallStatus.TIMEOUT,
    ReplyKind.SLICE: CallStatus.TIMEOUT,
    ReplyKind.MEMORY: CallStatus.MEMORY,
    ReplyKind.DIED: CallStatus.DIED,
    LossCause.TIMEOUT: CallStatus.TIMEOUT,
    LossCause.MEMORY: CallStatus.MEMORY,
    LossCause.CPU: CallStatus.CPU,
    LossCause.EXPIRED: CallStatus.EXPIRED,
    LossCause.DIED: CallStatus.DIED,
}


class ExceptionReport(NamedTuple):
    """Parsed report of an exception that a call's code raised."""

    error: str = ""
    traceback: str = ""
    status: CallStatus = CallStatus.EXCEPTION
    """More specific if the guest names the limit that its code hit."""


def exception_report(outcome: CallOutcome) -> ExceptionReport:
    """Parses a guest's report of an exception; empty if invalid. Lone surrogates, which files, databases and sockets
    reject, become escapes."""
    if not outcome.report:
        return ExceptionReport()
    try:
        report = json.loads(outcome.report)
        error, trace, limit = report["error"], report["traceback"], report.get("limit")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ExceptionReport()
    if not isinstance(error, str) or not isinstance(trace, str):
        return ExceptionReport()
    named = isinstance(limit, str) and limit in REPORTED_LIMITS
    return ExceptionReport(
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
    outcome: CallOutcome, *, limits: Limits, seconds: float, tier: Tier, sandbox: str, aside: str = ""
) -> CallResult:
    """Converts a call's raw outcome to the result shown to the caller. `seconds` is the call's limit; `aside` is
    appended to a host sentence."""
    error = trace = ""
    if outcome.kind is ReplyKind.OK:
        status = CallStatus.OK
    elif outcome.kind is ReplyKind.EXCEPTION:
        error, trace, status = exception_report(outcome)
    else:
        status = STATUS_OF.get(outcome.kind, CallStatus.DIED)
        error = sentence(status, limits, seconds) + aside
    output = outcome.output.decode(errors="replace")
    return CallResult(
        status=status, output=output, error=error, traceback=trace, seconds=outcome.seconds, tier=tier, sandbox=sandbox
    )


def not_run(limits: Limits, tier: Tier) -> CallResult:
    """Returns the result of a call that did not run because the session's call limit is reached."""
    status = CallStatus.CALLS
    return CallResult(status=status, error=sentence(status, limits, 0.0), seconds=0.0, tier=tier, sandbox="")


Fingerprint = tuple[ReplyKind, bytes, str]


def fingerprint(outcome: CallOutcome) -> Fingerprint:
    """Returns the part of a call's outcome that must be equal in a replay, with object addresses masked."""
    kind = outcome.kind if isinstance(outcome.kind, ReplyKind) else ReplyKind.DIED
    output = ADDRESS.sub(b"0x", outcome.output) if b"0x" in outcome.output else outcome.output
    if len(output) > RAW_OUTPUT_BYTES:
        output = blake2b(output, digest_size=32).digest()
    error = exception_report(outcome).error if kind is ReplyKind.EXCEPTION else ""
    return kind, output, ADDRESS.sub(b"0x", error.encode()).decode() if "0x" in error else error


class Past(NamedTuple):
    """Past call of a session's history, with its outcome."""

    source: str
    outcome: Fingerprint
    seed: bytes = b""
    """Last seed before the call; empty means the default of every session."""


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class NextStep(Enum):
    """Consequence of a call's outcome for its session."""

    ANSWER = "answer"
    """Answer; the call joins the history."""
    UNDO = "undo"
    """Answer; the place has lost the session, and complete calls are replayed before the next."""
    EMPTY = "empty"
    """Answer; the session restarts empty, because its history cannot be replayed."""
    AGAIN = "again"
    """Retry: others lost the place, and nothing of the call was visible."""
    PROCESS = "process"
    """Retry in a separate process; nothing of the call was visible."""
    SANDBOX = "sandbox"
    """Retry in a separate sandbox; nothing of the call was visible."""
    BROKEN = "broken"
    """Fail this and all later calls: the place is gone, through no fault of the call."""


def what_follows(tier: Tier, outcome: CallOutcome, seconds: float) -> NextStep:
    """Returns a session's next step after a call's outcome: answer, retry or fail. `seconds` is the call's limit."""
    kind = outcome.kind
    if kind in (ReplyKind.OK, ReplyKind.EXCEPTION):
        return NextStep.ANSWER
    if kind in (LossCause.BROKER, LossCause.STARVED):
        return NextStep.BROKEN
    if tier is Tier.SANDBOX:
        return NextStep.EMPTY
    if isinstance(kind, LossCause) and not outcome.blamed:
        return NextStep.AGAIN
    if tier is Tier.PROCESS:
        return NextStep.SANDBOX if kind in (ReplyKind.DENIED, LossCause.MEMORY, LossCause.DIED) else NextStep.UNDO
    out_of_time = outcome.seconds >= seconds and kind in (ReplyKind.SLICE, ReplyKind.KILLED, LossCause.TIMEOUT)
    return NextStep.UNDO if kind is ReplyKind.OUTPUT or out_of_time else NextStep.PROCESS
