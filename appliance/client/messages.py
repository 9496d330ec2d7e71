"""Requests of the control API, and answers that are more than one ledger record.

All other answers are records themselves (`appliance.records`, `policies.contract.decision`). Text from a policy model
or a guest travels as data; the receiver has to escape it.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from appliance.records.cycles import Checkpoint, Cycle, Event
from appliance.records.evaluations import Approval, Evaluation
from appliance.records.jobs import MAX_JOB_FILES, MOST_ATTEMPTS, MOST_TOKENS, Artifact, Job, JobFile
from appliance.records.rollouts import Purpose, Role, RolloutEnd, ToolCall
from appliance.records.training import Judged
from policies.contract.decision import Decision, DecisionOutcome, KnownKey
from runtime.model import FrozenModel
from runtime.sandbox import Usage
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.registry.spec import Spec


class CycleDetail(FrozenModel):
    cycle: Cycle
    rollouts: dict[str, int]
    """Counts by purpose."""
    steps: tuple[dict[str, float], ...]
    """Metrics of the training steps in ascending order, each with its `step`."""
    checkpoints: tuple[Checkpoint, ...]
    evaluations: tuple[Evaluation, ...]
    decisions: tuple[Decision, ...]


class RolloutView(FrozenModel):
    """A judged rollout without its tokens."""

    id: str
    cycle: str
    step: int
    task: str
    question: str
    """Empty if the ledger does not keep the task's text. A held-out question has it only with the rollout's words."""
    sample: int
    purpose: Purpose
    family: str
    weights: str
    ended: RolloutEnd
    answer: str | None
    answers: int
    calls: tuple[ToolCall, ...]
    turns: int
    tokens: int
    seconds: float
    usage: Usage
    """The session's resource use, as the host measured it."""
    branch_of: str | None
    """Rollout that it branched from; None if it began at the question."""
    verdict: Verdict

    is_probe: bool
    """True if it failed by design: an unsolvable question, or a request to refuse, of an evaluation."""

    @classmethod
    def of(cls, judged: Judged, question: str = "") -> RolloutView:
        own: dict[str, Any] = {"family": judged.family, "verdict": judged.verdict, "question": question}
        return cls(**own, **{name: getattr(judged.rollout, name) for name in cls.model_fields if name not in own})


class TurnText(FrozenModel):
    """Text of one node of a rollout."""

    role: Role
    sampled: bool
    """True if the policy model wrote it."""
    text: str


class TreeRollout(FrozenModel):
    """An attempt at a task, or one of its branches."""

    id: str
    leaves_at: int | None
    """First turn, from 1, with tokens of its own; None for the attempt."""
    shared_tokens: int
    """Sampled tokens inherited from the attempt."""
    sampled_tokens: int
    outcome: Outcome
    advantage: float | None
    """Advantage of its own tokens; None if they were not trained on."""
    shared_advantage: float | None
    """Advantage of the tokens shared by the tree, if trained on with this rollout."""


class RolloutDetail(FrozenModel):
    """A rollout with its conversation as text."""

    rollout: RolloutView
    turns: tuple[TurnText, ...]
    tree: tuple[TreeRollout, ...] = ()
    """The attempt and its branches; empty without branches."""
    unread: str = ""
    """Reason for missing turns: the model's tokenizer or tokens are no longer kept."""


class CheckpointView(FrozenModel):
    checkpoint: Checkpoint
    aliases: tuple[str, ...]
    """Aliases of the model at the moment."""
    decision: Decision | None
    """Newest decision about the model."""


class FamilyComparison(FrozenModel):
    family: str
    items: int
    """Items that both models answered without an infrastructure error."""
    passed_a: int
    passed_b: int


class ModelComparison(FrozenModel):
    """Results of two models on the same sealed items, from an evaluation in the ledger."""

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


class JobDetail(FrozenModel):
    job: Job
    artifact: Artifact | None
    bundle: str | None = None
    """Absolute path of the artifact's bundle folder on the daemon's machine."""


class NumberedEvent(FrozenModel):
    number: int
    event: Event


class Approved(FrozenModel):
    """Result of a person's approval or rejection."""

    approval: Approval
    decision: Decision
    """New decision with the approval as evidence."""
    aliases: dict[str, str | None]


class StartCycle(FrozenModel):
    kind: Literal["demo", "night"] = "night"
    seed: int | None = Field(default=None, ge=0, lt=1 << 62)
    """None for the next seed."""
    anew: bool = False
    """True to train another candidate even while one waits only for a person."""


