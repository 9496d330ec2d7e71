"""Runs one world: a session with its own sandbox, in which an environment's program answers calls.

    with World.open(pool, environment, {"seed": 7}) as world:
        print(world.call("search", {"keywords": "invoice"}).text)

Invariants: arguments that do not fit the tool's schema never reach the world. Accepted arguments are JSON in a literal,
never code. An answer counts only after the mark of its own question, so printed text is never taken for one. A
`ToolError` of the program is the model's failure; a program that raises anything else, exits, hangs or gives no answer
is a broken world: InfrastructureError, from then on for every call. If commands of the model run beside the program and
one has reached it, any such end is the model's failure instead. A program's `STATE` is carried here, as opaque text, so
the views of a shareable world are independent. Methods whose names begin with `start` do not wait; they may be called
from any thread, one call of a view after another.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from curriculum.contract.environment import Environment, NeedsPackages, NeedsUserland, ToolSchema, tools_in
from curriculum.contract.errors import CurriculumError
from curriculum.worlds.guest import STATE_BYTES
from curriculum.worlds.tool_schema import fault_of, printable
from runtime.errors import InfrastructureError, LimitError, StarvedError
from runtime.sandbox import CallResult, CallStatus, ClosesOnExit, Priority, Session, SessionPool, Tier, Usage

TEXT_BYTES = 12_000
"""Size limit of a call's answer, in bytes; longer text is truncated with a note."""
FRAME_BYTES = 600
"""Bytes of an answer's line besides its text."""
SUBMISSION_BYTES = 1 << 18
"""Size limit of a submission, in bytes. Packed (zlib, base64) it must also fit into a call's text."""
PATIENCE = 30.0
"""Multiple of the wall-clock limit that a call may take while it waits for processors. Without it, worlds with heavy
calls would be lost on a busy machine."""
ERROR_CHARS = 1_000
ENDED = "a command has ended the terminal: nothing can be run any more"
A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class WorldReply:
    """Result of one tool call of a world."""

    text: str
    failed: bool
    """True if the model made a mistake, which the text describes."""
    reached: bool = True
    """True if the world was called."""
    seconds: float = 0.0
    sandbox: str = ""


