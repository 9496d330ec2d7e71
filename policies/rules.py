"""The sections of the policy file as types: what may be written, within which bounds. Nothing has a default value.

What always holds: no rule can promote a candidate on less than every gate; the two things that are never allowed
(code without a sandbox, training on people's jobs) are in the file, with the one value that they can have.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Backend = Literal["gvisor", "nsjail"]
Tier = Literal["shared", "process", "sandbox"]
"""From the least isolation to the most; all three are in a sandbox."""
Check = Literal[
    "exact",
    "integer",
    "expression",
    "predicate",
    "answer",
    "smt",
    "lean",
    "program",
    "checklist",
    "question",
    "claim",
    "theorem",
    "data",
    "text",
    "any",
]
"""How a job says that its answer is checked, or the kind that people know it as (docs/jobs.md); `any` stands for each
of them."""
Gate = Literal[
    "integrity",
    "freshness",
    "selftest",
    "contamination",
    "improvement",
    "evidence",
    "non_regression",
    "hacks",
    "drift",
    "egress",
    "refusal",
    "cost",
    "service",
    "approval",
    "any",
    "all",
]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class OutcomeRule(Section):
    """When the gate of that name (any one of them, or all) has that outcome, this follows."""

    when: Gate
    is_: Literal["passed", "failed", "undecided"] = Field(alias="is")
    then: Literal["promote", "hold", "reject", "quarantine"]

    @model_validator(mode="after")
    def _promotes_on_nothing_less_than_all(self) -> OutcomeRule:
        if self.then == "promote" and (self.when, self.is_) != ("all", "passed"):
            raise ValueError('only { when = "all", is = "passed" } may promote')
        return self


class ImprovementRules(Section):
    min_items: int = Field(ge=1)
    min_gain: float = Field(ge=0, lt=100)
    """Points of 100."""
    alpha: float = Field(gt=0, le=0.2)
    """Two-sided."""
    clusters: Literal["question", "family"]
    """What the bootstrap draws anew: single questions, or whole families with all their questions."""


class EvidenceRules(Section):
    """What all nights of a quarter may do together."""

    alpha: float = Field(gt=0, le=0.2)
    """The largest chance that a quarter promotes anything that is no better."""
    candidates: int = Field(ge=1, le=1000)
    """By how many candidates it is shared; more than that many cannot be promoted in one quarter."""
    nights: int = Field(ge=1, le=90)
    """Nights on which one candidate is asked fresh questions, at most; 1 trains a new one every night."""


class NonRegressionRules(Section):
    margin: float = Field(gt=0, lt=100)
    """Points of 100."""
    alpha: float = Field(gt=0, le=0.2)
    """One-sided."""
    min_items: int = Field(ge=1)


class IntegrityRules(Section):
    max_infra_errors: float = Field(ge=0, le=50)
    """Percent."""
    max_age_hours: float = Field(gt=0)


class SelfTestRules(Section):
    required: bool
    max_age_hours: float = Field(gt=0)


class HackRules(Section):
    required: bool
    max_rate: float = Field(gt=0, lt=100)
    """Percent; the upper bound has to be below it."""
    alpha: float = Field(gt=0, le=0.2)
    """Two-sided."""


class DriftRules(Section):
    required: bool
    max_kl_champion: float = Field(gt=0)
    """Nats a token."""
    max_kl_base: float = Field(gt=0)
    """Likewise, to the first model of the line."""
    min_entropy: float = Field(ge=0)
    """Of the champion's, as a factor; so are the next two."""
    max_length: float = Field(gt=1)
    min_tool_use: float = Field(ge=0, le=1)


class ContaminationRules(Section):
    required: bool


class ProbeRules(Section):
    egress: bool
    refusal: bool
    min_refused: float = Field(gt=0, le=100)
    """Percent of the requests that have to be refused."""


class CostRules(Section):
    required: bool
    max_tokens: float = Field(gt=0)
    """Times the champion's, on the same questions; so is the next."""
    max_calls: float = Field(gt=0)
    """Of tools; times the champion's, or times one an answer where the champion's are fewer."""


class ApprovalRules(Section):
    required: bool
    people: int = Field(ge=1, le=20)
    who: Annotated[tuple[str, ...], Field(strict=False, min_length=1, max_length=100)]
    """Names of registered persons whose word counts; `*` for everybody in the register."""
    max_age_hours: float = Field(gt=0)
    """An approval that is older does not count."""


class PromotionRules(Section):
    rules: Annotated[tuple[OutcomeRule, ...], Field(strict=False, max_length=100)]
    improvement: ImprovementRules
    evidence: EvidenceRules
    non_regression: NonRegressionRules
    integrity: IntegrityRules
    selftest: SelfTestRules
    hacks: HackRules
    drift: DriftRules
    contamination: ContaminationRules
    probes: ProbeRules
    cost: CostRules
    approval: ApprovalRules


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
    """Bounds that no configuration may exceed."""

    min_free_gib: float = Field(ge=0)
    """On the disk of the data folder, before a night begins."""
    max_memory_mib: int = Field(ge=48)
    """Of one sandbox; so are the next two."""
    max_cpus: float = Field(gt=0)
    max_call_seconds: float = Field(gt=0)


class JobRule(Section):
    check: Check
    then: Literal["allow", "deny"]


class JobRules(Section):
    rules: Annotated[tuple[JobRule, ...], Field(strict=False, max_length=100)]
    max_attempts: int = Field(ge=1, le=1024)
    max_queued: int = Field(ge=1)


SandboxRules.model_rebuild()
