"""What goes over the control API's socket: requests, and the answers that are more than one ledger record.

Everything else is answered with the records themselves (`appliance.records`, `policies.decision`). Text that a policy
model or a guest wrote travels as data and has to be escaped by whoever shows it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from appliance.records import (
    MAX_JOB_FILES,
    Approval,
    Artifact,
    Canary,
    CanaryState,
    Checkpoint,
    Cycle,
    Ended,
    Evaluation,
    Event,
    Job,
    JobFile,
    Judged,
    Purpose,
    ToolCall,
)
from policies.canary import Counts, told
from policies.decision import Decision, DecisionOutcome
from policies.register import KnownKey
from runtime.sandbox import Usage
from verifiers.spec import Spec
from verifiers.verdict import Verdict


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WorkerStatus(Message):
    """The process that trains, evaluates and works on jobs; there is at most one."""

    state: Literal["idle", "running", "backing_off"]
    pid: int | None = None
    doing: str = ""
    """`cycle <id>` or `jobs`; empty when idle."""
    since: str | None = None
    """When it started what it is doing; UTC, ISO 8601."""
    failures: int = 0
    """Crashes in a row without progress."""
    last_failure: str = ""
    waits_for: str = ""
    """What has to pass before any work can begin; empty when nothing has to."""


class CanaryView(Message):
    """A promoted model beside the champion, and what the jobs say so far."""

    canary: Canary
    counts: Counts
    odds: float
    """To 1, that it is worse than the champion."""
    needed: float
    """Odds to 1 that take it back."""
    closes: str | None
    """When its window closes at the earliest; None while it works earlier jobs again."""
    closes_latest: str | None

    @property
    def words(self) -> str:
        """Where it stands, in a sentence."""
        rules, counts = self.canary.rules, self.counts
        if self.canary.state is CanaryState.REPLAY:
            doing = f"works earlier jobs again, {counts.to_replay} to go"
        else:
            doing = (
                f"answers {100 * rules.share:g} % of the jobs, champion at {str(self.closes)[:16]} after "
                f"{rules.min_jobs} of them, at the latest at {str(self.closes_latest)[:16]} UTC"
            )
        return f"{doing}; {told(counts, rules)}"


class Status(Message):
    version: str
    pid: int
    data: str
    """The data folder."""
    started: str
    uptime_seconds: float
    worker: WorkerStatus
    cycle: Cycle | None
    """The unfinished cycle; otherwise the newest; None before the first."""
    step_metrics: dict[str, float] = {}
    """Of the newest training step of that cycle."""
    aliases: dict[str, str | None]
    """`champion`, `candidate`, `previous` and `canary`: manifest digests, or None."""
    canary: CanaryView | None = None
    """How the canary stands; None when there is none."""
    decision: Decision | None
    """The newest decision about the candidate; about anything when there is no candidate."""
    jobs: dict[str, int]
    """Jobs by state."""
    next_cycle: str | None
    """When the schedule starts the next cycle; UTC, ISO 8601."""
    policy: str
    """Digest of the policy file in force."""
    last_event: int
    """Number of the newest event."""


class CycleDetail(Message):
    cycle: Cycle
    rollouts: dict[str, int]
    """By purpose."""
    steps: tuple[dict[str, float], ...]
    """Metrics of the training steps, ascending, with `step` among them."""
    checkpoints: tuple[Checkpoint, ...]
    evaluations: tuple[Evaluation, ...]
    decisions: tuple[Decision, ...]


class RolloutView(Message):
    """A judged rollout without its tokens."""

    id: str
    cycle: str
    step: int
    task: str
    question: str
    """Empty when the ledger does not keep the task's text."""
    sample: int
    purpose: Purpose
    family: str
    weights: str
    ended: Ended
    answer: str | None
    answers: int
    calls: tuple[ToolCall, ...]
    turns: int
    tokens: int
    seconds: float
    usage: Usage
    """What its session used, as the host measured it."""
    verdict: Verdict

    @classmethod
    def of(cls, judged: Judged, question: str = "") -> RolloutView:
        rollout = judged.rollout
        return cls(
            id=rollout.id,
            cycle=rollout.cycle,
            step=rollout.step,
            task=rollout.task,
            question=question,
            sample=rollout.sample,
            purpose=rollout.purpose,
            family=judged.family,
            weights=rollout.weights,
            ended=rollout.ended,
            answer=rollout.answer,
            answers=rollout.answers,
            calls=rollout.calls,
            turns=rollout.turns,
            tokens=rollout.tokens,
            seconds=rollout.seconds,
            usage=rollout.usage,
            verdict=judged.verdict,
        )


class CheckpointView(Message):
    checkpoint: Checkpoint
    aliases: tuple[str, ...]
    """The names that stand for it now."""
    decision: Decision | None
    """The newest about it."""


