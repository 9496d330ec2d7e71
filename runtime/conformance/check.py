"""Conformance check and its result.

Invariants: a check uses a backend like any caller, through `SessionPool`, and inspects the host like any user; it
passes only after it has observed what it asserts. Not promised: that a passing backend cannot be escaped from.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from runtime.errors import RefusedError, SandboxError
from runtime.model import FrozenModel
from runtime.sandbox import CallResult, CallStatus, Limits, Sandbox, Session, SessionPool, SnapshotId, Tier

LIMITS = Limits(
    call_seconds=20.0,
    memory_mib=128,
    pids=48,
    output_bytes=8_192,
    tmp_mib=8,
    work_mib=4,
    open_files=256,
    entries=256,
    cpu_seconds=60.0,
    life_seconds=300.0,
    calls=500,
    snapshots=16,
)
"""Default limits of the sandboxes of a check."""
CALLER = "conformance"


class Violation(Exception):
    """Failed assertion of a conformance check; the message says what was seen instead and may contain hostile text."""


class Subject(NamedTuple):
    """Session pool under examination by a conformance check, with scratch folder and secret token."""

    pool: SessionPool
    scratch: Path
    """Empty host folder for this check alone."""
    token: str
    """Secret text that checks search for in forbidden places."""

    @contextlib.contextmanager
    def sandbox(
        self, *, snapshot: SnapshotId | None = None, limits: Mapping[str, float] | None = None
    ) -> Iterator[Sandbox]:
        """Opens a separate sandbox for the block, with `LIMITS` updated by `limits`."""
        box = self.pool.sandbox(LIMITS.model_copy(update=dict(limits or {})), snapshot=snapshot, caller=CALLER)
        with contextlib.closing(box):
            yield box

    def session(self, tier: Tier) -> Session:
        return self.pool.open(tier=tier, caller=CALLER)


Figures = Mapping[str, float]
"""Measurements of a check by name; names in milliseconds end in `_ms`."""


class ConformanceCheck(NamedTuple):
    name: str
    asserts: str
    """One sentence that holds if the check passes."""
    run: Callable[[Subject], Figures]
    """Raises Violation or any runtime error if the assertion fails."""
    needs_snapshots: bool = False
    quick: bool = True
    """Takes about a second or less on a small machine."""


def check(
    name: str, asserts: str, *, needs_snapshots: bool = False, quick: bool = True
) -> Callable[[Callable[[Subject], Figures]], ConformanceCheck]:
    """Decorator that turns a function into a conformance check of sandboxes."""
    return lambda run: ConformanceCheck(name, asserts, run, needs_snapshots, quick)


class CheckOutcome(StrEnum):
    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    REFUSED = "refused"
    """Clearly refused by the backend, as documented."""


class CheckResult(FrozenModel):
    area: str
    name: str
    asserts: str
    outcome: CheckOutcome
    detail: str = ""
    """For `fail`, what was seen instead; for `refused`, the backend's message. Hostile text."""
    figures: dict[str, float]
    seconds: float


def require(holds: bool, seen: str) -> None:
    """Raises Violation with the message unless the condition holds."""
    if not holds:
        raise Violation(seen)


def require_error(
    attempt: Callable[[], object], seen: str, kinds: type[SandboxError] | tuple[type[SandboxError], ...]
) -> None:
    """Raises Violation with the message unless the attempt raises an error of these kinds."""
    try:
        attempt()
    except kinds:
        return
    raise Violation(seen)


def answered(result: CallResult, status: CallStatus = CallStatus.OK) -> str:
    """Returns the output of a call that ended with the expected status. Raises Violation for another status."""
    require(
        result.status is status,
        f"a call ended with {result.status.value} instead of {status.value}: {result.error or result.output[:200]!r}",
    )
    return result.output


def examine(check: ConformanceCheck, subject: Subject, *, area: str, snapshots: bool) -> CheckResult:
    """Runs one conformance check and returns its result. Without documented `snapshots`, checks that need them must be
    refused.

    Any error fails the check, not the suite; only exceptions that end the program propagate.
    """
    started = time.monotonic()
    may_refuse = check.needs_snapshots and not snapshots
    figures: Figures = {}
    try:
        figures = check.run(subject)
        outcome, detail = CheckOutcome.PASS, ""
        if may_refuse:
            outcome, detail = CheckOutcome.FAIL, "it succeeded, although the documentation says it is refused"
    except RefusedError as error:
        outcome, detail = CheckOutcome.REFUSED if may_refuse and error.hint else CheckOutcome.FAIL, _text_of(error)
    except Exception as error:  # noqa: BLE001 - any error is the check's finding
        outcome, detail = CheckOutcome.FAIL, _text_of(error)
    return CheckResult(
        area=area,
        name=check.name,
        asserts=check.asserts,
        outcome=outcome,
        detail=detail,
        figures={name: round(value, 3) for name, value in figures.items()},
        seconds=round(time.monotonic() - started, 3),
    )


def _text_of(error: Exception) -> str:
    if isinstance(error, Violation):
        return str(error)
    hint = f" ({error.hint})" if isinstance(error, SandboxError) and error.hint else ""
    return f"{type(error).__name__}: {error}{hint}"
