"""Turns the policy's rules and the purpose of a rollout into what the runtime is asked for. Pure."""

from __future__ import annotations

from appliance.records.rollouts import Purpose
from policies.isolation import Use, tier_for
from policies.policy import Policy
from runtime.sandbox import Priority, Tier

_USES: dict[Purpose, Use] = {
    Purpose.TRAIN: "training",
    Purpose.VALIDATION: "training",
    Purpose.EVALUATION: "evaluation",
    Purpose.JOB: "jobs",
}


def tier_of(policy: Policy, purpose: Purpose, taskset: str) -> Tier:
    """The least isolation that a session of this purpose and taskset begins with."""
    return Tier(tier_for(policy, _USES[purpose], taskset, Tier.SHARED.value))


def priority_of(purpose: Purpose) -> Priority:
    """People wait for jobs; nobody waits for one rollout of a night."""
    return Priority.JOB if purpose is Purpose.JOB else Priority.TRAINING
