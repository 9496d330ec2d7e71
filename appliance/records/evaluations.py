"""Evaluations of candidate and champion on the same sealed items, and people's approvals of decisions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from appliance.records.record import Record
from policies.contract.evidence import Measurements
from runtime.sandbox import Tier, Usage

CHAMPION_RUN, CANDIDATE_RUN = SAMPLED_RUNS = (0, 1)
"""Numbers of the sampled runs of an evaluation, which a decision counts; the two greedy runs follow."""
BASE_RUN = 6
"""Run of the model that the champion's warm start began from."""
ANCHOR = "anchor/"
"""Prefix of the aliases of anchors."""
ANCHOR_RUN = 7
"""Run of the first anchor; further anchors follow in order of their digests."""


class ItemResult(Record):
    task: str
    family: str
    passed: bool | None
    """None for verdict `infra_error`: the item counts for neither side."""
    calls: int
    failed_calls: int
    question: str = ""
    """Digest of the question independent of its wording."""


class ModelResults(Record):
    """Results of one model on one sealed set of questions."""

    weights: str
    temperature: float
    """Sampling temperature: 1.0 sampled, 0.0 greedy."""
    items: tuple[ItemResult, ...]
    tokens: int
    seconds: float
    usage: Usage = Usage()
    """Resources used by all its rollouts together."""
    tiers: dict[Tier, int] = Field(default_factory=dict)
    """Number of rollouts by the strongest isolation tier they needed."""


class Evaluation(Record):
    """Comparison of candidate and champion on the same sealed items: sampled (decides) and greedy (reported)."""

    id: str
    cycle: str
    sealed_set: str
    """Digest of the sealed set's task ids."""
    candidate: ModelResults
    champion: ModelResults
    candidate_greedy: ModelResults
    champion_greedy: ModelResults
    base: ModelResults | None = None
    """Sampled results of the model that the champion's warm start began from, in its first evaluation."""
    anchors: tuple[ModelResults, ...] = ()
    """Sampled results of anchors other than these two models, each on the tasksets of which it is the anchor."""
    anchored: dict[str, str] = Field(default_factory=dict)
    """Digest of the anchor of each taskset that had one, or was asked."""
    rows: dict[str, int] = Field(default_factory=dict)
    """Number of sealed questions in existence, for asked tasksets of given questions."""
    not_askable: dict[str, str] = Field(default_factory=dict)
    """Tasksets with an anchor that could not be asked, each with the reason."""
    measurements: Measurements = Measurements()
    """Measurements beside the answers."""
    created: str
    policy: str = ""
    """Digest of the policy in force, the only one that may decide on it. Empty: not recorded."""


class Approval(Record):
    """A person's signed approval or rejection of a promotion decision."""

    decision: str
    """Digest of the decision that the person was shown."""
    candidate: str
    verdict: Literal["approve", "reject"]
    person: str
    created: str
    key: str = ""
    """Fingerprint of the signing key; an approval without one does not count."""
    nonce: str = ""
    envelope: str = ""
    """The signed statement, so that its signature can be checked whenever a decision rests on it."""
