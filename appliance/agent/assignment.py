"""Rollout assignments, their tier and priority, the state and leases of running rollouts, and matching of saved ones.

Invariants: a rollout saved by an earlier process is checked against its assignment: the prompt is rewritten from the
task, and the answer is read again from the tokens. A submission of a world cannot be read from tokens; everything else
of such a rollout is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from appliance.agent.answers import NO_ANSWER, Final, final_answer
from appliance.agent.branching import BranchPoint, branch_id, branch_seed
from appliance.agent.conversation import Conversation
from appliance.agent.keeping import Replay
from appliance.agent.usage import added
from appliance.inference.engine import Turn
from appliance.records.rollouts import Purpose, Rollout, RolloutEnd, ToolCall
from appliance.rendering.renderer import Ids, Renderer, ToolRequest
from appliance.rendering.tools import tools_of
from curriculum.contract.task import Task
from curriculum.worlds.world import World
from policies.permissions import Use as PolicyUse
from policies.permissions import tier_for
from policies.policy import Policy
from runtime.errors import InfrastructureError
from runtime.sandbox import Priority, Session, Tier, Usage
from verifiers.contract.kinds import AnswerForm

Use = Callable[[World | BaseException], None]


class WorldLease:
    """One rollout's lease of a world, used only from the agent's loop, except `reserve`. A world that arrives after
    `close`, or was reserved but not given, is closed immediately."""

    def __init__(self, calls: int, *, shared: bool = False, digest: str = "") -> None:
        self.calls = calls
        """Maximum calls of its rollout."""
        self.world: World | None = None
        self.failed: BaseException | None = None
        """Reason that the world is missing or no longer trusted."""
        self.shared = shared
        """True if other rollouts have views of the same world, whose digest must not change."""
        self.digest = digest
        self.state = ""
        """State from which its view of a shared world continues; empty for the task's initial world."""
        self.closed = False
        self._uses: list[Use] = []
        self._lock = Lock()
        self._reserved: World | None = None

    def use(self, then: Use) -> None:
        """Calls back with the leased world or its failure, now or once known."""
        known = self.failed or self.world
        if known is not None:
            then(known)
        else:
            self._uses.append(then)

    def reserve(self, world: World) -> None:
        """Records the world to be given, from any thread, as soon as it exists. Closes it if the lease was closed."""
        with self._lock:
            self._reserved = world
            closed = self.closed
        if closed:
            world.close()

    def give(self, given: World | BaseException) -> None:
        """Provides the leased world, or its failure, and calls everybody who waits for it."""
        if isinstance(given, BaseException):
            self.failed = given
        elif self.closed:
            if not self.shared:
                given.close()
            return
        else:
            self.world = given
        uses, self._uses = self._uses, []
        for then in uses:
            then(given)

    def close(self) -> None:
        with self._lock:
            self.closed = True
        self.failed = self.failed or InfrastructureError("the rollout has ended")
        for world in (self._reserved, self.world):
            if world is not None and not self.shared:
                world.close()


@dataclass(frozen=True)
class Assignment:
    """One rollout to make."""

    id: str
    task: Task
    cycle: str
    step: int
    sample: int
    purpose: Purpose
    temperature: float
    seed: int
    tier: Tier = Tier.SHARED
    """Minimum isolation that policy and taskset require."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Initial files of the session's working folder, by name, beside the task's own."""
    max_calls: int | None = None
    """Maximum tool calls, if below the agent's and the task's limits."""
    max_completion: int | None = None
    """Maximum completion tokens, if below the agent's and the task's limits."""


def needs_world(task: Task) -> bool:
    """True if the task's rollouts act in a world of its environment, not only in Python."""
    return task.environment != "python"


@dataclass(frozen=True)
class Ending:
    ended: RolloutEnd
    final: Final
    """Answer in the last turn."""
    submits: bool
    """True if the world submits the answer instead."""


