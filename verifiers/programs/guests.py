"""A program in a place of its own that is asked one thing at a time.

What always holds: a call's mark is new and random; a place in which a call was lost is closed and never asked again;
two guests never share a process. What broke on our side raises `SandboxError`, and says nothing of the program.
"""

from __future__ import annotations

import secrets
from types import TracebackType
from typing import Literal, NamedTuple, Self

from runtime.errors import InfrastructureError
from runtime.sandbox import CallResult, CallStatus, Limits, Priority, Sandbox, Session, SessionPool, Tier
from verifiers.programs import harness, replies
from verifiers.programs.clocks import LEAST_SECONDS, SHARED_SECONDS, Clock, Limit, late
from verifiers.programs.replies import Reply
from verifiers.programs.spec import ProgramSpec
from verifiers.programs.values import Arguments, Value, arguments_text

MOST_CALLS = 800
"""Of one session, which may be given no more than a thousand."""
LOAD_SECONDS = 2.0
"""The least that running a source may take, whatever one test may."""
SPEC_SECONDS = 30.0
"""The least that one call of a spec's own code may take: a machine that is busy is not its fault."""
LARGE_CHARS = 20_000
"""Arguments beyond are handed over first, so that reading them is not counted as the program's time."""
OWN_TMP_MIB, OWN_WORK_MIB = 64, 32
CAPACITIES = (64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384)
OUTPUTS = (16_384, 65_536, 1 << 20, 4 << 20, 8 << 20)
"""Each size of sandbox has an image, so there are few."""


class Answer(NamedTuple):
    """What came of one call. `lost`: nothing that could be read; `status` says why."""

    kind: Literal["value", "raised", "odd", "loaded", "lost"]
    value: Value = None
    text: str = ""
    names: tuple[str, ...] = ()
    status: CallStatus = CallStatus.OK
    forged: bool = False
    """Its mark was printed more than once."""


class Opening(NamedTuple):
    """How places are opened for one spec."""

    sessions: SessionPool
    limits: Limits
    """Of a sandbox of its own."""
    own: bool
    """Whether a sandbox of its own is needed, because a session's limits are other ones."""
    caller: str
    priority: Priority

    def sandbox(self) -> Sandbox:
        """Raises SandboxError."""
        return self.sessions.sandbox(self.limits, caller=self.caller, priority=self.priority)

    def session(self) -> Session:
        """Raises SandboxError."""
        return self.sessions.open(tier=Tier.PROCESS, caller=self.caller, priority=self.priority)


def opening(
    sessions: SessionPool, spec: ProgramSpec, *, caller: str = "programs", priority: Priority = Priority.TRAINING
) -> Opening:
    """A session where its limits are the spec's own, else a sandbox of its own."""
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
        memory_mib=_at_least(spec.memory_mib, CAPACITIES),
        output_bytes=_at_least(spec.output_bytes, OUTPUTS),
        tmp_mib=OWN_TMP_MIB,
        work_mib=OWN_WORK_MIB,
        cpu_seconds=3_600.0,
        life_seconds=7_200.0,
        calls=1_000_000,
    )
    return Opening(sessions, limits, not fits, caller, priority)


def _at_least(wanted: int, sizes: tuple[int, ...]) -> int:
    return next((size for size in sizes if size >= wanted), sizes[-1])


