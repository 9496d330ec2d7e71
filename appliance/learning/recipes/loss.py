"""Holds the recipe's settings of the loss beside the objective, and says which of them do not go together.

What cannot be right is refused where the recipe is read, before anything is sampled. It loads no torch.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from appliance.learning.objectives.objective import Objective
from appliance.records.record import FiniteRecord
from runtime.model import UnitName


class MismatchRecipe(FiniteRecord):
    rule: Literal["none", "truncate", "mask"] = "none"
    """What is done about tokens to which sampler and trainer give different probabilities. `truncate` weighs them by
    their ratio, up to `most`; `mask` leaves out those whose ratio is outside of `low` to `high`. No ratio is counted
    twice."""
    anchor: Literal["sampler", "trainer"] = "sampler"
    """Over whose log-probabilities the objective's own ratio is taken. `trainer` needs one update a step."""
    most: Annotated[float, UnitName("ratio")] = Field(2.0, ge=1)
    """The largest weight that `truncate` gives."""
    low: Annotated[float, UnitName("ratio")] = Field(0.5, ge=0, lt=1)
    """The smallest ratio that `mask` keeps."""
    high: Annotated[float, UnitName("ratio")] = Field(5.0, gt=1)
    """The largest ratio that `mask` keeps."""


class PlanningRecipe(FiniteRecord):
    credit: bool = False
    """Whether tokens of strategic grams get more of the credit (HICRA, 2509.03646)."""
    alpha: Annotated[float, UnitName("share")] = Field(0.2, ge=0, le=1)
    """How much is added to their advantage: this share of its size."""


def mismatch_refusal(recipe: MismatchRecipe, name: str, objective: Objective, minibatches: int) -> str | None:
    """Says why a correction of mismatch does not go with an objective; None when it does."""
    if recipe.anchor == "trainer" and objective.anchor == "sampler":
        return (
            f"{name} bounds the distance from the sampler: over the trainer's own log-probabilities its ratio is about "
            '1, and the bound is never met; leave the anchor at "sampler"'
        )
    if recipe.anchor == "trainer" and minibatches > 1:
        return (
            f'the anchor "trainer" needs one update a step, not {minibatches}, because later ones would need the '
            'log-probabilities of before the first: take minibatches = 1, or leave the anchor at "sampler"'
        )
    if recipe.rule == "truncate" and recipe.anchor == "sampler" and objective.anchor != "none":
        otherwise = ', or anchor = "trainer"' if objective.anchor == "either" else ""
        return (
            f"the ratio of {name} is taken over the sampler's log-probabilities and corrects the mismatch already: "
            f'truncated importance sampling would count it twice; take rule = "mask" or "none"{otherwise}'
        )
    return None


def whole_distribution(name: str, value: float, off: float) -> None:
    """Raises ValueError when training is to sample from a part of the distribution only."""
    if value != off:
        raise ValueError(
            f"training samples from the whole distribution: with {name} = {value:g} the sampler's probabilities are "
            "those of the kept tokens and the trainer's of all, so every importance ratio is off by the kept mass "
            f"before anything is learned; leave {name} at {off:g}, and use the temperature"
        )
