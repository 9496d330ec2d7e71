"""Client of rank processes that run SFT, with the interface of `SftTrainer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import nn

from appliance.learning.rank_processes import RankGroup
from appliance.learning.recipes.recipe import TrainingRecipe, WarmStartRecipe
from appliance.learning.training.prepare import prepare
from appliance.learning.training.ranked_trainer import RankedLearner
from appliance.learning.training.sft import FULL, Encoded


class RankedSft(RankedLearner):
    def __init__(
        self,
        processes: RankGroup,
        model: nn.Module,
        demonstrations: Sequence[Encoded],
        recipe: WarmStartRecipe,
        seed: int,
        *,
        max_tokens: int,
        way: TrainingRecipe = FULL,
        companions: Mapping[str, bytes],
    ) -> None:
        """Opens supervised fine-tuning in the training processes, with the arguments of `SftTrainer`; `companions` as
        in `RankedLearner`."""
        prepare(model, way, seed)
        super().__init__(
            processes,
            model,
            recipe,
            companions,
            kind="warm_start",
            seed=seed,
            max_tokens=max_tokens,
            way=way.model_dump(mode="json"),
            demonstrations=[(one.ids, one.mask) for one in demonstrations],
        )
        self._recipe = recipe

    @property
    def done(self) -> bool:
        """True once the recipe's training steps are done."""
        return self.step >= self._recipe.steps

    def run_steps(self, count: int) -> dict[str, float]:
        """Takes up to `count` supervised fine-tuning steps and returns figures, as `SftTrainer.run_steps`. Raises
        LearningError, InfrastructureError."""
        found = self._processes.ask("sft_steps", count=count)
        self.step = int(found["step"])
        self._take_weights()
        figures: dict[str, float] = found["figures"]
        return figures
