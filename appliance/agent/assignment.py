"""Rollout assignments, and the state of running rollouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from appliance.agent.answers import Final
from appliance.agent.branching import BranchPoint, branch_id, branch_seed
from appliance.agent.conversation import Conversation
from appliance.agent.keeping import Replay
from appliance.agent.leases import WorldLease
from appliance.agent.usage import added
from appliance.inference.engine import Turn
from appliance.records.rollouts import Purpose, Rollout, RolloutEnd, ToolCall
from appliance.rendering.renderer import ToolRequest
from curriculum.contract.task import Task
from curriculum.worlds.world import World
from runtime.errors import InfrastructureError
from runtime.sandbox import Session, Tier, Usage


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
