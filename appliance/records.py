"""The records that travel between the parts, each written to the ledger before the next step acts on it.

All are frozen. What a model or a guest wrote is in them as data (`ToolCall.code`, `ToolCall.output`, `Rollout.answer`):
hostile text, to be escaped wherever it is shown. Times are UTC in ISO 8601 and come in as arguments.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from policies.canary import Counts
from policies.evidence import Gathered
from policies.rules import ServiceRules
from runtime.sandbox import Tier, Usage
from verifiers.spec import Spec
from verifiers.verdict import Verdict


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def digest(self) -> str:
        """SHA-256 over the record's JSON; field order is declaration order, so equal records have equal digests."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolStatus(StrEnum):
    """How a tool call ended: the runtime's statuses, and two for calls that never reached a sandbox."""

    OK = "ok"
    EXCEPTION = "exception"
    TIMEOUT = "timeout"
    CPU = "cpu"
    EXPIRED = "expired"
    MEMORY = "memory"
    PIDS = "pids"
    DISK = "disk"
    FILES = "files"
    OUTPUT = "output"
    CALLS = "calls"
    DIED = "died"
    PARSE_ERROR = "parse_error"
    LIMIT = "limit"

    @property
    def failed(self) -> bool:
        """Whether GRPO-RoC counts the call as failed (2508.20722, section 2.2.3)."""
        return self is not ToolStatus.OK

    @property
    def ran(self) -> bool:
        """Whether any code of the call was run."""
        return self not in (ToolStatus.PARSE_ERROR, ToolStatus.LIMIT, ToolStatus.CALLS)


class ToolCall(Record):
    code: str
    status: ToolStatus
    output: str = ""
    error: str = ""
    seconds: float = 0.0
    tier: Tier | None = None
    sandbox: str = ""
    """Identity of the sandbox that ran it; empty only for a call that was never run."""


class Message(Record):
    """A node of the message graph: a run of tokens that was either sampled by the policy model or forced on it."""

    parent: int | None
    """Index of the node before it; None for the first. A path from the root is one conversation."""
    role: Role
    ids: tuple[int, ...]
    sampled: bool
    """True for the policy model's own tokens: the only ones that are trained on."""
    logprobs: tuple[float, ...] = ()
    """One for each token of a sampled node, under the distribution it was drawn from."""
    call: ToolCall | None = None
    """On tool nodes: the call whose result these tokens show."""


class Ended(StrEnum):
    ANSWERED = "answered"
    """The last turn called no tool. Whether it holds an answer is another matter."""
    TOKENS = "tokens"
    TURNS = "turns"
    INFRA_ERROR = "infra_error"


class Purpose(StrEnum):
    TRAIN = "train"
    VALIDATION = "validation"
    EVALUATION = "evaluation"
    JOB = "job"


class Rollout(Record):
    id: str
    """Unique for (cycle, purpose, step, task, sample): the ledger refuses to count one twice."""
    cycle: str
    step: int
    task: str
    sample: int
    purpose: Purpose
    weights: str
    """Digest of the weights that sampled it."""
    temperature: float
    nodes: tuple[Message, ...]
    ended: Ended
    answer: str | None
    """The final answer's text when the last turn holds exactly one."""
    answers: int
    """How many final answers the last turn holds; anything but one earns nothing."""
    seconds: float
    usage: Usage = Usage()
    """What its session used; all zeros where it ran nothing."""
    branch_of: str | None = None
    """The rollout that it left to go on from an earlier state; None for one that began at the question."""
    branch_at: int = 0
    """Its first node of its own: those before are the other rollout's, and were sampled there."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(node.call for node in self.nodes if node.call is not None)

    @property
    def failed_calls(self) -> int:
        return sum(call.status.failed for call in self.calls)

    @property
    def turns(self) -> int:
        return sum(node.role is Role.ASSISTANT for node in self.nodes)

    @property
    def tokens(self) -> int:
        return sum(len(node.ids) for node in self.nodes)

    @property
    def sampled_tokens(self) -> int:
        """Those that were drawn for it; what a branch has from its beginnings is counted there."""
        return sum(len(node.ids) for node in self.nodes[self.branch_at :] if node.sampled)


class Judged(Record):
    """A rollout with its verdict: what learning works on."""

    rollout: Rollout
    verdict: Verdict
    family: str


class Group(Record):
    """One task's rollouts at one step: which were kept, and their advantages."""

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
    """One for each kept rollout."""
    selector: str
    reason: str


