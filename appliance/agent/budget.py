"""Says what one rollout may use up, and how many there are at once."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runtime.model import FrozenModel, UnitName


class AgentBudget(FrozenModel):
    """Bounds every rollout of one agent; a task may ask for less and never gets more."""

    max_tokens: Annotated[int, UnitName("tokens")] = Field(120, ge=16)
    """Tokens of one conversation: prompt, turns and results together."""
    max_calls: Annotated[int, UnitName("calls")] = Field(4, ge=0)
    """Tool calls of one conversation."""
    max_result_chars: int = Field(28, ge=8)
    """Characters of a tool result that the policy model is shown; the rest is cut."""
    concurrent: Annotated[int, UnitName("rollouts")] = Field(192, ge=1)
    """Rollouts in the decoding batch at once; finished rows are refilled."""
    worlds: Annotated[int, UnitName("rollouts")] = Field(8, ge=1)
    """Rollouts at once of tasks with a world; half as many more may be branches. Each may need two of the sandboxes
    that sessions can have, and some are for worlds that are kept prepared: so it is at most a quarter of them."""
