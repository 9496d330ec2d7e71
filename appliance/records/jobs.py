"""A job is what people ask for: a question, its files, and whether a person vouches for its check."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, model_validator

from appliance.records.record import Record, renamed
from verifiers.registry import kind_of
from verifiers.registry.spec import Spec


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
    SET_ASIDE = "set_aside"
    """The infrastructure died at it again and again; a person may have it tried once more."""

    @property
    def ended(self) -> bool:
        return self not in (JobState.QUEUED, JobState.RUNNING, JobState.SET_ASIDE)

    @property
    def rests(self) -> bool:
        """Whether nobody will work on it unless a person says so."""
        return self.ended or self is JobState.SET_ASIDE


JobPart = Literal["any", "solvers", "model"]
"""What is left to do of a job: the solvers have yet to try it, or only a model can; or either."""


def work_of(job: str) -> str:
    """What a job is leased as."""
    return f"job {job}"


MAX_JOB_FILES = 16
MAX_JOB_FILE_BYTES = 8 << 20
MAX_JOB_BYTES = 24 << 20
"""All files of a job together."""


class JobFile(Record):
    """Is a file in the working folder of the agent's sandbox; its bytes lie in the data folder, by digest."""

    name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0, le=MAX_JOB_FILE_BYTES)


class Validation(Record):
    """Is a person's signed statement on whether a spec says what was meant."""

    verdict: Literal["meant", "not_meant"]
    shown: str
    """Digest of what the person was shown: the job's question, spec and files, with the examples and mutants."""
    person: str
    created: str
    key: str
    """Fingerprint of the key that signed it."""
    envelope: str
    """The signed statement itself, so that it can be checked again, also by whoever gets the bundle."""


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
    validation: Validation | None = None
    """Of its check, by a person."""
    retry_of: str | None = None
    """The job that this one tries again, with another seed."""
    replay_of: str | None = None
    """The earlier job that a canary works again with this one."""
    created: str
    updated: str

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, data: Any) -> Any:
        """An earlier version called the validation `meaning`."""
        return renamed(data, meaning="validation")

    @property
    def kind(self) -> str:
        """Says what people know it as; the spec's own kind says which verifier decides."""
        job = kind_of(self.spec).job
        return "data" if self.files and job == "question" else job