class StartTraining(FrozenModel):
    """A training in stages (`appliance.learning.recipes.stages`), each with a complete recipe."""

    name: str = Field(min_length=1, max_length=100)
    """Name of the recipe."""
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Digest of all stages, which a resumed training must match."""
    stages: tuple[dict[str, Any], ...] = Field(min_length=1, max_length=16)
    seed: int | None = Field(default=None, ge=0, lt=1 << 62)
    """None for the next seed."""


class LogPart(FrozenModel):
    """Lines of a process's log; untrusted text."""

    lines: tuple[str, ...]
    position: int
    """Offset of the next line, in bytes."""


class SubmitJob(FrozenModel):
    question: str = Field(min_length=1, max_length=250_000, pattern=r"\S")
    spec: Spec | None = None
    """A question without a spec is refused with advice: nothing unverified is called verified."""
    files: tuple[JobFile, ...] = Field(default=(), max_length=MAX_JOB_FILES)
    """Files uploaded before."""
    attempts: int | None = Field(default=None, ge=1, le=MOST_ATTEMPTS)
    """None for the configured number."""
    seed: int = 0
    priority: int = Field(default=5, ge=0, le=9)
    deadline: str | None = Field(default=None, max_length=64)
    """ISO 8601 with time zone."""
    budget_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    budget_tokens: int | None = Field(default=None, gt=0, le=MOST_TOKENS)


class OwnTasksetView(FrozenModel):
    """An added or removed taskset of the owner."""

    name: str
    digest: str
    """Digest of the rows; empty if removed."""
    rows: int


class StoredFile(FrozenModel):
    sha256: str
    bytes: int


class SignedStatement(FrozenModel):
    """A signed approval or rejection of a decision, or an admission or revocation of a key."""

    envelope: str = Field(min_length=1, max_length=100_000)
    """DSSE envelope as in `policies.approvals` and `policies.register`."""

    @classmethod
    def of(cls, envelope: bytes) -> SignedStatement:
        return cls(envelope=envelope.decode("ascii"))


class ValidationEnvelope(FrozenModel):
    envelope: str = Field(min_length=1, max_length=900_000)
    """A signed validation (`policies.statements`) with the page that the person saw."""


class Keys(FrozenModel):
    """Persons' keys known to the daemon, and the signing rules of the policy in force."""

    keys: tuple[KnownKey, ...]
    machines: dict[str, str]
    """Fingerprints of the machine's own keys (`daemon`, `trainer`), which sign no decision."""
    people: int
    who: tuple[str, ...]
    valid_hours: float


class PolicyInForce(FrozenModel):
    log: str
    """SHA-256 of the audit log's first line, which identifies the log for the next edit."""
    digest: str
    content: str
    number: int
    """Number of policies in force so far, including this one; the next edit carries it."""
    people: int
    """Independent persons who must sign the next edit."""
    unsigned: str
    """Digest of the policy file as written, if it differs and nobody has signed it yet."""


class PolicyChange(FrozenModel):
    content: str = Field(max_length=200_000)
    envelope: str = Field(min_length=1, max_length=100_000)
    """A signed edit (`policies.statements`)."""

    @classmethod
    def of(cls, content: bytes, envelope: bytes) -> PolicyChange:
        return cls(content=content.decode(), envelope=envelope.decode("ascii"))


class PolicyText(FrozenModel):
    """A policy file to test without putting it into force; empty: the one in force."""

    content: str = Field(default="", max_length=200_000)


class BacktestRow(FrozenModel):
    evaluation: str
    created: str
    candidate: str
    champion: str
    recorded: DecisionOutcome | None
    """Newest recorded decision about the evaluation; None without one."""
    recorded_under: str
    """Digest of the policy of the recorded decision; empty without one."""
    now: Decision
    """Decision under the tested policy; not recorded."""


class Backtest(FrozenModel):
    policy: str
    """Digest of the tested policy."""
    rows: tuple[BacktestRow, ...]
    """Newest first."""


class CandidateEvidence(FrozenModel):
    """One candidate's evidence against one champion, over its nights."""

    candidate: str
    champion: str
    nights: int
    items: int
    gained: int
    lost: int
    odds: float
    """Odds to 1 against "no better"."""
    nights_to_go: int | None
    """Similar nights needed for a promotion; None if even very many would not suffice."""


class BudgetView(FrozenModel):
    """State of the quarter's promotion budget, which bounds the chance of a false promotion."""

    quarter: str
    alpha: float
    candidates: int
    left: int
    """Candidates that can still be promoted this quarter."""
    needed: float
    """Odds to 1 that each candidate must reach."""
    nights: int
    """Maximum nights of one candidate."""
    evidence: tuple[CandidateEvidence, ...]
    """Newest first."""


class Rollback(FrozenModel):
    person: str = Field(min_length=1, max_length=200)
    reason: str = Field(default="", max_length=1000)
    going: str = Field(default="", max_length=64)
    """Full digest of the model to take out of service. If another one would go, nothing is done; empty: the next in
    line."""