class World(ClosesOnExit):
    def __init__(
        self,
        environment: Environment,
        tools: Sequence[ToolSchema],
        session: Session,
        output_bytes: int,
        begun: Future[None],
        origin: World | None = None,
    ) -> None:
        """Builds a world on a session in which its program is or will be started; see `open`. A view shares its
        origin's session."""
        self.environment = environment
        self.tools = tools
        """Tools of the world."""
        self.begun = begun
        """Completes once the world can be called; fails with InfrastructureError if the program does not start."""
        self._session = session
        self._output_bytes = output_bytes
        self._origin = origin or self
        self._broken = ""
        self._commanded = False
        """True if a command of the model's has run beside the program, which it can stop or corrupt."""
        self._ended = False
        """True if the world has ended since then: the model failed, and nothing is submitted."""
        self._state = ""
        """The program's `STATE`, packed; empty if undefined."""
        self._kept = ""
        """State before the last `keep=True` call."""
        self._keeps_next = False
        """True if the last `keep=True` call did not reach the world: the next call that does is kept instead."""

    @classmethod
    def open(
        cls,
        pool: SessionPool,
        environment: Environment,
        setup: Mapping[str, Any],
        *,
        caller: str = "",
        priority: Priority = Priority.TRAINING,
    ) -> World:
        """Opens a world in a new sandbox, without waiting for its start. Raises CurriculumError for a wrong setup or if
        its worlds cannot be made, and what `SessionPool.open` raises."""
        if why := environment.missing():
            raise CurriculumError(f"a world of {environment.name} cannot be made here: {why}")
        files, tools = environment.files(setup), tools_in(environment, setup)
        packages = environment.packages(setup) if isinstance(environment, NeedsPackages) else None
        userland = isinstance(environment, NeedsUserland)
        more: dict[str, Any] = ({"packages": packages} if packages else {}) | ({"userland": True} if userland else {})
        session = pool.open(tier=Tier.SANDBOX, caller=caller, priority=priority, files=files, **more)
        made = cls(environment, tools, session, pool.limits.output_bytes, Future())
        first = session.start(_driver(), patience=PATIENCE)
        begin = made._ask("begin", environment.program, json.dumps(dict(setup)))
        _pass_on(first, made.begun, lambda result: made._require_ran(result, "its driver"), only_errors=True)
        _pass_on(begin, made.begun, made._told)
        return made

    # without waiting

    def start(self, tool: str, arguments: object, *, keep: bool = False) -> Future[WorldReply]:
        """Calls a tool of the world, without waiting for the reply. Arguments that do not fit the tool's schema never
        reach it. `keep` as in `Session.start`."""
        schema = next((one for one in self.tools if one.name == tool), None)
        fault = f"there is no tool {tool[:40]!r}" if schema is None else fault_of(schema, arguments)
        if self._ended:
            fault = ENDED
        if fault:
            self._keeps_next |= keep
            refused: Future[WorldReply] = Future()
            refused.set_result(WorldReply(fault, failed=True, reached=False))
            return refused
        keep, self._keeps_next = keep or self._keeps_next, False
        if keep:
            self._kept = self._state
        return _then(self._ask("call", tool, arguments, keep=keep and not self.environment.shareable), self._reply)

    def start_submission(self) -> Future[str | None]:
        """Requests the world's submission, without waiting. None if it is too large, or the model ended the world."""
        if self._ended:
            nothing: Future[str | None] = Future()
            nothing.set_result(None)
            return nothing
        return _then(self._ask("submission"), self._submitted)

    def start_digest(self) -> Future[str]:
        """Requests a digest of the world's files and of the plain data in its memory, without waiting."""
        return _then(self._ask("digest"), lambda result: self._said(result)[1])

    def start_fork(self, n: int, *, undo: bool = False) -> Future[list[World]]:
        """Makes `n` copies of the current world or, with `undo`, of its state before the last `keep=True` call. Copies
        of a shareable world are views, which end with it."""
        undo = undo and not self._keeps_next
        state = self._kept if undo else self._state
        if self.environment.shareable:
            views: Future[list[World]] = Future()
            views.set_result([self.view(state) for _ in range(n)])
            return views
        ended = self._ended and not undo
        return _then(self._session.start_fork(n, undo=undo), partial(self._forked, ended=ended, state=state))

    def view(self, state: str = "") -> World:
        """Returns a view of a shareable world for one more rollout, which continues from another view's `state`, or
        begins. It ends with this world; a broken view breaks all."""
        assert self.environment.shareable
        origin = self._origin
        view = World(self.environment, self.tools, self._session, self._output_bytes, self.begun, origin)
        view._state = view._kept = state or origin._state
        return view

    @property
    def state(self) -> str:
        """World's `STATE`, from which a view of the same task's world continues."""
        return self._state

    @property
    def state_kept(self) -> str:
        """World's `STATE` before the last `keep=True` call."""
        return self._state if self._keeps_next else self._kept

    # waiting

    def call(self, tool: str, arguments: object) -> WorldReply:
        return self.start(tool, arguments).result()

    def submission(self) -> str | None:
        return self.start_submission().result()

    def digest(self) -> str:
        return self.start_digest().result()

    def fork(self, n: int, *, undo: bool = False) -> list[World]:
        return self.start_fork(n, undo=undo).result()

    @property
    def usage(self) -> Usage:
        return self._session.usage

    def close(self) -> None:
        if self._origin is self:
            self._session.close()

    # internal

    def _ask(self, what: str, *details: object, keep: bool = False) -> Future[tuple[str, CallResult]]:
        if self._origin._broken:
            failed: Future[tuple[str, CallResult]] = Future()
            failed.set_exception(self._lost(self._origin._broken))
            return failed
        mark = secrets.token_hex(16)
        most = max(64, min(TEXT_BYTES, self._output_bytes - FRAME_BYTES))
        asked = json.dumps([what, "" if what == "digest" else self._state, *details])
        kept: dict[str, Any] = {"keep": True} if keep else {}
        running = self._session.start(f"answer({mark!r}, {asked!r}, {most})", patience=PATIENCE, **kept)
        return _then(running, partial(_marked, mark))

    def _said(self, answer: tuple[str, CallResult]) -> tuple[str, str]:
        """Parses the world's answer to a call; returns its kind and text, and stores its state. Raises
        InfrastructureError without a valid one, LimitError if the call did not run."""
        line, result = answer
        self._require_ran(result, "a call")
        try:
            kind, text, state = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            raise self._breaks("it gave no answer to a call") from None
        if not isinstance(text, str) or kind not in ("ok", "refused", "long"):
            raise self._breaks(f"its program failed: {printable(str(text))}")
        if not isinstance(state, str) or len(state) > STATE_BYTES:
            raise self._breaks("it gave no state with its answer")
        self._state = state or self._state
        return kind, text

    def _require_ran(self, result: CallResult, what: str) -> None:
        if result.status is CallStatus.CALLS:
            raise LimitError(f"a world of {self.environment.name}: {result.error}")
        if result.status is CallStatus.EXPIRED:  # wall clock, which nobody in the world can use up alone
            why = result.error or "its sandbox has expired"
            self._origin._broken = self._origin._broken or why
            raise StarvedError(f"a world of {self.environment.name} ended: {why}", hint="Try it again.")
        if result.status is not CallStatus.OK:
            raise self._breaks(f"{what} ended with {result.status.value}: {result.error}")

    def _told(self, answer: tuple[str, CallResult]) -> None:
        self._said(answer)

    def _reply(self, answer: tuple[str, CallResult]) -> WorldReply:
        self._commanded |= isinstance(self.environment, NeedsUserland) and not self._origin._broken
        try:
            kind, text = self._said(answer)
        except InfrastructureError:
            if not self._ended:
                raise
            kind, text = "refused", ENDED
        text = printable(text) if kind == "refused" else text
        return WorldReply(text, kind == "refused", seconds=answer[1].seconds, sandbox=answer[1].sandbox)

    def _submitted(self, answer: tuple[str, CallResult]) -> str | None:
        try:
            return self._unpacked(answer)
        except InfrastructureError:
            if not self._ended:
                raise
            return None

    def _unpacked(self, answer: tuple[str, CallResult]) -> str | None:
        kind, text = self._said(answer)
        if kind == "long":
            return None
        if kind != "ok":
            raise self._breaks(f"it was asked for its submission and refused: {text}")
        reader = zlib.decompressobj()
        try:
            found = reader.decompress(base64.b64decode(text, validate=True), SUBMISSION_BYTES + 1)
        except (binascii.Error, ValueError, zlib.error):
            raise self._breaks("its submission cannot be read") from None
        return found.decode(errors="replace") if len(found) <= SUBMISSION_BYTES else None

    def _forked(self, sessions: list[Session], *, ended: bool, state: str) -> list[World]:
        begun: Future[None] = Future()
        begun.set_result(None)
        worlds = [World(self.environment, self.tools, session, self._output_bytes, begun) for session in sessions]
        for world in worlds:
            world._commanded, world._ended = self._commanded, ended
            world._state = world._kept = state
        return worlds

    def _breaks(self, why: str) -> InfrastructureError:
        if self._commanded:
            self._ended = True
        else:
            self._origin._broken = self._origin._broken or why
        return self._lost(why)

    def _lost(self, why: str) -> InfrastructureError:
        return InfrastructureError(
            f"a world of {self.environment.name} is broken: {why[:ERROR_CHARS]}",
            hint="the rollout is not counted; if all are lost, run `assay doctor`, then repair the environment",
        )


def _marked(mark: str, result: CallResult) -> tuple[str, CallResult]:
    """Returns the line that follows the mark in a call's output. An empty line without a mark."""
    before, found, rest = result.output.rpartition(mark)
    return (rest.partition("\n")[0] if found and mark not in before else ""), result


def _then(future: Future[A], make: Callable[[A], B]) -> Future[B]:
    """Returns a future that gets `make` applied to this future's result."""
    made: Future[B] = Future()
    _pass_on(future, made, make)
    return made


def _pass_on(future: Future[A], made: Future[B], make: Callable[[A], B], *, only_errors: bool = False) -> None:
    def arrived(done: Future[A]) -> None:
        try:
            value = make(done.result())
        except BaseException as error:  # noqa: BLE001 - it is raised again by who waits
            if not made.done():
                made.set_exception(error)
        else:
            if not only_errors and not made.done():
                made.set_result(value)

    future.add_done_callback(arrived)


@cache
def _driver() -> str:
    return Path(__file__).with_name("guest.py").read_text()
