"""Client of rank processes that train a model, with the interface of a local trainer.

Invariants: after each call the caller's model has the ranks' weights, verified by the digest of what was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from appliance.inference.adapters import adapter_parameters, has_adapter
from appliance.inference.vllm.transfers.folders import private_folder, remove_folder
from appliance.learning.batches import samples
from appliance.learning.folders import read_verified, write_folder
from appliance.learning.rank_processes import OnPass, RankGroup
from appliance.learning.recipes.recipe import TrainingRecipe, WarmStartRecipe
from appliance.learning.scoring import score
from appliance.learning.trained_weights import weights_of
from appliance.learning.training.distillation import NO_PROMPTS, TeacherScore
from appliance.learning.training.sft import FULL, Encoded
from appliance.learning.training.updates import prepare, require_finite
from appliance.records.record import Record
from appliance.records.training import Group, Judged


class RankedLearner:
    """Client base class for any training that runs in training processes. Not thread-safe; the caller owns the
    processes."""

    def __init__(
        self, processes: RankGroup, model: nn.Module, recipe: Record, companions: Mapping[str, bytes], **settings: Any
    ) -> None:
        """Opens the model in the training processes. `companions` are all files of the model, including weights, which
        the ranks load. `settings` are passed to the rank that opens it. Raises LearningError as a local learner, and
        InfrastructureError."""
        self._trained = weights_of(model)
        self._processes, self.model = processes, model
        self.step = 0
        """Completed steps, and the number of the next one."""
        self._bytes = sum(one.nbytes for one in (adapter_parameters(model) or dict(model.named_parameters())).values())
        """Bytes of the trained weights."""
        with _handed_over(sum(map(len, companions.values()))) as place:
            digest = write_folder(place, companions)
            processes.ask("open", folder=str(place), digest=digest, recipe=recipe.model_dump(mode="json"), **settings)
        if has_adapter(model):
            self._take_weights()  # it may begin with factors that differ by rounding

    @property
    def on_pass(self) -> OnPass | None:
        """Called after each forward pass of the first rank."""
        return self._processes.on_pass

    @on_pass.setter
    def on_pass(self, called: OnPass | None) -> None:
        self._processes.on_pass = called

    def save(self, folder: Path, notes: Mapping[str, Any] | None = None) -> str:
        """Writes a checkpoint as `Trainer.save`, which any number of ranks can resume. Hashes the frozen weights of
        this process first."""
        self._trained.require_frozen()
        return str(self._processes.ask("save", folder=str(folder), notes=dict(notes or {}))["digest"])

    def restore(self, folder: Path) -> dict[str, Any]:
        """Restores a checkpoint as `Trainer.restore`, made by any number of ranks."""
        found = self._processes.ask("restore", folder=str(folder))
        self.step = int(found["step"])
        self._take_weights(hashed=True)
        notes: dict[str, Any] = found["notes"]
        return notes

    def require_finite(self, ids: Sequence[int]) -> None:
        """Checks that trained weights and the scores of these tokens are finite, as `Trainer.require_finite`."""
        require_finite(self.model, partial(score, self.model), ids, self.step)

    def _take_weights(self, *, hashed: bool = False) -> None:
        with _handed_over(self._bytes) as place:
            found = self._processes.ask("weights", folder=str(place))
            self._trained.load(place, read_verified(place, expect=found["digest"]), found["base"], hashed=hashed)


@contextmanager
def _handed_over(size: int) -> Iterator[Path]:
    """Yields a path for a temporary folder of about `size` bytes: in shared memory, or on disk if that is full."""
    parent = private_folder(size)
    try:
        yield parent / "folder"
    finally:
        remove_folder(parent)


class RankedTrainer(RankedLearner):
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
        teacher: TeacherScore | None = None,
    ) -> None:
        """Opens RL training in the training processes, with the arguments of `Trainer`; the teacher scores here, and
        the ranks receive its scores."""
        prepare(model, recipe, seed)
        super().__init__(
            processes,
            model,
            recipe,
            companions,
            kind="training",
            seed=seed,
            max_tokens=max_tokens,
            first_step=first_step,
            taught=teacher is not None,
        )
        self.step = first_step
        self._recipe, self._teacher = recipe, teacher

    def train_step(
        self,
        step: int,
        judged: Sequence[Judged],
        groups: Sequence[Group],
        prompts: Mapping[str, Sequence[int]] = NO_PROMPTS,
    ) -> dict[str, float]:
        """Takes one RL step and returns its figures, as `Trainer.train_step`. Raises LearningError,
        InfrastructureError."""
        told: Sequence[Sequence[float]] = ()
        if self._teacher is not None and (chosen := samples(judged, groups)):
            told = self._teacher([one.ids for one in chosen], self._recipe.temperature)
        found = self._processes.ask(
            "step",
            step=step,
            judged=[one.model_dump(mode="json") for one in judged],
            groups=[group.model_dump(mode="json") for group in groups],
            told=[list(one) for one in told],
            prompts={name: list(ids) for name, ids in prompts.items()},
        )
        self.step = step + 1
        self._take_weights()
        figures: dict[str, float] = found["figures"]
        return figures

    def take_moments(self, folder: Path) -> None:
        """Loads another checkpoint's optimizer state as `Trainer.take_moments`."""
        self._processes.ask("take_moments", folder=str(folder))


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
