"""Training steps: judged rollouts, and the groups formed of them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from appliance.records.clustered_interval import AttemptSums
from appliance.records.record import Record
from appliance.records.rollouts import Purpose, Rollout
from verifiers.contract.verdict import Outcome, Verdict


class Judged(Record):
    """A rollout with its verdict: the input of learning."""

    rollout: Rollout
    verdict: Verdict
    family: str


class RolloutFilter(Record):
    """Filter that selects rollouts which match all given fields."""

    cycle: str | None = None
    job: str | None = None
    """Job id; a job's rollouts carry it as their cycle."""
    purpose: Purpose | None = None
    step: int | None = Field(default=None, ge=0, lt=1 << 62)
    family: str | None = None
    outcome: Outcome | None = None
    before: str | None = None
    """Rollout id: selects rollouts recorded before it."""
    probes: bool = True
    """False leaves out an evaluation's unsolvable questions and requests to refuse, which fail by design."""


ANY_ROLLOUT = RolloutFilter()


class PassCount(Record):
    """Counts of a cycle's rollouts on the tasks of one taskset and level."""

    cycle: str
    purpose: Purpose
    family: str
    level: int | None
    """None if the task has no recorded level: tasks of jobs, and unsolvable questions."""
    rollouts: int
    """Rollouts with a verdict; infrastructure errors are counted apart."""
    passed: int
    broken: int
    state: str = ""
    """Sampler's view of the level's topics when training ended: `at the edge`, `solved`, `too hard` or mixed; empty if
    difficulty was not used."""
    groups: int = 0
    """Tasks of training steps, counted each time they were asked."""
    learned: int = 0
    """Groups with a learning signal: both right and wrong rollouts."""
    no_room: int = 0
    """Failed: the question alone exceeds the token limit of a conversation."""
    cut: int = 0
    """Failed: tokens ran out in the middle of the work."""
    turns: int = 0
    """Failed: tool calls ran out."""
    formless: int = 0
    """Failed: no answer, several, or none in the required form."""
    malformed: int = 0
    """Rollouts with an unparsable tool call."""
    asked_world: int = 0
    """Rollouts that called a tool of the task's world."""
    questions: int = 0
    """Tasks with at least one judged rollout."""
    passed_squared: int = 0
    """Sum over tasks of passed². With the next two sums it gives the interval of the pass rate, since rollouts of one
    task are alike."""
    both: int = 0
    """Sum over tasks of passed times rollouts."""
    rollouts_squared: int = 0
    """Sum over tasks of rollouts²."""

    @property
    def sums(self) -> AttemptSums:
        return AttemptSums(
            self.questions, self.rollouts, self.passed, self.passed_squared, self.both, self.rollouts_squared
        )

    @property
    def wrong(self) -> int:
        """Number of failed rollouts with a well-formed answer that is wrong."""
        return self.rollouts - self.passed - self.no_room - self.cut - self.turns - self.formless


class SharedPrefix(Record):
    """Tokens that an attempt shares with its branches: sampled once, trained on once."""

    rollout: str
    """Rollout with whose tokens the prefix is trained on."""
    node: int
    token: int
    """First token, in the first node, at which the rollouts part."""
    leaves: int
    """Number of rollouts."""
    advantage: float


class Group(Record):
    """Rollouts of one task in one training step: which were kept, and their advantages."""

    id: str
    cycle: str
    step: int
    task: str
    rollouts: tuple[str, ...]
    rewards: tuple[float, ...]
    """Reward of each rollout; those with `infra_error` are masked and not listed."""
    kept: tuple[int, ...]
    """Indices into `rollouts`; empty if the group carries no signal."""
    advantages: tuple[float, ...]
    """Advantage of each kept rollout, for its tokens outside a shared prefix."""
    shared: tuple[SharedPrefix, ...] = ()
    """Shared prefix of each kept attempt that branched."""
    selector: str
    reason: str


class StepRecord(Record):
    """Everything that one training step rests on, written in one transaction."""

    cycle: str
    step: int
    """Step that this material trains: weights of `step` become weights of `step + 1`."""
    tasks: tuple[dict[str, Any], ...]
    """`Task.model_dump(mode="json")` with the id under `id`."""
    judged: tuple[Judged, ...]
    groups: tuple[Group, ...]
    metrics: dict[str, float]
