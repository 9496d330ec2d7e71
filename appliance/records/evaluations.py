"""An evaluation says what candidate and champion did on the same sealed items; an approval, what a person decided."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from appliance.records.record import Record, renamed
from policies.contract.evidence import Measurements
from runtime.sandbox import Tier, Usage

CHAMPION_RUN, CANDIDATE_RUN = SAMPLED_RUNS = (0, 1)
"""The numbers of the runs of an evaluation that a decision counts. The greedy ones are two more."""
UNSOLVABLE_RUN, REFUSAL_RUN = 4, 5
"""In which the candidate is asked what cannot be solved, and what has to be refused: with checks of their own."""


class ItemResult(Record):
    task: str
    family: str
    passed: bool | None
    """None when the verdict was `infra_error`: such an item counts for neither side."""
    calls: int
    failed_calls: int
    question: str = ""
    """A digest of what is asked, whatever the words; empty in records of earlier versions."""


class ModelResults(Record):
    """Says what one model did on one sealed set."""

    weights: str
    temperature: float
    """1.0 sampled, 0.0 greedy."""
    items: tuple[ItemResult, ...]
    tokens: int
    seconds: float
    usage: Usage = Usage()
    """Of all its rollouts together."""
    tiers: dict[Tier, int] = Field(default_factory=dict)
    """Rollouts by the most isolation that they came to need."""


class Evaluation(Record):
    """Compares candidate and champion on the same sealed items, sampled (decides) and greedy (stated beside it)."""

    id: str
    cycle: str
    sealed_set: str
    """Digest of the sealed set's task ids."""
    candidate: ModelResults
    champion: ModelResults
    candidate_greedy: ModelResults
    champion_greedy: ModelResults
    measurements: Measurements = Measurements()
    """What was measured beside the answers."""
    created: str
    policy: str = ""
    """Digest of the policy that was in force; it can only be decided on under that one. Empty: not recorded."""

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, data: Any) -> Any:
        """An earlier version called the measurements `gathered`."""
        return renamed(data, gathered="measurements")


class Approval(Record):
    """Is a person's signed statement on one decision."""

    decision: str
    """Digest of the decision that the person was shown."""
    candidate: str
    verdict: Literal["approve", "reject"]
    person: str
    created: str
    key: str = ""
    """Fingerprint of the key that signed it; empty for one from before statements were signed, which counts no more."""
    nonce: str = ""
    envelope: str = ""
    """The signed statement itself, so that its signature can be checked again whenever a decision rests on it."""
