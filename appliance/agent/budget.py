"""Limits of rollouts, and their concurrency."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runtime.model import FrozenModel, UnitName


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
