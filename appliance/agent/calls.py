"""Runs the tool calls of many rollouts asynchronously, in their own sessions and worlds, and starts their branches.

Invariants: code runs only in the given session pool. Starting a call never blocks. A session is opened for a rollout's
first Python call and a world for the first call of another tool, so a rollout without calls has neither.

An attempt that cannot branch continues unchanged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from appliance.agent.assignment import Assignment, LiveRollout, WorldLease, needs_world, priority_of
from appliance.agent.branching import Branching, BranchPoint, has_come_some_way, higher
from appliance.agent.worlds import TaskWorlds
from appliance.inference.engine import Turn
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


log = logging.getLogger(__name__)


class RolloutBranches:
    """Branches of the rollouts in one batch of an agent; without `wanted` nothing branches."""

    def __init__(self, wanted: Branching | None, assignments: Sequence[Assignment] = ()) -> None:
        self.wanted = wanted
        behind = wanted.behind if wanted is not None else 0
        self._first_sample = max(behind, max((one.sample for one in assignments), default=-1) + 1)
        self._made = 0

    def left(self, live: LiveRollout) -> int:
        """Returns the number of branches that a rollout may still have."""
        wanted = self.wanted
        if wanted is None or live.streamed or not live.assignment.temperature:
            return 0
        if live.branch_of is not None or live.branches:
            return 0
        late = wanted.first is not None and live.assignment.sample >= wanted.first
        return 0 if late else wanted.left(self._made)

    def look(self, live: LiveRollout, turn: Turn) -> None:
        """Updates the rollout's most uncertain point, where it may branch, from a new turn."""
        if self.wanted is not None and self.wanted.at_entropy and self.left(live):
            live.point = higher(
                live.point, live.said, turn, live.calls, fresh=live.session is None, fresh_world=live.world is None
            )

    def keeps(self, live: LiveRollout, request: ToolRequest) -> bool:
        """True if the rollout's next call must be undoable, so that a branch can start before it."""
        if not self.left(live):
            return False
        state = live.point.state(request) if live.point is not None else None
        if not self._at_failure(live):
            return state is not None and state.keep()
        if state is not None and state.kept:  # a state is saved for one call only, and this one may fail
            live.point = None
        elif state is not None:
            state.keep()
        return True

    def before(self, live: LiveRollout, call: ToolCall) -> BranchPoint | None:
        """Returns the branch point before a failed call; None if the rollout does not branch there."""
        if not call.status.failed or not self._at_failure(live):
            return None
        point = BranchPoint(live.said.before_last_turn(), live.calls - 1)
        point.state(live.running).kept = live.running is not None
        return point

    def behind(self, live: LiveRollout, call: ToolCall) -> BranchPoint | None:
        """Returns the branch point after a failed call's result; None if the rollout does not branch there."""
        mends = call.status.failed and self.wanted is not None and self.wanted.where == "repair"
        return BranchPoint(live.said, live.calls) if mends and len(live.said.ids) < live.max_tokens else None

    def begin(
        self, live: LiveRollout, point: BranchPoint, calls: ToolCalls, worlds: int, now: float
    ) -> list[LiveRollout]:
        """Starts the rollout's branches at that point, with room for `worlds` worlds, and returns them; empty if
        impossible."""
        count = self.left(live)
        if needs_world(live.assignment.task):
            count = min(count, worlds)
        if self.wanted is None or count <= 0:
            return []
        try:
            sessions = point.sessions(live.session, count)
        except SandboxError as error:
            log.warning("%s could not branch: %s", live.assignment.id, error)
            live.branches = count
            return []
        self._made += count
        first = self._first_sample + live.assignment.sample * self.wanted.each
        return [
            live.branch(point, session, world, first + number, now)
            for number, (session, world) in enumerate(zip(sessions, calls.fork(point, live, count), strict=True))
        ]

    def _at_failure(self, live: LiveRollout) -> bool:
        return self.wanted is not None and self.wanted.at_failures and has_come_some_way(live.said.nodes)