class StepRecord(Record):
    """Everything one training step rests on, written in one transaction: it is there whole or not at all."""

    cycle: str
    step: int
    """The step that this material trains: weights of `step` become weights of `step + 1`."""
    tasks: tuple[dict[str, Any], ...]
    """`Task.model_dump(mode="json")` with the id under `id`."""
    judged: tuple[Judged, ...]
    groups: tuple[Group, ...]
    metrics: dict[str, float]


class Checkpoint(Record):
    """A complete, verified folder of weights. Its name is the SHA-256 of its manifest file."""

    manifest: str
    parent: str | None
    cycle: str
    stage: Literal["warm_start", "training", "imported"]
    step: int
    recipe: str
    """Digest of the configuration that made it."""
    metrics: dict[str, float]
    folder: str
    """Relative to the data folder."""
    created: str


class ItemResult(Record):
    task: str
    family: str
    passed: bool | None
    """None when the verdict was `infra_error`: such an item counts for neither side."""
    calls: int
    failed_calls: int


class ModelResults(Record):
    """One model on one sealed set."""

    weights: str
    temperature: float
    """1.0 sampled, 0.0 greedy."""
    items: tuple[ItemResult, ...]
    tokens: int
    seconds: float
    usage: Usage = Usage()
    """Of all its rollouts together."""
    tiers: dict[Tier, int] = {}
    """Rollouts by the most isolation that they came to need."""


class Evaluation(Record):
    """Candidate and champion on the same sealed items, sampled (decides) and greedy (stated beside it)."""

    id: str
    cycle: str
    sealed_set: str
    """Digest of the sealed set's task ids."""
    candidate: ModelResults
    champion: ModelResults
    candidate_greedy: ModelResults
    champion_greedy: ModelResults
    gathered: Gathered = Gathered()
    """What was measured beside the answers."""
    created: str
    policy: str = ""
    """Digest of the policy that was in force; it can only be decided on under that one. Empty: not recorded."""


class Approval(Record):
    """A person's word on one decision."""

    decision: str
    """Digest of the decision that the person was shown."""
    candidate: str
    verdict: Literal["approve", "reject"]
    person: str
    created: str
    key: str = ""
    """Fingerprint of the key that signed it; empty for a word from before words were signed, which counts no more."""
    nonce: str = ""
    envelope: str = ""
    """The signed word itself, so that its signature can be checked again whenever a decision rests on it."""


class CanaryState(StrEnum):
    REPLAY = "replay"
    """It works earlier jobs again; people's are the champion's."""
    SHARE = "share"
    """It answers its share of people's jobs."""
    PASSED = "passed"
    """It is champion, or has been."""
    TAKEN_BACK = "taken_back"

    @property
    def ended(self) -> bool:
        return self in (CanaryState.PASSED, CanaryState.TAKEN_BACK)


class Canary(Record):
    """A promoted model beside the champion. What it says is done: whoever finds the aliases otherwise moves them."""

    id: str
    candidate: str
    champion: str
    decision: str
    """Id of the decision that promoted it."""
    rules: ServiceRules
    """Those in force when it began; a later edit of the policy is not about it."""
    state: CanaryState
    started: str
    share_since: str = ""
    ended: str = ""
    reason: str = ""
    """Why it ended."""
    counts: Counts = Counts()
    """As they were at the end."""


class CycleState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Cycle(Record):
    """One night: from the champion to a decision about a candidate."""

    id: str
    kind: Literal["demo", "night"]
    seed: int
    plan: dict[str, Any]
    """The settings in force, so that a resumed cycle goes on as it began."""
    phase: str
    """prepare, warm_start, training, evaluation, decision, done."""
    state: CycleState
    created: str
    updated: str
    seconds: dict[str, float] = {}
    """Wall seconds by phase, summed over restarts."""
    failure: str = ""


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SOLVED = "solved"
    UNSOLVED = "unsolved"
    """Nothing that was tried was verified, or the deadline or the budget ended it first."""
    FAILED = "failed"
    """The infrastructure failed, not the agent."""
    CANCELLED = "cancelled"
    """A person did not want it any more."""

    @property
    def ended(self) -> bool:
        return self not in (JobState.QUEUED, JobState.RUNNING)


