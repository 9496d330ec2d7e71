"""Runs the tool calls of many rollouts in sessions of their own, and says when they come back.

What always holds. The only way to run code is the session pool that is handed in. A call never blocks who starts it. A
rollout's session is opened for its first call, so one that calls nothing has none.
"""

from __future__ import annotations

from concurrent.futures import Future
from queue import Empty, SimpleQueue

from appliance.agent.assignment import Assignment, LiveRollout
from appliance.agent.isolation import priority_of
from appliance.records.rollouts import ToolCall, ToolStatus
from appliance.rendering.renderer import ToolRequest
from runtime.errors import BusyError, InfrastructureError, LimitError
from runtime.sandbox import CallResult, Session, SessionPool

LOST = (InfrastructureError, BusyError, LimitError)
"""What says nothing about the policy model: a broken sandbox, no place for one, a quota that is used up."""


class ToolCalls:
    def __init__(self, sessions: SessionPool) -> None:
        self._sessions = sessions
        self._arrived: SimpleQueue[tuple[int, Future[CallResult]]] = SimpleQueue()

    @property
    def arrived(self) -> bool:
        """Says whether a call has come back that nobody has taken yet."""
        return not self._arrived.empty()

    def start(self, number: int, live: LiveRollout, request: ToolRequest, *, keep: bool) -> None:
        """Runs a call of the rollout with that number; `keep`: it may be undone. Raises LOST, and RefusedError without
        isolation."""
        if live.session is None:
            live.session = self._open(live.assignment)
        live.running = request
        kept = {"keep": True} if keep else {}
        future = live.session.start(request.code, **kept)
        arrivals = self._arrived
        future.add_done_callback(lambda done: arrivals.put((number, done)))

    def take(self, seconds: float) -> tuple[int, Future[CallResult]] | None:
        """Takes the number of a rollout whose call came back, and what came; None when none does in so many seconds."""
        try:
            return self._arrived.get(timeout=seconds)
        except Empty:
            return None

    def _open(self, assignment: Assignment) -> Session:
        """Opens a session of the rollout's own, with a sandbox of its own where files lie in it. Each rollout is a
        caller, so that none waits behind all the calls of another."""
        files = {name: text.encode() for name, text in assignment.task.files.items()} | dict(assignment.files)
        given = {"files": files} if files else {}
        priority = priority_of(assignment.purpose)
        return self._sessions.open(tier=assignment.tier, caller=assignment.id, priority=priority, **given)


def call_of(request: ToolRequest, result: CallResult) -> ToolCall:
    """Makes the record of a call that came back."""
    return ToolCall(
        code=request.code,
        status=ToolStatus(result.status.value),
        output=result.output,
        error=result.error,
        seconds=result.seconds,
        tier=result.tier,
        sandbox=result.sandbox,
    )