class FamilyComparison(Message):
    family: str
    items: int
    """Those that both models answered without an infrastructure error."""
    passed_a: int
    passed_b: int


class Comparison(Message):
    """Two models on the same sealed items, from an evaluation in the ledger."""

    a: str
    b: str
    evaluation: str
    sealed_set: str
    items: int
    passed_a: int
    passed_b: int
    gained: int
    """Wrong with a, right with b."""
    lost: int
    """Right with a, wrong with b."""
    greedy_a: float
    """Success from 0 to 1."""
    greedy_b: float
    families: tuple[FamilyComparison, ...]


class JobDetail(Message):
    job: Job
    artifact: Artifact | None
    bundle: str | None = None
    """The folder of the artifact's bundle, as an absolute path on the daemon's machine."""


class NumberedEvent(Message):
    number: int
    event: Event


class Approved(Message):
    """What a person's word led to."""

    approval: Approval
    decision: Decision
    """Made anew with that word as evidence."""
    aliases: dict[str, str | None]


class StartCycle(Message):
    kind: Literal["demo", "night"] = "night"
    seed: int | None = None
    """None takes the next one."""


class SubmitJob(Message):
    question: str = Field(min_length=1, max_length=250_000)
    spec: Spec | None = None
    """A question without one is refused with what to add: nothing is called verified that was not."""
    files: tuple[JobFile, ...] = Field(default=(), max_length=MAX_JOB_FILES)
    """Each was sent before."""
    attempts: int | None = Field(default=None, ge=1, le=1024)
    """None takes the configuration's."""
    seed: int = 0
    priority: int = Field(default=5, ge=0, le=9)
    deadline: str | None = Field(default=None, max_length=64)
    """ISO 8601, with its zone."""
    budget_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class StoredFile(Message):
    sha256: str
    bytes: int


class Judgement(Message):
    envelope: str = Field(min_length=1, max_length=100_000)
    """A signed word (`policies.words`): whose it is, on which decision, and until when it counts are in it."""


class MeaningWord(Message):
    envelope: str = Field(min_length=1, max_length=900_000)
    """A signed word on a job's meaning (`policies.meaning`), with the page that the person was shown."""


class Keys(Message):
    """Whose keys are known, and what the policy in force asks of those who sign."""

    keys: tuple[KnownKey, ...]
    machines: dict[str, str]
    """Fingerprints of the machine's own keys, which have no word: `daemon`, `trainer`."""
    people: int
    who: tuple[str, ...]
    valid_hours: float


class KeyChange(Message):
    envelope: str = Field(min_length=1, max_length=100_000)
    """A signed statement that admits or revokes a key (`policies.register`)."""


class PolicyInForce(Message):
    log: str
    """SHA-256 of the audit log's first line: which log the next edit is for."""
    digest: str
    content: str
    number: int
    """How many policies have been in force, this one among them: the number of the next edit."""
    people: int
    """How many persons have to sign the next edit, or all when fewer were ever known."""
    unsigned: str
    """Digest of the policy file as it is written, when it is another one that nobody has signed yet."""


class PolicyChange(Message):
    content: str = Field(max_length=200_000)
    envelope: str = Field(min_length=1, max_length=100_000)
    """A signed edit (`policies.edits`)."""


class PolicyText(Message):
    """A policy file that is asked about and not put into force; empty: the one in force."""

    content: str = Field(default="", max_length=200_000)


class BacktestRow(Message):
    evaluation: str
    created: str
    candidate: str
    champion: str
    recorded: DecisionOutcome | None
    """The newest decision about that evaluation; None when none was made."""
    recorded_under: str
    """Digest of the policy that it was made under; empty without one."""
    now: Decision
    """What the policy asked about says; on no record."""


class Backtest(Message):
    policy: str
    """Digest of the policy asked about."""
    rows: tuple[BacktestRow, ...]
    """Newest first."""


class Standing(Message):
    """One candidate's evidence against one champion, over its nights."""

    candidate: str
    champion: str
    nights: int
    items: int
    gained: int
    lost: int
    odds: float
    """To 1, against "no better"."""
    nights_to_go: int | None
    """How many nights like these would be enough; None when very many would not."""


class BudgetView(Message):
    """What the quarter may still do."""

    quarter: str
    alpha: float
    candidates: int
    left: int
    """Candidates that can still be promoted this quarter."""
    needed: float
    """Odds to 1 that each has to reach."""
    nights: int
    """On which one candidate is asked, at most."""
    standings: tuple[Standing, ...]
    """Newest first."""


class Rollback(Message):
    person: str = Field(min_length=1, max_length=200)
    reason: str = Field(default="", max_length=1000)


class Failure(Message):
    """How every error is answered."""

    message: str
    hint: str
    exit_code: int
