"""Runs the tool calls of many rollouts, in sessions and worlds of their own, and says when they come back.

What always holds. The only way to run code is the session pool that is handed in. A call never blocks who starts it. A
rollout's session is opened for its first call of Python and its world for the first call of another tool, so one that
calls nothing has none.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from appliance.agent.assignment import Assignment, LiveRollout
from appliance.agent.branching import BranchPoint
from appliance.agent.isolation import priority_of
from appliance.agent.leases import WorldLease
from appliance.agent.worlds import TaskWorlds
from appliance.records.rollouts import ToolCall, ToolStatus
from appliance.rendering.renderer import PYTHON, ToolRequest
from curriculum.worlds.world import World, WorldReply
from runtime.errors import BusyError, InfrastructureError, LimitError, SandboxError
from runtime.sandbox import CallResult, Session, SessionPool, Tier

LOST = (InfrastructureError, BusyError, LimitError)
"""What says nothing about the policy model: a broken sandbox or world, no place for one, a quota that is used up."""


@dataclass(frozen=True)
class WorldEnd:
    """Is what a world came to, where it was asked for that."""

    submission: str | None


Back = tuple[int, Future[Any]]
"""The number of a rollout, and its `CallResult`, `WorldReply` or `WorldEnd`."""


class ToolCalls:
    def __init__(self, sessions: SessionPool) -> None:
        self._sessions = sessions
        self._arrived: SimpleQueue[Callable[[], Back | None]] = SimpleQueue()
        self.worlds = TaskWorlds(sessions, self._arrived.put)

    @property
    def arrived(self) -> bool:
        """Says whether something has come back that nobody has taken yet."""
        return not self._arrived.empty()

    def start(self, number: int, live: LiveRollout, request: ToolRequest, *, keep: bool) -> None:
        """Runs a call of the rollout with that number; `keep`: it may be undone. Raises LOST, RefusedError without
        isolation, and CurriculumError where there is no such environment. A world that cannot be made here comes back
        as an InfrastructureError of the call."""
        live.waits, live.running = True, request
        kept = {"keep": True} if keep else {}
        if request.tool != PYTHON.name:
            self._ask(number, live, lambda world: world.start(request.tool, request.arguments, **kept))
            return
        if live.session is None:
            live.session = self._open(live.assignment)
        future = live.session.start(request.code, **kept)
        future.add_done_callback(lambda done: self._arrived.put(lambda: (number, done)))

    def end(self, number: int, live: LiveRollout, *, submits: bool) -> bool:
        """Has a rollout's world asked for what it submits, and one that is shared for its digest; whether there is
        anything to wait for. Raises as `start`."""
        shared = live.world is not None and live.world.shared and live.world.world is not None
        if not submits and not shared:
            return False
        live.waits, live.running = True, None
        lease = self._lease(live)

        def ask(world: World | BaseException) -> None:
            if isinstance(world, BaseException):
                self._arrived.put(lambda: (number, _failed(world)))
                return
            submitted = world.start_submission() if submits else None
            digest = world.start_digest() if lease.shared else None
            last: Future[Any] | None = digest or submitted
            assert last is not None
            last.add_done_callback(lambda _: self._arrived.put(partial(self._ended, number, lease, submitted, digest)))

        lease.use(ask)
        return True

    def fork(self, point: BranchPoint, live: LiveRollout, count: int) -> list[WorldLease | None]:
        """Gives as many branches worlds of their own, as this rollout's was at that point; None for one that opens its
        own. What fails then fails the branch."""
        if live.world is None or point.world.fresh:
            return [None] * count
        return [*self.worlds.fork(live.world, count, undo=point.world.kept)]

    def take(self, seconds: float) -> Back | None:
        """Takes the number of a rollout whose call came back, and what came; None when none does in so many seconds."""
        try:
            while True:
                back = self._arrived.get(timeout=seconds)()
                if back is not None:
                    return back
        except Empty:
            return None

    def _ask(self, number: int, live: LiveRollout, do: Callable[[World], Future[WorldReply]]) -> None:
        lease = self._lease(live)

        def ask(world: World | BaseException) -> None:
            try:
                future = _failed(world) if isinstance(world, BaseException) else do(world)
            except SandboxError as error:
                future = _failed(error)
            future.add_done_callback(lambda done: self._arrived.put(lambda: (number, self._believed(lease, done))))

        lease.use(ask)

    def _believed(self, lease: WorldLease, done: Future[WorldReply]) -> Future[Any]:
        """What a call came to; why the world cannot be believed, where somebody changed it meanwhile. One that others
        share and that did not answer is given to nobody else."""
        if isinstance(done.exception(), LOST):
            self.worlds.retire(lease)
        return done if lease.failed is None else _failed(lease.failed)

    def _lease(self, live: LiveRollout) -> WorldLease:
        if live.world is None:
            live.world = self.worlds.lease(live.assignment, live.max_calls)
        return live.world

    def _ended(
        self, number: int, lease: WorldLease, submitted: Future[str | None] | None, digest: Future[str] | None
    ) -> Back:
        try:
            if lease.failed is not None:
                raise lease.failed
            if digest is not None:
                self.worlds.verify(lease, digest)
            done: Future[WorldEnd] = Future()
            done.set_result(WorldEnd(submitted.result() if submitted is not None else None))
        except SandboxError as error:
            return number, _failed(error)
        return number, done

    def _open(self, assignment: Assignment) -> Session:
        """Opens a session of the rollout's own, with a sandbox of its own where files lie in it. Each rollout is a
        caller, so that none waits behind all the calls of another."""
        files = {name: text.encode() for name, text in assignment.task.files.items()} | dict(assignment.files)
        priority = priority_of(assignment.purpose)
        if not files:
            return self._sessions.open(tier=assignment.tier, caller=assignment.id, priority=priority)
        return self._sessions.open(tier=assignment.tier, caller=assignment.id, priority=priority, files=files)


def _failed(error: BaseException) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def call_of(request: ToolRequest, result: CallResult | WorldReply) -> ToolCall:
    """Makes the record of a call that came back."""
    if isinstance(result, WorldReply):
        return ToolCall(
            tool=request.tool,
            arguments=dict(request.arguments),
            status=ToolStatus.EXCEPTION if result.failed else ToolStatus.OK,
            output="" if result.failed else result.text,
            error=result.text if result.failed else "",
            seconds=result.seconds,
            tier=Tier.SANDBOX,
            sandbox=result.sandbox,
        )
    return ToolCall(
        code=request.code,
        status=ToolStatus(result.status.value),
        output=result.output,
        error=result.error,
        seconds=result.seconds,
        tier=result.tier,
        sandbox=result.sandbox,
    )
