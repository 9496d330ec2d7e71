"""A program in a sandbox or session of its own, called one function at a time.

Invariants: each call has a fresh random mark (nonce); a sandbox in which a call was lost is closed and never used
again; two guests never share a process. A failure on our side raises `SandboxError` and says nothing about the program:
a sandbox that could not be started, moved or restored, a lost broker, a starved call. Only a sandbox that ended, or
refused a request, after the program had run in it may be the program's doing (`PlaceBrokenError`): a fresh sandbox of
its own decides. If that opens, works and breaks too, the program is to blame.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from runtime.errors import BadRequestError, BrokerLostError, GuestLostError, InfrastructureError, LimitError
from runtime.sandbox import CallResult, CallStatus, ClosesOnExit, Limits, Priority, Sandbox, Session, SessionPool, Tier
from verifiers.boxes.late import late
from verifiers.boxes.own_time import LAST_PATIENCE
from verifiers.programs import harness, replies
from verifiers.programs.clocks import LEAST_SECONDS, SHARED_SECONDS, SubmissionClock
from verifiers.programs.data.values import Arguments, arguments_text
from verifiers.programs.replies import ProgramReply
from verifiers.programs.spec import ProgramSpec

CALLER = "programs"
MOST_CALLS = 800
"""Maximum number of calls per session; the sandbox allows a thousand."""
LOAD_SECONDS = 2.0
"""Minimum time limit for loading a source, in seconds, regardless of the limit of one test."""
SPEC_SECONDS = 30.0
"""Minimum time limit of one call of a spec's own code, in seconds, within its total."""
LARGE_CHARS = 20_000
"""Length of arguments, in characters, above which they are sent first, so that parsing them is not counted."""
OWN_TMP_MIB, OWN_WORK_MIB = 64, 32
CAPACITIES = (64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384)
OUTPUTS = (16_384, 65_536, 1 << 20, 4 << 20, 8 << 20)
"""Output limits in bytes. Few, because each sandbox size has its own image."""


OURS = (CallStatus.CALLS, CallStatus.EXPIRED)
"""Ends of a call by a limit of its sandbox that says nothing about the program: calls, and wall clock."""


class PlaceBrokenError(InfrastructureError):
    """A sandbox broke after the program's code had run in it: through that code, or through our fault."""


MAY_BE_ITS_DOING = (GuestLostError, BadRequestError, LimitError)
"""Errors of a sandbox that code inside it can cause: it ended, refused a file or program, or is full."""


@contextmanager
def its_own_doing() -> Iterator[None]:
    """Wraps calls into a sandbox in which the program's code has run. Raises PlaceBrokenError for failures that the
    code may have caused; re-raises others."""
    try:
        yield
    except MAY_BE_ITS_DOING as error:
        raise PlaceBrokenError(str(error), hint=error.hint) from error


class Opening(NamedTuple):
    """Recipe for opening sandboxes for one spec: a shared session if its limits fit, else a separate sandbox."""

    sessions: SessionPool
    limits: Limits
    """Limits of a separate sandbox."""
    own: bool
    """True if a separate sandbox is needed, because a session's limits do not fit."""
    priority: Priority
    measured: bool = False
    """True if the CPU time of everything inside is read, which needs separate sandboxes."""

    def reading(self) -> Opening:
        """Returns a copy of the recipe that opens separate sandboxes and reads their CPU time."""
        return self._replace(own=True, measured=True)

    def sandbox(self) -> Sandbox:
        """Opens a separate sandbox. Raises SandboxError."""
        return self.sessions.sandbox(self.limits, caller=CALLER, priority=self.priority)

    def session(self) -> Session:
        """Opens a session. Raises SandboxError."""
        return self.sessions.open(tier=Tier.PROCESS, caller=CALLER, priority=self.priority)


def processor_seconds(sandbox: Sandbox) -> float:
    """Returns the CPU seconds used in a sandbox, including its kernel's share."""
    return sandbox.usage.cpu_seconds or 0.0


def opening(sessions: SessionPool, spec: ProgramSpec, priority: Priority = Priority.TRAINING) -> Opening:
    given = sessions.limits
    seconds = max(spec.seconds, LOAD_SECONDS)
    fits = (
        seconds <= given.call_seconds
        and spec.memory_mib == given.memory_mib
        and spec.output_bytes <= given.output_bytes
        and given.calls > MOST_CALLS
    )
    limits = Limits(
        call_seconds=max(SPEC_SECONDS, seconds),
        memory_mib=next(size for size in CAPACITIES if size >= spec.memory_mib),
        output_bytes=next(size for size in OUTPUTS if size >= spec.output_bytes),
        tmp_mib=OWN_TMP_MIB,
        work_mib=OWN_WORK_MIB,
        cpu_seconds=3_600.0,
        life_seconds=7_200.0,
        calls=1_000_000,
    )
    return Opening(sessions, limits, not fits, priority)


