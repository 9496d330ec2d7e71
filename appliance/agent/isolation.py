"""Derives isolation tier and priority from policy and purpose. Pure."""

from __future__ import annotations

from appliance.records.rollouts import Purpose
from policies.permissions import Use, tier_for
from policies.policy import Policy
from runtime.sandbox import Priority, Tier

_USES: dict[Purpose, Use] = {
    Purpose.TRAIN: "training",
    Purpose.VALIDATION: "training",
    Purpose.EVALUATION: "evaluation",
    Purpose.JOB: "jobs",
}


def tier_of(policy: Policy, purpose: Purpose, taskset: str) -> Tier:
    """Returns the minimum isolation tier that the policy requires for a session with this purpose and taskset."""
    return Tier(tier_for(policy, _USES[purpose], taskset, Tier.SHARED.value))


def priority_of(purpose: Purpose) -> Priority:
    """Returns the priority of sandbox calls for this purpose: people wait for jobs, nobody for a single training
    rollout."""
    return Priority.JOB if purpose is Purpose.JOB else Priority.TRAINING
