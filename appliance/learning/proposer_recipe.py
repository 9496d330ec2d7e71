"""Holds the recipe's settings of problems that the model makes for itself. It loads no torch and no taskset."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from appliance.records.record import Record
from runtime.model import UnitName

ProposalName = Literal["calculation", "deduction", "abduction", "induction", "puzzle", "statement"]


class ProposerRecipe(Record):
    proposals: Annotated[int, UnitName("proposals")] = Field(0, ge=0)
    """Problems that the policy model proposes in each step; those that are proved take the place of as many tasks. With
    0 it proposes none."""
    kinds: tuple[ProposalName, ...] = Field(("calculation",), min_length=1)
    """What is proposed, in turn: lines for a calculator, which the seedling can write; programs in three modes, puzzles
    and statements in Lean, for larger models."""
    reward: Literal["azr", "variance", "min", "4p1p"] = "azr"
    """What a proposal earns whose task a share p of the rollouts passed: `azr` 1 - p where 0 < p < 1 (2505.03335),
    `variance` exp(-(p(1-p) - .25)^2 / .02) (2510.24684), `min` min(p, 1-p) less the similarity to earlier ones
    (2508.05004), `4p1p` 4p(1-p). A refused one earns 0."""

    def refusal(self, tasks: int, staleness: int) -> str | None:
        """Says why a step of so many tasks cannot have these proposals; None when it can."""
        if self.proposals > tasks:
            return f"{self.proposals} proposals are more than the {tasks} tasks of a step: lower proposer.proposals"
        if self.proposals and staleness:
            return "proposals need max_staleness = 0: a step's tasks are made of what its own weights proposed"
        return None