class Guest:
    """One source in one place, begun with the first call. A context manager. Not thread-safe."""

    def __init__(
        self,
        opening: Opening,
        source: str,
        *,
        wanted: str,
        driver: str = "",
        own: bool = False,
        seed: int = 0,
        clock: Clock | None = None,
    ) -> None:
        """`wanted` names the functions that may be called, apart by blanks; `own` asks for a sandbox of its own;
        `clock` is told of all calls."""
        self._opening, self._source, self._wanted, self._driver = opening, source, wanted, driver
        self._own, self._seed = own or opening.own, seed
        self._clock = clock or Clock(float("inf"), float("inf"))
        self._place: Session | Sandbox | None = None
        self._sandbox: Sandbox | None = None
        """The same, where it is one of its own."""
        self._calls = 0
        self.signals: dict[str, None] = {}
        """Hostile words, in the order in which they came."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether the next call goes to the place of the last one."""
        return self._place is not None

    def close(self) -> None:
        place, self._place, self._sandbox = self._place, None, None
        if place is not None:
            place.close()

    def load(self, limit: Limit) -> Answer:
        """Opens a place, where there is none, and runs the source there. Raises SandboxError."""
        if self._place is not None:
            return Answer("loaded")
        told = self._load(limit)
        if self._needs_more(told):
            told = self._load(self._left_of(limit))
        return told

    def _needs_more(self, told: Answer) -> bool:
        """Whether a sandbox of its own may do it: where the judge's part lets nothing out, the session could not be
        repeated when its code had to move; and what takes long is not done among others."""
        if self._own or told.status not in (CallStatus.EXCEPTION, CallStatus.TIMEOUT):
            return False
        self.close()
        self._own = True
        return True

    def _left_of(self, limit: Limit) -> Limit:
        """For the same once more: what it took before is gone."""
        return self._clock.limit(limit.own) or Limit(LEAST_SECONDS, LEAST_SECONDS)

    def _load(self, limit: Limit) -> Answer:
        if self._own:
            self._place = self._sandbox = self._opening.sandbox()
        else:
            self._place = self._opening.session()
        self._calls = 1
        begun = self._place.run(harness.begin(self._seed))
        if begun.status is not CallStatus.OK:
            self.close()
            raise InfrastructureError(f"the judge's own part did not start: {begun.error or begun.status}")
        nonce = secrets.token_hex(8)
        told = self._ask(nonce, harness.load(nonce, self._source, self._wanted, self._driver), limit)
        if told.kind != "loaded":
            self.close()
        return told

    def call(self, function: str, arguments: Arguments, limit: Limit) -> Answer:
        """Loads it first where that is not done. Raises SandboxError."""
        told = self._call(function, arguments, limit)
        if self._needs_more(told):
            told = self._call(function, arguments, self._left_of(limit))
        return told

    def _call(self, function: str, arguments: Arguments, limit: Limit) -> Answer:
        text = arguments_text(arguments)
        if len(text) > LARGE_CHARS and not self._own:  # where a call may take as long as reading them does
            self._own = True
            self.close()
        if self._calls >= MOST_CALLS:
            self.close()
        if self._place is None:
            told = self.load(self._clock.limit(max(limit.own, LOAD_SECONDS)) or limit)
            if told.kind != "loaded":
                return told
        assert self._place is not None
        nonce = secrets.token_hex(8)
        if len(text) <= LARGE_CHARS:
            return self._ask(nonce, harness.call(nonce, function, text), limit)
        given = self._place.run(harness.give(text), seconds=SPEC_SECONDS)
        if given.status is not CallStatus.OK:
            self.close()
            return Answer("lost", status=given.status, text=f"it could not be given its arguments: {given.error}")
        return self._ask(nonce, harness.call(nonce, function, harness.GIVEN), limit)

    def _ask(self, nonce: str, code: str, limit: Limit) -> Answer:
        assert self._place is not None
        self._calls += 1
        if self._sandbox is not None:
            result = self._sandbox.run(code, seconds=limit.own, patience=limit.patience)
        else:
            result = self._place.run(code, seconds=min(limit.own, SHARED_SECONDS))
        self._clock.took(result)
        told = self._read(result, nonce, limit)
        if told.kind == "lost":
            self.close()
        return told

    def _read(self, result: CallResult, nonce: str, limit: Limit) -> Answer:
        """A call that the host saw end in another way than well has no reply, whatever was printed before."""
        if result.status is CallStatus.CALLS:
            raise InfrastructureError("the session has had all its calls", hint="Allow more calls of a session.")
        if result.status is CallStatus.TIMEOUT:
            return Answer("lost", status=result.status, text=late(result, limit))
        if result.status is not CallStatus.OK:
            return Answer("lost", status=result.status, text=result.error)
        found, marks = replies.find(result.output, nonce)
        if found is None:
            why = "it ended without a reply" if marks == 0 else "its reply cannot be read"
            return Answer("lost", text=why, forged=marks > 1)
        for word in found.signals:
            self.signals.setdefault(word)
        return _answer(found)


def _answer(reply: Reply) -> Answer:
    return Answer(reply.kind, reply.value, reply.text, reply.names)
