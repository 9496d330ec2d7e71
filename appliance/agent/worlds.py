"""Gives rollouts the worlds of their tasks: a world is prepared once for a task, and each rollout has a fork of it.

What always holds. Nothing here waits: what takes time comes back by `arrive`, as a step for the agent's loop, where all
of it runs, and a fork that comes for a rollout that has ended is closed on the spot. Rollouts share a world only where
its environment says that it is shareable, each by a view of its own, and then a digest that is no longer what it was
breaks the world for all of them; no more share one than can make all their calls in its session, and the next ones have
another. At most
`PREPARED` worlds are kept prepared; one that nobody waits for or shares gives way to another task's, and is prepared
anew when it is wanted again. A world that cannot be made is the infrastructure's failure of those who wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from appliance.agent.assignment import Assignment
from appliance.agent.isolation import priority_of
from appliance.agent.leases import WorldLease
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Task
from curriculum.environments import ENVIRONMENTS
from curriculum.worlds.world import World
from runtime.errors import InfrastructureError, SandboxError
from runtime.sandbox import Priority, SessionPool

T = TypeVar("T")
PREPARED = 4
OWN_CALLS, END_CALLS = 3, 2
"""Calls of a world's session that no model makes: its driver, its beginning and its digest; a rollout's submission and
the digest behind it."""
Arrive = Callable[[Callable[[], None]], None]
"""Hands a step over to the agent's loop, from any thread."""


class PreparedWorld:
    """Is the world of one task before any call."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.world: World | None = None
        """None until there is a place for it."""
        self.ready = False
        self.digest = ""
        """Of a world that is shared, before any call."""
        self.forking = 0
        self.waiting: list[WorldLease] = []
        self.sharing: list[WorldLease] = []
        self.branched: list[WorldLease] = []
        """Of branches that left those who share it, and share another one."""
        self.promised = OWN_CALLS
        """Calls that those who share it may make, also those who have ended."""
        self.retired = False
        """Nobody else is to share it."""

    def has_calls_for(self, lease: WorldLease, limit: int) -> bool:
        """Whether one more can share it; the first always can."""
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
        """Of each task at most one that is not retired."""

    def lease(self, assignment: Assignment, calls: int) -> WorldLease:
        """Asks for a world as the task begins with it, for so many calls at most. Raises CurriculumError where there is
        no such environment."""
        task = assignment.task
        if task.environment not in ENVIRONMENTS:
            raise CurriculumError(
                f"the task needs a world of {task.environment!r}, and there is no such environment",
                hint="an environment has a folder and a row in curriculum/environments",
            )
        lease = WorldLease(calls)
        self._wait(lease, task, priority_of(assignment.purpose))
        return lease

    def fork(self, lease: WorldLease, count: int, *, undo: bool) -> list[WorldLease]:
        """Makes leases of worlds that go on from where this one is; `undo`: from before the call that was kept."""
        branches = [WorldLease(lease.calls) for _ in range(count)]
        world = lease.world
        if world is None or lease.failed is not None:
            failed = lease.failed or InfrastructureError("a rollout branched before it had a world")
            for branch in branches:
                branch.give(failed)
        elif lease.shared:
            holder = next(one for one in self._prepared if lease in one.sharing)
            for before in [one for one in self._prepared if lease in one.branched]:
                before.branched += branches  # what was read there has to stand for them, too
            for branch in branches:
                branch.state = world.state_kept if undo else world.state
                if holder.has_calls_for(branch, self._sessions.limits.calls):
                    holder.share(branch)
                else:  # another one is as good, but what was read here has to stand
                    holder.branched.append(branch)
                    self._wait(branch, holder.task, Priority.TRAINING)
        else:
            self._fork(world, branches, partial(_give_forks, branches), undo=undo)
        return branches

    def verify(self, lease: WorldLease, digest: Future[str]) -> None:
        """Breaks a shared world, for all who share it, when its digest is no longer what it was. Raises
        InfrastructureError then, or where there is none."""
        if digest.result() != lease.digest:
            error = InfrastructureError(
                "a world that says it only reads was changed by a call, and rollouts share it",
                hint="mend the environment, or have it say shareable = False",
            )
            for prepared in [one for one in self._prepared if lease in one.sharing]:
                for sharer in (*prepared.sharing, *prepared.branched):
                    sharer.failed = error
                self._drop(prepared)
            raise error

    def retire(self, lease: WorldLease) -> None:
        """Gives the world that is shared there to nobody else."""
        for prepared in self._prepared:
            prepared.retired |= lease in prepared.sharing

    def free(self, task: str, *, wanted: bool) -> None:
        """Gives up what was prepared for a task, by its id, that no rollout needs any more: all of it, or, while some
        rollouts want the task's world, what no other is to share. Never raises."""
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
        """The one that is given to who asks now; a new one where there is none."""
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
        """Says whether one more can be prepared; one that is idle gives way."""
        begun = [one for one in self._prepared if one.world is not None]
        idle = [one for one in begun if one.ready and one.idle]
        if len(begun) >= PREPARED and idle:
            self._drop(idle[0])
        return len(begun) < PREPARED or bool(idle)

    def _begin_some(self, priority: Priority) -> None:
        """Opens the worlds that are waited for, as many as there is room for, those first that were wanted first."""
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
        if prepared not in self._prepared:  # freed meanwhile
            return
        error = done.exception()
        if error is not None:
            self._fail(prepared, error)
            return
        prepared.ready, prepared.digest = True, done.result() or ""
        self._serve(prepared)

    def _serve(self, prepared: PreparedWorld) -> None:
        """Gives the world to those who share it, or a fork to each who waits; who comes meanwhile waits for the next
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
            lease.give(InfrastructureError("the world of the task was given up"))


def _reserve(leases: list[WorldLease], done: Future[list[World]]) -> None:
    """Runs where the fork comes back, so that one for a rollout that has ended is closed though no loop runs."""
    if done.exception() is None:
        for lease, world in zip(leases, done.result(), strict=True):
            lease.reserve(world)


def _give_forks(leases: list[WorldLease], done: Future[list[World]]) -> None:
    error = done.exception()
    for place, lease in enumerate(leases):
        lease.give(done.result()[place] if error is None else error)
