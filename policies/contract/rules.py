"""The sections of the policy file as types: what may be written, within which bounds. Each gate has its own.

What always holds: no rule can promote a candidate on less than every gate; the two things that are never allowed
(code without a sandbox, training on people's jobs) are in the file, with the one value that they can have. Every key of
version 5 has to be written. A key that a later release adds may be left out, and then means what was so before it; but
`max_pids`, a bound that was missing, is then that of the packaged file.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Backend = Literal["gvisor", "nsjail"]
Tier = Literal["shared", "process", "sandbox"]
"""From the least isolation to the most; all three are in a sandbox."""


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class OutcomeRule(Section):
    """When the gate of that name (`any` one of them, or `all`) has that outcome, this follows."""

    when: str
    is_: Literal["passed", "failed", "undecided"] = Field(alias="is")
    then: Literal["promote", "hold", "reject", "quarantine"]

    @model_validator(mode="after")
    def _promotes_on_nothing_less_than_all(self) -> OutcomeRule:
        if self.then == "promote" and (self.when, self.is_) != ("all", "passed"):
            raise ValueError('only { when = "all", is = "passed" } may promote')
        return self


class PromotionRules(Section):
    rules: Annotated[tuple[OutcomeRule, ...], Field(strict=False, max_length=100)]


class ServiceRules(Section):
    """How a promoted model comes into service."""

    canary: bool
    """Beside the champion at first, where there are jobs to compare the two on."""
    replay: int = Field(ge=0, le=200)
    """Of the champion's last jobs, worked again first."""
    share: float = Field(gt=0, lt=1)
    """Of the real jobs, then."""
    window_hours: float = Field(gt=0)
    """Of its share."""
    min_jobs: int = Field(ge=1)
    """Real jobs in its share before the window may close; also: the champion's, before there is any window."""
    max_hours: float = Field(gt=0)
    """The window closes then, with however few jobs."""
    alpha: float = Field(gt=0, le=0.2)
    """The largest chance that a model that is no worse is taken back."""

    @model_validator(mode="after")
    def _closes(self) -> ServiceRules:
        if self.max_hours < self.window_hours:
            raise ValueError(f"max_hours = {self.max_hours:g} is less than window_hours = {self.window_hours:g}")
        return self


class DataRules(Section):
    train_on_jobs: Literal[False]
    """People's questions and artifacts are theirs."""
    jobs_as_tasks: bool = False
    """Whether a job's question and check become a task of the owner's once its answer was verified."""
    sealed_in_training: Literal[0]
    """Sealed questions that training may meet."""
    families: Annotated[tuple[str, ...], Field(strict=False, min_length=1, max_length=1000)]
    """Those that may be trained on; `*` for every one that there is."""
    max_share: float = Field(gt=0, le=100)
    """Percent of a step's questions that one family may be."""
    shares: dict[str, Annotated[float, Field(ge=0, le=100)]]
    """The same for single families; the smaller one counts."""
    fresh_nights: int = Field(ge=0, le=90)
    """What was trained on in so many nights before is not trained on again."""


class SandboxRules(Section):
    allow_unsandboxed: Literal[False]
    model_code: Backend
    """What may run code that a model wrote. nsjail shares the host's kernel."""
    tools: Backend
    """What runs the verifiers' own tools."""
    tiers: TierRules


class TierRules(Section):
    """The least isolation of a session, by what it is for and by its family; the stricter of the two counts."""

    training: Tier
    evaluation: Tier
    jobs: Tier
    families: dict[str, Tier]


class ResourceRules(Section):
    """Bounds that no configuration and no option of the command line may exceed."""

    min_free_gib: float = Field(ge=0)
    """On the disk of the data folder, before a night begins."""
    max_memory_mib: int = Field(ge=48)
    """Of one sandbox; so are the next three."""
    max_cpus: float = Field(gt=0)
    max_call_seconds: float = Field(gt=0)
    max_pids: int = Field(4_096, ge=16)
    """Processes and threads. It may be left out, because the first files of this version do not have it."""


class JobRule(Section):
    check: str
    """How a job is checked, the kind that people know it as (docs/jobs.md), or `any`."""
    then: Literal["allow", "deny"]


class JobRules(Section):
    rules: Annotated[tuple[JobRule, ...], Field(strict=False, max_length=100)]
    max_attempts: int = Field(ge=1, le=1024)
    max_queued: int = Field(ge=1)


SandboxRules.model_rebuild()
