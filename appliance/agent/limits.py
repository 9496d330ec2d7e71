"""Limits of rollouts, and their isolation tier and priority by policy and purpose. Pure."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from appliance.records.rollouts import Purpose
from policies.permissions import Use, tier_for
from policies.policy import Policy
from runtime.model import FrozenModel, UnitName
from runtime.sandbox import Priority, Tier


class AgentBudget(FrozenModel):
    """Limits of every rollout of an agent; a task may lower them, never raise them."""

    max_tokens: Annotated[int, UnitName("tokens")] = Field(120, ge=16)
    """Tokens per conversation: prompt, turns and results."""
    max_calls: Annotated[int, UnitName("calls")] = Field(4, ge=0)
    """Tool calls per conversation."""
    max_result_chars: int = Field(28, ge=8)
    """Characters of a tool result shown to the policy model; the rest is cut."""
    concurrent: Annotated[int, UnitName("rollouts")] = Field(192, ge=1)
    """Concurrent rollouts in the decoding batch; finished rows are refilled."""
    worlds: Annotated[int, UnitName("rollouts")] = Field(8, ge=1)
    """Concurrent rollouts with a world; half as many more may be branches. Each may need two of the sandboxes that
    sessions can have, beside those of prepared worlds, so this is at most a quarter of them."""


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
