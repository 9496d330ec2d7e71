"""Runs the tool calls of many rollouts asynchronously, in their own sessions and worlds.

Invariants: code runs only in the given session pool. Starting a call never blocks. A session is opened for a rollout's
first Python call and a world for the first call of another tool, so a rollout without calls has neither.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from appliance.agent.assignment import Assignment, LiveRollout, WorldLease
from appliance.agent.branching import BranchPoint
from appliance.agent.limits import priority_of
from appliance.agent.worlds import TaskWorlds
from appliance.records.rollouts import ToolCall, ToolStatus
from appliance.rendering.renderer import PYTHON, ToolRequest
from curriculum.worlds.world import World, WorldReply
from runtime.errors import BusyError, InfrastructureError, LimitError, SandboxError
from runtime.sandbox import CallResult, Session, SessionPool, Tier

LOST = (InfrastructureError, BusyError, LimitError)
"""Errors that say nothing about the policy model: a failed sandbox or world, no free slot, an exhausted quota."""


@dataclass(frozen=True)
class WorldEnd:
    """Result of a world at the end of its rollout."""

    submission: str | None


Back = tuple[int, Future[Any]]
"""Rollout number, and its `CallResult`, `WorldReply` or `WorldEnd`."""


class ToolCalls:
    def __init__(self, sessions: SessionPool) -> None:
        self._sessions = sessions
        self._arrived: SimpleQueue[Callable[[], Back | None]] = SimpleQueue()
        self.worlds = TaskWorlds(sessions, self._arrived.put)

    @property
    def arrived(self) -> bool:
        """True if the result of a tool call waits to be taken."""
        return not self._arrived.empty()

    def start(self, number: int, live: LiveRollout, request: ToolRequest, *, keep: bool) -> None:
        """Starts a tool call of the rollout with that number; `keep`: it may be undone. Raises LOST, RefusedError
        without isolation, and CurriculumError for an unknown environment. A world that cannot be created fails the call
        with InfrastructureError."""
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
        """Requests what an ending rollout needs of its world: the submission, and a shared world's digest. False if
        there is nothing to wait for. Raises as `start`."""
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
        """Forks the rollout's world for `count` branches, as at the branch point; None for a branch that opens its own.
        Later failures fail the branch."""
        if live.world is None or point.world.fresh:
            return [None] * count
        return [*self.worlds.fork(live.world, count, undo=point.world.kept)]

    def take(self, seconds: float) -> Back | None:
        """Takes a finished tool call: its rollout's number and its result; None if none finishes within `seconds`."""
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
        """Returns a world call's result, or the failure of the world if another call changed it. A shared world that
        did not answer is given to nobody else."""
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
        """Opens a Python session for the rollout, in a sandbox of its own if it has files. Each rollout is a separate
        caller, so none queues behind another's calls."""
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
    """Returns the record of a finished tool call."""
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
