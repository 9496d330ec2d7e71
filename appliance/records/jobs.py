"""Jobs that people submit: a question, its files, and a person's validation of the check."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from appliance.records.record import Record
from verifiers.contract.statement import StatementPart
from verifiers.contract.verdict import Verdict
from verifiers.registry import kind_of
from verifiers.registry.spec import Spec


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SOLVED = "solved"
    UNSOLVED = "unsolved"
    """No attempt was verified before attempts, deadline or budget ran out."""
    FAILED = "failed"
    """Ended by an infrastructure error, not by the agent."""
    CANCELLED = "cancelled"
    """Cancelled by a person."""
    SET_ASIDE = "set_aside"
    """Parked after repeated infrastructure deaths; a person may retry it."""

    @property
    def ended(self) -> bool:
        return self not in (JobState.QUEUED, JobState.RUNNING, JobState.SET_ASIDE)

    @property
    def rests(self) -> bool:
        """True if nobody will work on the job unless a person asks for it."""
        return self.ended or self is JobState.SET_ASIDE


JobPart = Literal["any", "solvers", "model"]
"""Part of a job that is left: the solvers have yet to try it, only a model can, or either."""


def work_of(job: str) -> str:
    """Returns the name under which a job's lease is recorded."""
    return f"job {job}"


MAX_JOB_FILES = 16
MAX_JOB_FILE_BYTES = 8 << 20
MAX_JOB_BYTES = 24 << 20
"""Size limit for all files of a job together, in bytes."""


class JobFile(Record):
    """A file in the working folder of the agent's sandbox; the data folder stores its bytes by digest."""

    name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0, le=MAX_JOB_FILE_BYTES)


class Validation(Record):
    """A person's signed statement on whether a spec says what was meant."""

    verdict: Literal["meant", "not_meant"]
    shown: str
    """Digest of what the person was shown: the job's question, spec and files, with the examples and mutants."""
    person: str
    created: str
    key: str
    """Fingerprint of the signing key."""
    envelope: str
    """The signed statement, so that it can be checked again, also by recipients of the bundle."""


MOST_ATTEMPTS = 1_024
"""Maximum attempts per job."""
MOST_TOKENS = 10**12
"""Maximum budget of a job in sampled tokens."""


class JobStep(Record):
    """Attempts at a job that were chosen together, what was expected of them, and what came of them."""

    weights: str
    """Digest of the weights that made them."""
    first: int = Field(default=0, ge=0)
    """Sample number of the first one."""
    attempts: int = Field(ge=1)
    """Number of attempts chosen; less are made if one of them is verified."""
    branches: bool = False
    """True if they may branch at a failed call."""
    expected: float = Field(ge=0, le=1)
    """Probability that one of them is verified, as estimated before."""
    cost: float = 0.0
    """Expected sampled tokens per attempt; 0 if nothing was known."""
    passed: int = 0
    failed: int = 0
    branches_passed: int = 0
    branches_failed: int = 0
    lost: int = 0
    """Attempts and branches that met a failure of the infrastructure; they count nowhere else."""
    tokens: int = 0
    """Sampled tokens of the judged attempts and branches."""
    branch_tokens: int = 0
    """Those of the branches."""
    ended: bool = False

    @property
    def text(self) -> str:
        """Describes the step in one line for people."""
        plan = f"{_several(self.attempts, 'attempt')}{' that may branch' if self.branches else ''}"
        text = f"{plan}, {100 * self.expected:.0f} % expected"
        if not self.ended:
            return text
        found = self.passed + self.branches_passed
        made = f"{_several(self.passed + self.failed, 'attempt')} made"
        branches = self.branches_passed + self.branches_failed
        made += f" and {_several(branches, 'branch', 'branches')}" if branches else ""
        made += f" and {self.lost} lost to the infrastructure" if self.lost else ""
        return f"{text}; {made}, {'one' if found else 'none'} verified, {_several(self.tokens, 'token')}"


def _several(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"


class Job(Record):
    id: str
    question: str
    spec: Spec
    files: tuple[JobFile, ...] = ()
    attempts: int = Field(default=16, ge=1, le=MOST_ATTEMPTS)
    seed: int = 0
    priority: int = Field(default=5, ge=0, le=9)
    """Priority from 0 to 9, higher first; among equals the older job goes first."""
    deadline: str | None = None
    """Time at which the job is given up, UTC in ISO 8601."""
    budget_seconds: float | None = Field(default=None, gt=0)
    """Working time limit in seconds, over all attempts and daemon restarts."""
    budget_tokens: int | None = Field(default=None, gt=0, le=MOST_TOKENS)
    """Limit of the tokens that the policy model samples, over all attempts."""
    spent_seconds: float = 0.0
    state: JobState
    step: str = ""
    """Current activity, for people; empty if none."""
    tries_done: int = 0
    """Attempts and solvers that ended so far."""
    solvers_done: bool = False
    """True once every solver had its try; what is left then needs a model."""
    weights: str = ""
    """Digest of the weights that work or worked on the job; empty before the start."""
    steps: tuple[JobStep, ...] = ()
    """Choices of the policy model's attempts, oldest first."""
    reason: str = ""
    tried: tuple[str, ...] = ()
    """Distinct answers of an unsolved job, and why each failed."""
    artifact: str | None = None
    solved_by: str = ""
    """`policy model`, or the solver that found it, with its version."""
    validation: Validation | None = None
    """A person's validation of the check."""
    retry_of: str | None = None
    """Job that this one retries with another seed."""
    replay_of: str | None = None
    """Earlier job that a canary replays with this one."""
    created: str
    updated: str

    @property
    def budget(self) -> str:
        """Limits of the work for people, as `assay submit --budget` takes them."""
        limits = [f"{self.budget_seconds:.9f}".rstrip("0").rstrip(".") + "s"] if self.budget_seconds else []
        limits += [_several(self.budget_tokens, "token")] if self.budget_tokens else []
        return ", ".join([_several(self.attempts, "attempt"), *limits])

    @property
    def kind(self) -> str:
        """Kind of job shown to people; the spec's own kind selects the verifier."""
        job = kind_of(self.spec).job
        return "data" if self.files and job == "question" else job


MEANING = "that the check says what the question means"
"""Part of every statement that only a person can vouch for."""


class Artifact(Record):
    """A bundle on disk: the result of a job, with its evidence."""

    id: str
    job: str
    folder: str
    """Path relative to the data folder."""
    manifest: str
    """SHA-256 of the bundle's manifest file."""
    answer: str
    weights: str
    """Digest of the weights that answered; empty if a solver answered."""
    verdict: Verdict
    solved_by: str = "policy model"
    statement: tuple[StatementPart, ...] = ()
    created: str


def solved_by_then(job: Job, artifact: Artifact) -> Job:
    """Returns the job as solved by its recorded bundle. A kill, the deadline or a person may have stopped it
    afterwards."""
    update = {
        "state": JobState.SOLVED,
        "reason": "verified before it was stopped",
        "tried": (),
        "artifact": artifact.id,
        "solved_by": artifact.solved_by,
        "step": "",
    }
    return job.model_copy(update=update)
