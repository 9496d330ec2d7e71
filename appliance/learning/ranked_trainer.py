"""Trains one model in several processes, and looks to the caller like a trainer in this one.

What always holds: after each call the model that was handed in has the weights that the ranks have, and what was read
of them is what was written, by its digest.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from appliance.learning.folders import read_verified, write_folder
from appliance.learning.prepare import prepare
from appliance.learning.rank_processes import RankGroup
from appliance.learning.recipe import TrainingRecipe
from appliance.learning.scoring import score
from appliance.learning.trained_weights import weights_of
from appliance.learning.trainer import require_finite
from appliance.records.training import Group, Judged


class RankedTrainer:
    """Not thread-safe. The processes stay whose they are."""

    def __init__(
        self,
        processes: RankGroup,
        model: nn.Module,
        recipe: TrainingRecipe,
        seed: int,
        *,
        max_tokens: int,
        companions: Mapping[str, bytes],
        first_step: int = 0,
    ) -> None:
        """`companions` are all files of the model, its weights too: the ranks load it from them. The rest is as in
        `Trainer`.

        Raises LearningError as `Trainer` does, and InfrastructureError."""
        prepare(model, recipe, seed)
        self._trained = weights_of(model)
        self._processes, self._model = processes, model
        self.step = first_step
        """Steps done; the next one to take."""
        place = processes.folder / "model"
        digest = write_folder(place, companions)
        processes.ask(
            "open",
            folder=str(place),
            digest=digest,
            recipe=recipe.model_dump(mode="json"),
            seed=seed,
            max_tokens=max_tokens,
            first_step=first_step,
        )
        shutil.rmtree(place)

    def train_step(self, step: int, judged: Sequence[Judged], groups: Sequence[Group]) -> dict[str, float]:
        """Takes one step as `Trainer.train_step`. Raises LearningError, InfrastructureError."""
        found = self._processes.ask(
            "step",
            step=step,
            judged=[one.model_dump(mode="json") for one in judged],
            groups=[group.model_dump(mode="json") for group in groups],
        )
        self.step = step + 1
        self._take_weights()
        figures: dict[str, float] = found["figures"]
        return figures

    def save(self, folder: Path, notes: Mapping[str, Any] | None = None) -> str:
        """Writes a checkpoint as `Trainer.save`, from which any number of ranks goes on."""
        return str(self._processes.ask("save", folder=str(folder), notes=dict(notes or {}))["digest"])

    def restore(self, folder: Path) -> dict[str, Any]:
        """Goes back to a checkpoint as `Trainer.restore`, of however many ranks it is."""
        found = self._processes.ask("restore", folder=str(folder))
        self.step = int(found["step"])
        self._take_weights()
        notes: dict[str, Any] = found["notes"]
        return notes

    def take_moments(self, folder: Path) -> None:
        """Goes on with the optimizer of another checkpoint as `Trainer.take_moments`."""
        self._processes.ask("take_moments", folder=str(folder))

    def require_finite(self, ids: Sequence[int]) -> None:
        """Looks at the weights as `Trainer.require_finite`."""
        require_finite(self._model, partial(score, self._model), ids, self.step)

    def _take_weights(self) -> None:
        place = self._processes.folder / "weights"
        found = self._processes.ask("weights", folder=str(place))
        self._trained.load(place, read_verified(place, expect=found["digest"]), found["base"])
        shutil.rmtree(place)
