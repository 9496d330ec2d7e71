"""Typed sections of the policy file with their bounds. Each gate defines its own section.

Invariants: no rule promotes a candidate unless every gate passed; the two forbidden things (code without a sandbox,
training on people's jobs) are in the file with their only allowed value. Every key of version 1 is required. A key
added by a later release is optional and defaults to the behaviour without it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from common.bounded_models import FirstErrorModel
from common.plugins.installed import DISTRIBUTION, VERSION

Backend = Literal["gvisor", "nsjail"]
Tier = Literal["shared", "process", "sandbox"]
"""Isolation tiers from least to most; all three run in a sandbox."""


class Section(FirstErrorModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class OutcomeRule(Section):
    """Promotion rule that maps the outcome of a gate, of any gate or of all gates to a decision."""

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
    """Rules for the canary phase, in which a promoted model replays jobs and takes a share of real ones."""

    canary: bool
    """Starts beside the champion if there are jobs to compare on."""
    replay: int = Field(ge=0, le=200)
    """Number of the champion's last jobs to replay first."""
    share: float = Field(gt=0, lt=1)
    """Share of real jobs that the canary answers, as a fraction of 1."""
    window_hours: float = Field(gt=0)
    """Minimum time with a share of real jobs, in hours."""
    min_jobs: int = Field(ge=1)
    """Real canary jobs required to close the window; also champion jobs required to open one."""
    max_hours: float = Field(gt=0)
    """Hours after which the window closes even with too few jobs."""
    alpha: float = Field(gt=0, le=0.2)
    """Largest chance of dropping a model as good as the champion."""

    @model_validator(mode="after")
    def _closes(self) -> ServiceRules:
        if self.max_hours < self.window_hours:
            raise ValueError(f"max_hours = {self.max_hours:g} is less than window_hours = {self.window_hours:g}")
        return self


class DataRules(Section):
    train_on_jobs: Literal[False]
    """Always false: people's questions and artifacts belong to them."""
    jobs_as_tasks: bool = False
    """True if a verified job becomes a task of its owner."""
    sealed_in_training: Literal[0]
    """Number of sealed questions allowed in training."""
    families: Annotated[tuple[str, ...], Field(strict=False, min_length=1, max_length=1000)]
    """Tasksets allowed in training; `*` means all."""
    max_share: float = Field(gt=0, le=100)
    """Largest share of a step's questions per taskset, in percent."""
    shares: dict[str, Annotated[float, Field(ge=0, le=100)]]
    """Share limits of single tasksets in percent; the smaller limit applies."""
    fresh_nights: int = Field(ge=0, le=90)
    """Number of nights during which a trained question is not trained on again."""


class SandboxRules(Section):
    allow_unsandboxed: Literal[False]
    model_code: Backend
    """Backend for model-written code. nsjail shares the host's kernel."""
    tools: Backend
    """Backend for the verifiers' own tools."""
    tiers: TierRules


class TierRules(Section):
    """Least isolation of a session by purpose and taskset; the stricter tier applies."""

    training: Tier
    evaluation: Tier
    jobs: Tier
    families: dict[str, Tier]


class ResourceRules(Section):
    """Upper bounds that no configuration or command-line option may exceed."""

    min_free_gib: float = Field(ge=0)
    """Free disk space of the data folder required before a night, in GiB."""
    max_memory_mib: int = Field(ge=48)
    """Memory of one sandbox in MiB; the next three also apply per sandbox."""
    max_cpus: float = Field(gt=0)
    max_call_seconds: float = Field(gt=0)
    max_pids: int = Field(ge=16)
    """Processes and threads."""


class JobRule(Section):
    check: str
    """Check of a job, its user-visible kind (docs/jobs.md), or `any`."""
    then: Literal["allow", "deny"]


class JobRules(Section):
    rules: Annotated[tuple[JobRule, ...], Field(strict=False, max_length=100)]
    max_attempts: int = Field(ge=1, le=1024)
    max_queued: int = Field(ge=1)


class VerifierRules(Section):
    """What a verdict has to rest on."""

    require_kernel_floor: bool = False
    """True if proofs count only from a Lean kernel without known holes; else the evidence names them."""


class PluginRule(Section):
    """One distribution that may add to the product, in exactly this version with exactly these files."""

    distribution: str = Field(max_length=100, pattern=f"^{DISTRIBUTION}$")
    """Name in normal form: lower case, with dashes."""
    version: str = Field(pattern=f"^{VERSION}$")
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Digest of its files, as `assay plugins` prints it."""


SandboxRules.model_rebuild()
