"""Says what rollout is to be made, and keeps one that is under way."""

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
    """The least isolation that the policy and the taskset ask for."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What lies in the session's working folder at first beside the task's own files, by name."""
    max_calls: int | None = None
    """Tool calls at most, where that is fewer than the agent and the task allow."""
    max_completion: int | None = None
    """Tokens behind the prompt at most, where that is fewer than the agent and the task allow."""


def needs_world(task: Task) -> bool:
    """Says whether its rollouts have worlds."""
    return task.environment != "python"


@dataclass(frozen=True)
class Ending:
    ended: RolloutEnd
    final: Final
    """What its last turn says."""
    submits: bool
    """The answer is what the world submits instead."""


@dataclass
class LiveRollout:
    """A rollout under way."""

    assignment: Assignment
    max_tokens: int
    max_calls: int
    started: float
    said: Conversation
    session: Session | None = None
    """Where its Python runs."""
    world: WorldLease | None = None
    """What its other tools change."""
    calls: int = 0
    waits: bool = False
    """Something that was asked for it has not come back yet."""
    running: ToolRequest | None = None
    """Of that, the call."""
    ending: Ending | None = None
    """How it ends, once it waits for nothing but what its world came to."""
    branch_of: str | None = None
    branch_at: int = 0
    branch_token: int = 0
    branches: int = 0
    """How many have left it."""
    streamed: bool = False
    """It was asked for by `Agent.add`, and nobody waits for it."""
    moves: int = 0
    """How often the host of its session was lost, and it went on elsewhere."""
    begun: Turn | None = None
    """What a branch has of its first turn."""
    replay: Replay | None = None
    """What an earlier process knew of it; the engine does not have it before that was gone through."""
    point: BranchPoint | None = None
    """Where it was least sure, if it is to branch there."""

    def branch(
        self, point: BranchPoint, session: Session | None, world: WorldLease | None, sample: int, now: float
    ) -> LiveRollout:
        """Begins one more rollout that goes on from there."""
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
        """Closes what it holds and says what it came to."""
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
        """Frees its session and its world."""
        if self.session is not None:
            self.session.close()
        if self.world is not None:
            self.world.close()

    def _usage(self) -> Usage:
        """Adds up what its session and its world used. Of a world that others share, and of what is on a host that is
        gone, that is what the rollout's own calls say."""
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
    except InfrastructureError:  # no rollout is lost for want of a figure
        return _counted(calls)


def _counted(calls: Sequence[ToolCall]) -> Usage:
    sizes = sum(len(call.output.encode()) for call in calls)
    return Usage(calls=len(calls), seconds=sum(call.seconds for call in calls), output_bytes=sizes)
