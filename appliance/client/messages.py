"""What goes over the control API's socket: requests, and the answers that are more than one ledger record.

Everything else is answered with the records themselves (`appliance.records`, `policies.contract.decision`). Text that a
policy model or a guest wrote travels as data and has to be escaped by whoever shows it.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from appliance.records.artifacts import Artifact
from appliance.records.checkpoints import Checkpoint
from appliance.records.cycles import Cycle
from appliance.records.evaluations import Approval, Evaluation
from appliance.records.events import Event
from appliance.records.jobs import MAX_JOB_FILES, Job, JobFile
from appliance.records.rollouts import Purpose, Role, RolloutEnd, ToolCall
from appliance.records.training import Judged
from policies.contract.decision import Decision, DecisionOutcome
from policies.contract.keys import KnownKey
from runtime.model import FrozenModel
from runtime.sandbox import Usage
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.registry.spec import Spec


class CycleDetail(FrozenModel):
    cycle: Cycle
    rollouts: dict[str, int]
    """By purpose."""
    steps: tuple[dict[str, float], ...]
    """Metrics of the training steps, ascending, with `step` among them."""
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
    """Empty when the ledger does not keep the task's text; of one that was held back from training it is there with the
    rollout's words only."""
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
    """What its session used, as the host measured it."""
    branch_of: str | None
    """The rollout that it left; None for one that began at the question."""
    verdict: Verdict

    @classmethod
    def of(cls, judged: Judged, question: str = "") -> RolloutView:
        own: dict[str, Any] = {"family": judged.family, "verdict": judged.verdict, "question": question}
        return cls(**own, **{name: getattr(judged.rollout, name) for name in cls.model_fields if name not in own})


class TurnText(FrozenModel):
    """What stands in one node of a rollout."""

    role: Role
    sampled: bool
    """Whether the policy model wrote it."""
    text: str


class TreeRollout(FrozenModel):
    """One rollout of an attempt that branched, or the attempt itself."""

    id: str
    leaves_at: int | None
    """Its first turn, from 1, with tokens of its own; None for the attempt."""
    shared_tokens: int
    """What it has from the attempt, of the tokens that were sampled."""
    sampled_tokens: int
    outcome: Outcome
    advantage: float | None
    """Of its own tokens; None where nothing was trained on it."""
    shared_advantage: float | None
    """Of the tokens that all of them share, where they are trained on with this one."""


class RolloutDetail(FrozenModel):
    """A rollout, and its conversation in words."""

    rollout: RolloutView
    turns: tuple[TurnText, ...]
    tree: tuple[TreeRollout, ...] = ()
    """The attempt and what branched off it; empty where nothing did."""
    unread: str = ""
    """Why there are no turns: what its model read and wrote with is not there any more."""


class CheckpointView(FrozenModel):
    checkpoint: Checkpoint
    aliases: tuple[str, ...]
    """The names that stand for it now."""
    decision: Decision | None
    """The newest about it."""


class FamilyComparison(FrozenModel):
    family: str
    items: int
    """Those that both models answered without an infrastructure error."""
    passed_a: int
    passed_b: int


class ModelComparison(FrozenModel):
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


class JobDetail(FrozenModel):
    job: Job
    artifact: Artifact | None
    bundle: str | None = None
    """The folder of the artifact's bundle, as an absolute path on the daemon's machine."""


class NumberedEvent(FrozenModel):
    number: int
    event: Event


class Approved(FrozenModel):
    """Holds what a person's decision led to."""

    approval: Approval
    decision: Decision
    """Made anew with that approval as evidence."""
    aliases: dict[str, str | None]


class StartCycle(FrozenModel):
    kind: Literal["demo", "night"] = "night"
    seed: int | None = Field(default=None, ge=0, lt=1 << 62)
    """None takes the next one."""
    anew: bool = False
    """Begins one that trains another candidate also while one waits for nothing but a person."""


class StartTraining(FrozenModel):
    """A training in stages (`appliance.learning.recipes.stages`), each with a whole recipe."""

    name: str = Field(min_length=1, max_length=100)
    """The recipe's."""
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of all its stages: which training a resumed one has to be."""
    stages: tuple[dict[str, Any], ...] = Field(min_length=1, max_length=16)
    seed: int | None = Field(default=None, ge=0, lt=1 << 62)
    """None takes the next one."""


class LogPart(FrozenModel):
    """Lines of a process's log. What stands there is untrusted."""

    lines: tuple[str, ...]
    position: int
    """Where the next line will begin, in bytes."""


class SubmitJob(FrozenModel):
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


class OwnTasksetView(FrozenModel):
    """A taskset of the owner's that was added or removed."""

    name: str
    digest: str
    """Of its rows; empty for one that was removed."""
    rows: int


class StoredFile(FrozenModel):
    sha256: str
    bytes: int


class SignedStatement(FrozenModel):
    """Says who approves or rejects which decision, or whose key is admitted or revoked."""

    envelope: str = Field(min_length=1, max_length=100_000)
    """As `policies.approvals` and `policies.register` have it."""


class ValidationEnvelope(FrozenModel):
    envelope: str = Field(min_length=1, max_length=900_000)
    """A signed validation (`policies.validation`), with the page that the person was shown."""


class Keys(FrozenModel):
    """Whose keys are known, and what the policy in force asks of those who sign."""

    keys: tuple[KnownKey, ...]
    machines: dict[str, str]
    """Fingerprints of the machine's own keys, which sign no decision: `daemon`, `trainer`."""
    people: int
    who: tuple[str, ...]
    valid_hours: float


class PolicyInForce(FrozenModel):
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


class PolicyChange(FrozenModel):
    content: str = Field(max_length=200_000)
    envelope: str = Field(min_length=1, max_length=100_000)
    """A signed edit (`policies.edits`)."""


class PolicyText(FrozenModel):
    """A policy file that is asked about and not put into force; empty: the one in force."""

    content: str = Field(default="", max_length=200_000)


class BacktestRow(FrozenModel):
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


class Backtest(FrozenModel):
    policy: str
    """Digest of the policy asked about."""
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
    """To 1, against "no better"."""
    nights_to_go: int | None
    """How many nights like these would be enough; None when very many would not."""


class BudgetView(FrozenModel):
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
    evidence: tuple[CandidateEvidence, ...]
    """Newest first."""


class Rollback(FrozenModel):
    person: str = Field(min_length=1, max_length=200)
    reason: str = Field(default="", max_length=1000)
    going: str = Field(default="", max_length=64)
    """The model that is to go out of service, whole. Where another one would go by now, nothing is done; empty takes
    whichever it is."""