@dataclass
class LiveRollout:
    """A running rollout."""

    assignment: Assignment
    max_tokens: int
    max_calls: int
    started: float
    said: Conversation
    session: Session | None = None
    """Session that runs its Python."""
    world: WorldLease | None = None
    """World that its other tools change."""
    calls: int = 0
    waits: bool = False
    """True while a request for it is pending."""
    running: ToolRequest | None = None
    """Call of the pending request, if any."""
    ending: Ending | None = None
    """Its end, once it waits only for its world's result."""
    branch_of: str | None = None
    branch_at: int = 0
    branch_token: int = 0
    branches: int = 0
    """Branches that have left it."""
    streamed: bool = False
    """True if added by `Agent.add`, without a waiting `roll`."""
    moves: int = 0
    """Times its session's host was lost and the rollout moved."""
    begun: Turn | None = None
    """A branch's prefix of its first turn."""
    replay: Replay | None = None
    """State from an earlier process, to be replayed before the engine continues."""
    point: BranchPoint | None = None
    """Most uncertain point so far, if it may branch there."""

    def branch(
        self, point: BranchPoint, session: Session | None, world: WorldLease | None, sample: int, now: float
    ) -> LiveRollout:
        """Creates a running branch of this rollout that continues from the branch point, in that session and world."""
        self.branches += 1
        made = self.assignment
        own = replace(
            made, id=branch_id(made.id, self.branches), sample=sample, seed=branch_seed(made.seed, self.branches)
        )
        return LiveRollout(
            own,
            self.max_tokens,
            self.max_calls,
            now,
            point.said.copy(),
            session,
            world,
            point.calls,
            branch_of=made.id,
            branch_at=len(point.said.nodes),
            branch_token=len(point.begun.ids) if point.begun is not None else 0,
            begun=point.begun,
        )

    def end(self, ended: RolloutEnd, now: float, answer: str | None = None, answers: int = 0) -> Rollout:
        """Ends the running rollout: closes its session and world, and returns its record."""
        usage = self._usage()
        self.close()
        made = self.assignment
        return Rollout(
            id=made.id,
            cycle=made.cycle,
            step=made.step,
            task=made.task.id,
            sample=made.sample,
            purpose=made.purpose,
            temperature=made.temperature,
            nodes=tuple(self.said.nodes),
            ended=ended,
            answer=answer,
            answers=answers,
            seconds=now - self.started,
            usage=usage,
            branch_of=self.branch_of,
            branch_at=self.branch_at,
            branch_token=self.branch_token,
        )

    def close(self) -> None:
        """Closes the rollout's session and world."""
        if self.session is not None:
            self.session.close()
        if self.world is not None:
            self.world.close()

    def _usage(self) -> Usage:
        """Sums the sandbox usage of the rollout's session and world. A shared world, or one on a lost host, is counted
        from the rollout's own calls."""
        own = [node.call for node in self.said.nodes[self.branch_at :] if node.call]
        asked = [call for call in own if call.asks_world]
        used: list[Usage] = []
        if self.session is not None:
            used.append(_measured(self.session, [call for call in own if call.status.ran and not call.asks_world]))
        if self.world is not None and self.world.shared:
            used.append(_counted(asked))
        elif self.world is not None and self.world.world is not None:
            used.append(_measured(self.world.world, asked))
        return added(used)


def _measured(holder: Session | World, calls: Sequence[ToolCall]) -> Usage:
    try:
        return holder.usage
    except InfrastructureError:  # a missing figure must not lose a rollout
        return _counted(calls)


def _counted(calls: Sequence[ToolCall]) -> Usage:
    sizes = sum(len(call.output.encode()) for call in calls)
    return Usage(calls=len(calls), seconds=sum(call.seconds for call in calls), output_bytes=sizes)


def is_of(rollout: Rollout, assignment: Assignment, renderer: Renderer) -> bool:
    """True if a saved rollout matches its assignment. Raises RenderingError if the model's format cannot write the
    task."""
    task = assignment.task
    asked = (assignment.cycle, assignment.step, task.id, assignment.sample, assignment.purpose, assignment.temperature)
    made = (rollout.cycle, rollout.step, rollout.task, rollout.sample, rollout.purpose, rollout.temperature)
    if asked != made or not rollout.nodes or rollout.branch_of is not None:
        return False
    if rollout.nodes[0] != Conversation.begin(renderer, task).nodes[0]:
        return False
    if rollout.ended is RolloutEnd.ANSWERED and task.form is AnswerForm.WORLD:
        return True
    return (rollout.answer, rollout.answers) == _answer_of(rollout, assignment, renderer)


def _answer_of(rollout: Rollout, assignment: Assignment, renderer: Renderer) -> tuple[str | None, int] | None:
    """Reads a rollout's answer and number of answers from its last turn; None if that turn cannot be an answer."""
    final: Final | None = NO_ANSWER
    if rollout.ended is RolloutEnd.ANSWERED:
        last = rollout.nodes[-1]
        read = renderer.read(last.ids, _read_before(rollout), tools_of(assignment.task)) if last.sampled else None
        final = final_answer(read, assignment.task.form) if isinstance(read, str) else None
    return None if final is None else (final.answer, final.answers)


def _read_before(rollout: Rollout) -> Ids:
    """Returns the tokens before a rollout's last message, on its path from the root."""
    ids: Ids = ()
    place = len(rollout.nodes) - 1
    while (parent := rollout.nodes[place].parent) is not None and 0 <= parent < place:
        ids, place = rollout.nodes[parent].ids + ids, parent
    return ids


_USES: dict[Purpose, PolicyUse] = {
    Purpose.TRAIN: "training",
    Purpose.VALIDATION: "training",
    Purpose.EVALUATION: "evaluation",
    Purpose.JOB: "jobs",
}


def tier_of(policy: Policy, purpose: Purpose, taskset: str) -> Tier:
    """Returns the minimum isolation tier that the policy requires for a session with this purpose and taskset."""
    return Tier(tier_for(policy, _USES[purpose], taskset, Tier.SHARED.value))


def priority_of(purpose: Purpose) -> Priority:
    """Returns the priority of sandbox calls for this purpose: people wait for jobs, nobody for a single training
    rollout."""
    return Priority.JOB if purpose is Purpose.JOB else Priority.TRAINING
