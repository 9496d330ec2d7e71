"""Recipe settings of the loss beside the objective, and their incompatible combinations.

Invalid combinations are refused when the recipe is read, before any sampling. Imports no torch.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from appliance.learning.objectives.objective import Objective
from appliance.records.record import FiniteRecord
from runtime.model import UnitName


class MismatchRecipe(FiniteRecord):
    rule: Literal["none", "truncate", "mask"] = "none"
    """Treatment of tokens whose probabilities differ between sampler and trainer. `truncate` weighs them by their
    ratio, up to `most`; `mask` drops those with a ratio outside `low` to `high`. No ratio is applied twice."""
    anchor: Literal["sampler", "trainer"] = "sampler"
    """Reference log-probabilities of the objective's own ratio. `trainer` requires one update per step."""
    most: Annotated[float, UnitName("ratio")] = Field(2.0, ge=1)
    """Maximum weight of `truncate`."""
    low: Annotated[float, UnitName("ratio")] = Field(0.5, ge=0, lt=1)
    """Minimum ratio kept by `mask`."""
    high: Annotated[float, UnitName("ratio")] = Field(5.0, gt=1)
    """Maximum ratio kept by `mask`."""


class PlanningRecipe(FiniteRecord):
    credit: bool = False
    """Gives tokens of strategic n-grams more of the credit (HICRA, 2509.03646)."""
    alpha: Annotated[float, UnitName("share")] = Field(0.2, ge=0, le=1)
    """Addition to their advantage, as a share of its size."""


def mismatch_refusal(recipe: MismatchRecipe, name: str, objective: Objective, minibatches: int) -> str | None:
    """Returns the reason that a sampler-trainer mismatch correction is incompatible with an objective, or None."""
    if recipe.anchor == "trainer" and objective.anchor == "sampler":
        return (
            f"{name} bounds the distance from the sampler: over the trainer's own log-probabilities its ratio is about "
            '1, and the bound never applies; leave the anchor at "sampler"'
        )
    if recipe.anchor == "trainer" and minibatches > 1:
        return (
            f'the anchor "trainer" needs one update per step, not {minibatches}, because later ones would need the '
            'log-probabilities before the first: use minibatches = 1, or leave the anchor at "sampler"'
        )
    if recipe.rule == "truncate" and recipe.anchor == "sampler" and objective.anchor != "none":
        otherwise = ', or anchor = "trainer"' if objective.anchor == "either" else ""
        return (
            f"the ratio of {name} is to the sampler's log-probabilities and already corrects the mismatch: "
            f'truncated importance sampling would apply it twice; use rule = "mask" or "none"{otherwise}'
        )
    return None


def whole_distribution(name: str, value: float, off: float) -> None:
    """Raises ValueError if a sampling setting is not at its `off` value: training must sample from the whole
    distribution."""
    if value != off:
        raise ValueError(
            f"training samples from the whole distribution: with {name} = {value:g} the sampler's probabilities are "
            "those of the kept tokens and the trainer's of all, so every importance ratio is off by the kept mass "
            f"before anything is learned; leave {name} at {off:g}, and use the temperature"
        )