class JobKind(StrEnum):
    """What people know a job as; the spec's own kind says which verifier decides."""

    QUESTION = "question"
    PROGRAM = "program"
    CLAIM = "claim"
    """For an SMT solver."""
    THEOREM = "theorem"
    """In Lean."""
    DATA = "data"
    """A question about files that come with it."""
    TEXT = "text"
    """Measured by a checklist."""


KIND_OF_SPEC: dict[str, JobKind] = {
    "program": JobKind.PROGRAM,
    "smt": JobKind.CLAIM,
    "lean": JobKind.THEOREM,
    "checklist": JobKind.TEXT,
}


MAX_JOB_FILES = 16
MAX_JOB_FILE_BYTES = 8 << 20
MAX_JOB_BYTES = 24 << 20
"""All files of a job together."""


class JobFile(Record):
    """A file that the agent finds in the working folder of its sandbox; its bytes lie in the data folder, by digest."""

    name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0, le=MAX_JOB_FILE_BYTES)


class Meaning(Record):
    """A person's word on whether a spec says what was meant (validation), signed with their key."""

    verdict: Literal["meant", "not_meant"]
    shown: str
    """Digest of what the person was shown: the job's question, spec and files, with the examples and mutants."""
    person: str
    created: str
    key: str
    """Fingerprint of the key that signed it."""
    envelope: str
    """The signed word itself, so that it can be checked again, also by whoever gets the bundle."""


class Job(Record):
    id: str
    question: str
    spec: Spec
    files: tuple[JobFile, ...] = ()
    attempts: int = Field(default=16, ge=1, le=1024)
    seed: int = 0
    priority: int = Field(default=5, ge=0, le=9)
    """Higher ones first; among equals the older."""
    deadline: str | None = None
    """When it is given up, UTC in ISO 8601."""
    budget_seconds: float | None = Field(default=None, gt=0)
    """Of work on it, over all its attempts and restarts of the daemon."""
    spent_seconds: float = 0.0
    state: JobState
    step: str = ""
    """What is being done now, for people; empty when nothing is."""
    tries_done: int = 0
    """Attempts and solvers that ended so far."""
    solvers_done: bool = False
    """Whether every solver had its try; what is left then takes a model."""
    weights: str = ""
    """Digest of the weights that work on it or have; empty before it was begun."""
    reason: str = ""
    tried: tuple[str, ...] = ()
    """For an unsolved job: the distinct answers that were tried and why each failed."""
    artifact: str | None = None
    solved_by: str = ""
    """`policy model`, or the solver that found it, with its version."""
    meaning: Meaning | None = None
    retry_of: str | None = None
    """The job that this one tries again, with another seed."""
    replay_of: str | None = None
    """The earlier job that a canary works again with this one."""
    created: str
    updated: str

    @property
    def kind(self) -> JobKind:
        if self.files and self.spec.kind not in KIND_OF_SPEC:
            return JobKind.DATA
        return KIND_OF_SPEC.get(self.spec.kind, JobKind.QUESTION)


class Standing(StrEnum):
    """What carries a part of an artifact's statement, from the strongest down."""

    PROVED = "proved"
    """A formal verifier: a kernel, a solver's certificate, an exact decision."""
    TESTED = "tested"
    """Held on the inputs that were run, and says nothing of the others."""
    JUDGED = "judged"
    """A model's opinion, with its capped weight."""
    VALIDATED = "validated"
    """A person's signed word."""
    OPEN = "not verified"


MEANING = "that the check says what the question means"
"""The part of every statement that only a person can carry."""


class Claim(Record):
    """One part of what an artifact's statement says."""

    part: str
    standing: Standing
    by: str
    """The verifier and its version, the person, or the reason why nobody."""
    needed: bool = True
    """Whether the artifact's mark rests on it. False for what the statement says beside: a limit, a further opinion."""


class Artifact(Record):
    """A bundle on disk: what came out of a job, with the evidence."""

    id: str
    job: str
    folder: str
    """Relative to the data folder."""
    manifest: str
    """SHA-256 of the bundle's manifest file."""
    answer: str
    weights: str
    """Digest of the weights that answered; empty where a solver did and no model was asked."""
    verdict: Verdict
    solved_by: str = "policy model"
    statement: tuple[Claim, ...] = ()
    created: str


class Event(Record):
    """One line of progress, for people and for the TUI; never acted on."""

    kind: str
    text: str
    figures: dict[str, float] = {}
    created: str