@dataclass(eq=False)
class Guest(ClosesOnExit):
    """A program's source in one sandbox or session, loaded on the first call. Not thread-safe."""

    opening: Opening
    source: str
    wanted: str
    """Functions that may be called, separated by spaces."""
    driver: str = ""
    own: bool = False
    """True if it gets a separate sandbox."""
    seed: int = 0
    clock: SubmissionClock = field(default_factory=SubmissionClock)
    """Records the time of every call."""
    signals: dict[str, None] = field(default_factory=dict)
    """Suspicious events that the harness reported, in order."""

    def __post_init__(self) -> None:
        self.own = self.own or self.opening.own
        self._place: Session | Sandbox | None = None
        self._sandbox: Sandbox | None = None
        """The current sandbox, if it is a separate one."""
        self._calls = 0
        self._excused = False
        """True once a dead sandbox was excused: the next death counts against the program."""

    @property
    def alive(self) -> bool:
        """True if the next call reuses the current sandbox."""
        return self._place is not None

    def close(self) -> None:
        place, self._place, self._sandbox = self._place, None, None
        if place is not None:
            self.clock.closing(place)
            place.close()

    def use(self, clock: SubmissionClock) -> None:
        """Charges the following calls to another clock."""
        if self._sandbox is not None:
            self.clock.closing(self._sandbox)
        self.clock = clock
        if self._sandbox is not None:
            clock.opened(self._sandbox, partial(processor_seconds, self._sandbox))

    def load(self, limit: float) -> ProgramReply:
        """Opens a sandbox unless one is open, and runs the source in it. Raises SandboxError."""
        if self._place is not None:
            return ProgramReply("loaded")
        return self._with_more(self._load, limit)

    def _with_more(self, ask: Callable[[float], ProgramReply], limit: float) -> ProgramReply:
        """Calls `ask`; after an exception, a timeout or a failed move in a session, retries in a separate sandbox for
        the remaining time. A session without output channels cannot be replayed when its code has to move, and slow
        calls must not block others."""
        try:
            reply = ask(limit)
            if self.own or reply.status not in (CallStatus.EXCEPTION, CallStatus.TIMEOUT):
                return reply
        except (PlaceBrokenError, BrokerLostError):
            raise
        except InfrastructureError:
            if self.own:
                raise
        self.close()
        self.own = True
        return ask(self.clock.limit(limit) or LEAST_SECONDS)

    def _load(self, limit: float) -> ProgramReply:
        if self.own:
            self._place = self._sandbox = self.opening.sandbox()
            self.clock.opened(self._sandbox, partial(processor_seconds, self._sandbox))
        else:
            self._place = self.opening.session()
        self._calls = 1
        most = max(self.opening.limits.output_bytes, self.opening.sessions.limits.output_bytes)
        begun = self._run(harness.begin(self.seed, most), LOAD_SECONDS, shared=LOAD_SECONDS)
        if begun.status is not CallStatus.OK:
            self.close()
            raise InfrastructureError(f"the harness did not start: {begun.error or begun.status}")
        nonce = secrets.token_hex(8)
        reply = self._ask(nonce, harness.load(nonce, self.source, self.wanted, self.driver), limit)
        if reply.kind != "loaded":
            self.close()
        return reply

    def call(self, function: str, arguments: Arguments, limit: float) -> ProgramReply:
        """Calls a function of the program, loading its source first if necessary. Raises SandboxError."""
        return self._with_more(partial(self._call, function, arguments), limit)

    def _call(self, function: str, arguments: Arguments, limit: float) -> ProgramReply:
        text = arguments_text(arguments)
        if len(text) > LARGE_CHARS and not self.own:  # calls there may be as slow as parsing the arguments
            self.own = True
            self.close()
        if self._calls >= MOST_CALLS:
            self.close()
        if self._place is None:
            reply = self.load(self.clock.limit(max(limit, LOAD_SECONDS)) or limit)
            if reply.kind != "loaded":
                return reply
        assert self._place is not None
        nonce = secrets.token_hex(8)
        if len(text) <= LARGE_CHARS:
            return self._ask(nonce, harness.call(nonce, function, text), limit)
        with its_own_doing():
            given = self._run(harness.give(replies.tagged(arguments)), SPEC_SECONDS)
        if given.status is not CallStatus.OK:
            self.close()
            why = late(given, SPEC_SECONDS) if given.status is CallStatus.TIMEOUT else given.error
            return ProgramReply("lost", status=given.status, text=f"its arguments could not be sent: {why}")
        return self._ask(nonce, harness.call(nonce, function, harness.GIVEN), limit)

    def _ask(self, nonce: str, code: str, limit: float) -> ProgramReply:
        self._calls += 1
        with its_own_doing():
            result = self._run(code, limit)
        self.clock.took(result)
        reply = self._read(result, nonce, limit)
        if reply.kind == "lost":
            self.close()
        return reply

    def _run(self, code: str, limit: float, *, shared: float = SHARED_SECONDS) -> CallResult:
        assert self._place is not None
        if self._sandbox is not None:
            return self._sandbox.run(code, seconds=limit, patience=LAST_PATIENCE)
        return self._place.run(code, seconds=min(limit, shared))

    def _read(self, result: CallResult, nonce: str, limit: float) -> ProgramReply:
        """Parses the program's reply from a call's output. A call that ended abnormally has no reply, even if one was
        printed before. Raises PlaceBrokenError the first time that the interpreter ended."""
        if result.status in OURS:
            raise InfrastructureError(f"the sandbox's own limits ended it: {result.error}", hint="Run `assay doctor`.")
        if result.status is CallStatus.TIMEOUT:
            return ProgramReply("lost", status=result.status, text=late(result, limit))
        if result.status is CallStatus.DIED and not self._excused:
            self._excused = True
            raise PlaceBrokenError(result.error)
        if result.status is not CallStatus.OK:
            return ProgramReply("lost", status=result.status, text=result.error)
        found = replies.find(result.output, nonce)
        self.signals.update(dict.fromkeys(found.signals))
        return found
