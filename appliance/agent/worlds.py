"""Provides worlds to rollouts: a world is prepared once per task and forked for each rollout.

Invariants: nothing here blocks: slow operations return through `arrive` as steps of the agent's loop, where everything
runs, and a fork for a finished rollout is closed immediately. Rollouts share a world only if its environment is
shareable, each through its own view; then a changed digest fails the world for all of them. No more rollouts share one
than its session has calls for; later ones get another. At most `PREPARED` worlds are kept prepared; an unused one is
dropped for another task's, and prepared again on demand. A world that cannot be created is an infrastructure error of
its waiting rollouts.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from appliance.agent.assignment import Assignment, WorldLease, priority_of
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Task
from curriculum.environments import ENVIRONMENTS
from curriculum.worlds.world import World
from runtime.errors import InfrastructureError, SandboxError
from runtime.sandbox import Priority, SessionPool

T = TypeVar("T")
PREPARED = 4
OWN_CALLS, END_CALLS = 3, 2
"""Calls of a world's session beside the model's: its driver, start and digest; per rollout, submission and digest."""
Arrive = Callable[[Callable[[], None]], None]
"""Queues a step for the agent's loop, from any thread."""


class PreparedWorld:
    """World of one task before any call."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.world: World | None = None
        """None until a slot is free."""
        self.ready = False
        self.digest = ""
        """Digest of a shared world before any call."""
        self.forking = 0
        self.waiting: list[WorldLease] = []
        self.sharing: list[WorldLease] = []
        self.branched: list[WorldLease] = []
        """Leases of branches that left its sharers and share another world."""
        self.promised = OWN_CALLS
        """Calls promised to its sharers, including ended ones."""
        self.retired = False
        """True if nobody else may share it."""

    def has_calls_for(self, lease: WorldLease, limit: int) -> bool:
        """True if one more rollout can share the world within `limit` calls; the first always can."""
        return self.promised == OWN_CALLS or self.promised + lease.calls + END_CALLS <= limit

    def share(self, lease: WorldLease) -> None:
        assert self.world is not None
        self.promised += lease.calls + END_CALLS
        self.sharing.append(lease)
        lease.shared, lease.digest = True, self.digest
        lease.give(self.world.view(lease.state))

    @property
    def awaited(self) -> bool:
        return any(not lease.closed for lease in self.waiting)

    @property
    def idle(self) -> bool:
        return not (self.waiting or self.forking or any(not lease.closed for lease in self.sharing))


class TaskWorlds:
    def __init__(self, sessions: SessionPool, arrive: Arrive) -> None:
        self._sessions, self._arrive = sessions, arrive
        self._prepared: list[PreparedWorld] = []
        """Prepared worlds: at most one per task is not retired."""

    def lease(self, assignment: Assignment, calls: int) -> WorldLease:
        """Leases a task's initial world to a rollout, for at most `calls` calls. Raises CurriculumError for an unknown
        environment."""
        task = assignment.task
        if task.environment not in ENVIRONMENTS:
            raise CurriculumError(
                f"unknown environment {task.environment!r} of the task",
                hint="add a folder and a row in curriculum/environments",
            )
        lease = WorldLease(calls)
        self._wait(lease, task, priority_of(assignment.purpose))
        return lease

    def fork(self, lease: WorldLease, count: int, *, undo: bool) -> list[WorldLease]:
        """Forks a leased world; returns `count` leases that continue from its current state, or with `undo` from before
        the saved call."""
        branches = [WorldLease(lease.calls) for _ in range(count)]
        world = lease.world
        if world is None or lease.failed is not None:
            failed = lease.failed or InfrastructureError("a rollout branched before it had a world")
            for branch in branches:
                branch.give(failed)
        elif lease.shared:
            holder = next(one for one in self._prepared if lease in one.sharing)
            for before in [one for one in self._prepared if lease in one.branched]:
                before.branched += branches  # what was read there must hold for them too
            for branch in branches:
                branch.state = world.state_kept if undo else world.state
                if holder.has_calls_for(branch, self._sessions.limits.calls):
                    holder.share(branch)
                else:  # another world is equal, but what was read here must hold
                    holder.branched.append(branch)
                    self._wait(branch, holder.task, Priority.TRAINING)
        else:
            self._fork(world, branches, partial(_give_forks, branches), undo=undo)
        return branches

    def verify(self, lease: WorldLease, digest: Future[str]) -> None:
        """Checks that a shared world's digest is unchanged. If it changed, fails the world for all sharers and raises
        InfrastructureError, which a failed digest also raises."""
        if digest.result() != lease.digest:
            error = InfrastructureError(
                "a call changed a shared world that is declared read-only",
                hint="fix the environment, or set shareable = False in it",
            )
            for prepared in [one for one in self._prepared if lease in one.sharing]:
                for sharer in (*prepared.sharing, *prepared.branched):
                    sharer.failed = error
                self._drop(prepared)
            raise error

    def retire(self, lease: WorldLease) -> None:
        """Stops sharing this world with new rollouts."""
        for prepared in self._prepared:
            prepared.retired |= lease in prepared.sharing

    def free(self, task: str, *, wanted: bool) -> None:
        """Frees a task's prepared worlds that no rollout needs: all, or while `wanted` only idle retired ones. Never
        raises."""
        for prepared in [one for one in self._prepared if one.task.id == task]:
            if not wanted or (prepared.retired and prepared.idle):
                self._drop(prepared)
        self._begin_some(Priority.TRAINING)

    # inside

    def _later(self, future: Future[T], step: Callable[[Future[T]], None]) -> None:
        future.add_done_callback(lambda done: self._arrive(partial(step, done)))

    def _wait(self, lease: WorldLease, task: Task, priority: Priority) -> None:
        prepared = self._of(task)
        prepared.waiting.append(lease)
        if prepared.world is None:
            self._begin_some(priority)
        elif prepared.ready:
            self._serve(prepared)

    def _of(self, task: Task) -> PreparedWorld:
        """Returns the task's prepared world for new leases, creating one if needed."""
        found = next((one for one in self._prepared if one.task.id == task.id and not one.retired), None)
        if found is None:
            found = PreparedWorld(task)
            self._prepared.append(found)
        return found

    def _fork(
        self, world: World, leases: list[WorldLease], step: Callable[[Future[list[World]]], None], *, undo: bool = False
    ) -> None:
        future = world.start_fork(len(leases), undo=undo)
        future.add_done_callback(partial(_reserve, leases))
        self._later(future, step)

    def _has_room(self) -> bool:
        """True if one more world can be prepared; drops an idle one if necessary."""
        begun = [one for one in self._prepared if one.world is not None]
        idle = [one for one in begun if one.ready and one.idle]
        if len(begun) >= PREPARED and idle:
            self._drop(idle[0])
        return len(begun) < PREPARED or bool(idle)

    def _begin_some(self, priority: Priority) -> None:
        """Opens the worlds that rollouts wait for, while there is room, in order of request."""
        for prepared in [one for one in self._prepared if one.world is None and one.awaited]:
            if not self._has_room():
                return
            task = prepared.task
            try:
                environment = ENVIRONMENTS[task.environment]
                prepared.world = World.open(
                    self._sessions, environment, task.world, caller=f"world {task.id}", priority=priority
                )
            except SandboxError as error:
                self._fail(prepared, error)
                continue
            except CurriculumError as error:
                self._fail(prepared, InfrastructureError(str(error), hint=error.hint))
                continue
            begun = prepared.world.begun
            if environment.shareable:
                self._later(begun, partial(self._begun_to_share, prepared))
            else:
                self._later(begun, partial(self._begun, prepared))

    def _begun_to_share(self, prepared: PreparedWorld, begun: Future[None]) -> None:
        if begun.exception() is not None or prepared.world is None:
            self._begun(prepared, begun)
        else:
            self._later(prepared.world.start_digest(), partial(self._begun, prepared))

    def _begun(self, prepared: PreparedWorld, done: Future[None] | Future[str]) -> None:
        if prepared not in self._prepared:  # it was freed
            return
        error = done.exception()
        if error is not None:
            self._fail(prepared, error)
            return
        prepared.ready, prepared.digest = True, done.result() or ""
        self._serve(prepared)

    def _serve(self, prepared: PreparedWorld) -> None:
        """Gives the prepared world to sharing rollouts, or a fork to each waiting rollout; later ones wait for the next
        fork."""
        world = prepared.world
        assert world is not None
        prepared.waiting = [lease for lease in prepared.waiting if not lease.closed]
        if world.environment.shareable:
            prepared.sharing = [one for one in prepared.sharing if not one.closed]
            while prepared.waiting and prepared.has_calls_for(prepared.waiting[0], self._sessions.limits.calls):
                prepared.share(prepared.waiting.pop(0))
            if prepared.waiting:
                prepared.retired = True
                self._of(prepared.task).waiting += prepared.waiting
                prepared.waiting = []
                self._begin_some(Priority.TRAINING)
        elif prepared.waiting and not prepared.forking:
            leases, prepared.waiting = prepared.waiting, []
            prepared.forking = len(leases)
            self._fork(world, leases, partial(self._forked, prepared, leases))

    def _forked(self, prepared: PreparedWorld, leases: list[WorldLease], done: Future[list[World]]) -> None:
        prepared.forking = 0
        _give_forks(leases, done)
        if prepared not in self._prepared:
            return
        if done.exception() is not None:
            self._fail(prepared, done.exception())
        else:
            self._serve(prepared)
            self._begin_some(Priority.TRAINING)

    def _fail(self, prepared: PreparedWorld, error: BaseException | None) -> None:
        assert error is not None
        waiting, prepared.waiting = prepared.waiting, []
        self._drop(prepared)
        for lease in waiting:
            lease.give(error)

    def _drop(self, prepared: PreparedWorld) -> None:
        self._prepared.remove(prepared)
        if prepared.world is not None:
            prepared.world.close()
        for lease in prepared.waiting:
            lease.give(InfrastructureError("the world of the task was dropped"))


def _reserve(leases: list[WorldLease], done: Future[list[World]]) -> None:
    """Reserves forked worlds for their leases in the completing thread. A fork for an ended rollout is thus closed even
    without a running loop."""
    if done.exception() is None:
        for lease, world in zip(leases, done.result(), strict=True):
            lease.reserve(world)


def _give_forks(leases: list[WorldLease], done: Future[list[World]]) -> None:
    error = done.exception()
    for place, lease in enumerate(leases):
        lease.give(done.result()[place] if error is None else error)
