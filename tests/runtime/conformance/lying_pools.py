"""Pools over a real one that tell or do something untrue: what a broken backend would look like to a caller.

Each lie is as small as can be, so that a check which lets it pass is a check that sees nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from runtime.sandbox import CallResult, CallStatus, Limits, Sandbox, Session, SessionPool, SnapshotId, Tier

Changed = Callable[[CallResult], CallResult]
Sent = Callable[[str], str]


class LyingSandbox:
    """Hands everything on, but for what a lie replaces. A lie is called with this object before its arguments."""

    def __init__(self, real: Sandbox | Session, pool: LyingPool, lies: dict[str, Any]) -> None:
        self.real, self.pool, self.lies = real, pool, lies

    def __getattr__(self, name: str) -> Any:
        if name in self.lies:
            lie = self.lies[name]
            if not callable(lie):
                return lie
            return lambda *given, **named: lie(self, *given, **named)
        return getattr(self.real, name)


class LyingSession(LyingSandbox):
    def __enter__(self) -> LyingSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class LyingPool:
    """`sandbox` and `session` name methods and what stands in their place; `limits` are those that are really set."""

    def __init__(
        self,
        real: SessionPool,
        *,
        sandbox: dict[str, Any] | None = None,
        session: dict[str, Any] | None = None,
        limits: dict[str, float] | None = None,
        one_session: bool = False,
        forgets: bool = True,
    ) -> None:
        self.real = real
        self.left: list[int] = []
        self._sandbox, self._session, self._limits = sandbox or {}, session or {}, limits or {}
        self._one_session, self._forgets = one_session, forgets
        self._sessions: dict[Tier, Session] = {}
        self._given: list[Any] = []

    def open(self, *, tier: Tier, caller: str) -> Any:
        if not self._one_session or tier not in self._sessions:
            self._sessions[tier] = self.real.open(tier=tier, caller=caller)
            self._given.append(self._sessions[tier])
        return LyingSession(self._sessions[tier], self, self._session)

    def sandbox(self, limits: Limits, *, snapshot: SnapshotId | None = None, caller: str = "") -> Any:
        real = self.real.sandbox(limits.model_copy(update=self._limits), snapshot=snapshot, caller=caller)
        self._given.append(real)
        return LyingSandbox(real, self, self._sandbox)

    def forget(self, snapshot: SnapshotId) -> None:
        if self._forgets:
            self.real.forget(snapshot)

    def close(self) -> None:
        """Ends what a lie has left alive; the real pool stays."""
        with contextlib.ExitStack() as stack:
            for descriptor in self.left:
                stack.callback(os.close, descriptor)
            for given in self._given:
                stack.callback(given.close)


def telling(**changes: Any) -> dict[str, Any]:
    """Calls whose results are told otherwise."""
    return {"run": lambda self, code, **named: self.real.run(code, **named).model_copy(update=changes)}


def saying(changed: Changed) -> dict[str, Any]:
    return {"run": lambda self, code, **named: changed(self.real.run(code, **named))}


def sending(sent: Sent) -> dict[str, Any]:
    """Calls that run something else."""
    return {"run": lambda self, code, **named: self.real.run(sent(code), **named)}


def before_each(prelude: str) -> dict[str, Any]:
    """A guest in which something is so that should not be."""
    return sending(lambda code: f"{prelude}\n{code}")


def calling_it_ok(result: CallResult) -> CallResult:
    return result.model_copy(update={"status": CallStatus.OK})


def ended_well() -> Future[CallResult]:
    done: Future[CallResult] = Future()
    done.set_result(CallResult(status=CallStatus.OK, output="", seconds=0.0, tier=Tier.SANDBOX, sandbox="somewhere"))
    return done
