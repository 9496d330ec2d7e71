"""A training step rests on judged rollouts and the groups that were made of them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from appliance.records.clustered_interval import AttemptSums
from appliance.records.record import Record
from appliance.records.rollouts import Purpose, Rollout
from verifiers.contract.verdict import Outcome, Verdict


class Judged(Record):
    """Is a rollout with its verdict: what learning works on."""

    rollout: Rollout
    verdict: Verdict
    family: str


class RolloutFilter(Record):
    """Says which rollouts are meant: those that have all that is given."""

    cycle: str | None = None
    job: str | None = None
    """A job's rollouts carry the job's id as their cycle."""
    purpose: Purpose | None = None
    step: int | None = Field(default=None, ge=0, lt=1 << 62)
    family: str | None = None
    outcome: Outcome | None = None
    before: str | None = None
    """The id of a rollout: those that were recorded before it."""


ANY_ROLLOUT = RolloutFilter()


class PassCount(Record):
    """Counts a cycle's rollouts on the tasks of one taskset and level."""

    cycle: str
    purpose: Purpose
    family: str
    level: int | None
    """None where the task is kept nowhere: those of jobs, and questions that cannot be solved."""
    rollouts: int
    """Those with a verdict; what broke is apart."""
    passed: int
    broken: int
    state: str = ""
    """What the sampler thought of the level when training ended, `at the edge`, `solved` or `too hard`; empty where it
    was not asked by its difficulty."""
    groups: int = 0
    """Tasks of training steps, each as often as it was asked."""
    learned: int = 0
    """Those of the groups that were learned from: they had right and wrong rollouts."""
    no_room: int = 0
    """Failed: the question alone has more tokens than a conversation may have."""
    cut: int = 0
    """Failed: no token was left in the middle of the work."""
    turns: int = 0
    """Failed: no tool call was left."""
    formless: int = 0
    """Failed: no answer, or several, or none in the form that is asked for."""
    malformed: int = 0
    """Had a tool call that could not be read."""
    asked_world: int = 0
    """Called a tool of the task's world."""
    questions: int = 0
    """Tasks with a rollout that has a verdict."""
    passed_squared: int = 0
    """Summed over them: passed, squared. With the two below it gives the interval of the pass rate, since rollouts of
    one task are alike."""
    both: int = 0
    """Summed over them: passed times rollouts."""
    rollouts_squared: int = 0
    """Summed over them: rollouts, squared."""

    @property
    def sums(self) -> AttemptSums:
        return AttemptSums(
            self.questions, self.rollouts, self.passed, self.passed_squared, self.both, self.rollouts_squared
        )

    @property
    def wrong(self) -> int:
        """Failed otherwise: an answer in its form that is wrong."""
        return self.rollouts - self.passed - self.no_room - self.cut - self.turns - self.formless


class SharedPrefix(Record):
    """Is what the rollouts of one attempt have in common: sampled once, and trained on once."""

    rollout: str
    """The one among them with whose tokens it is trained on."""
    node: int
    token: int
    """Where they part: the first node, and the first of its tokens, that is not of all of them."""
    leaves: int
    """How many they are."""
    advantage: float


class Group(Record):
    """Says of one task's rollouts at one step which were kept, and their advantages."""

    id: str
    cycle: str
    step: int
    task: str
    rollouts: tuple[str, ...]
    rewards: tuple[float, ...]
    """One for each rollout; rollouts with `infra_error` are masked and not listed."""
    kept: tuple[int, ...]
    """Indices into `rollouts`; empty when the group carries no signal."""
    advantages: tuple[float, ...]
    """One for each kept rollout: of its tokens, but for those of a prefix that it shares."""
    shared: tuple[SharedPrefix, ...] = ()
    """One for each kept attempt that branched."""
    selector: str
    reason: str


class StepRecord(Record):
    """Has everything that one training step rests on, written in one transaction: it is there whole or not at all."""

    cycle: str
    step: int
    """The step that this material trains: weights of `step` become weights of `step + 1`."""
    tasks: tuple[dict[str, Any], ...]
    """`Task.model_dump(mode="json")` with the id under `id`."""
    judged: tuple[Judged, ...]
    groups: tuple[Group, ...]
    metrics: dict[str, float]
