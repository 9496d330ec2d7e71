"""Saves and restores a learner: weights, optimizer, random state and progress.

Weights and optimizer moments are stored by parameter name as safetensors; step, seed, recipe digest and the caller's
notes as JSON. A tied weight is stored once. With an adapter, the adapter is stored with the digest of the frozen
weights, compared at each save and restore. Learners derive their randomness from (seed, step), so a replayed step is
equal; the generators of Python and torch are saved for other users.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

import safetensors
import safetensors.torch
import torch
from pydantic import Field, ValidationError
from torch import Tensor, nn

from appliance.inference.adapters import has_adapter, like
from appliance.inference.engine import ADAPTER, ADAPTER_CONFIG
from appliance.learning.checkpoints import STATE, TRAINING, WEIGHTS, in_float32, save, without_weights
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import Content, read_verified
from appliance.learning.muon import MOMENT, Muon
from appliance.learning.offloading import HostedMoments
from appliance.learning.ranks import ALONE, Ranks
from appliance.learning.trained_weights import TensorFile, weights_of
from appliance.records.record import Record
from curriculum.seeds import derive
from runtime.model import FrozenModel

_RANDOM = "random.torch"
_RANDOM_GPU = "random.cuda"
"""Present in checkpoints made on a GPU; a learner on the CPU ignores it."""
_OTHER_OPTIMIZER = "give both stages the same training.optimizer, or reset the later stage's optimizer"
_START_AGAIN = "resume with the original seed and recipe, or start again"


class LearnerProgress(FrozenModel):
    """Saved progress of a learner. Only an equal kind, seed and recipe may resume it."""

    kind: Literal["warm_start", "training"]
    step: int
    """Completed steps."""
    seed: int
    recipe: str
    """Digest of the recipe."""
    base: str = ""
    """Digest of the frozen weights beside an adapter; empty if every weight is trained."""
    halved: bool = False
    """True after a pass of the recipe's size ran out of memory."""
    pass_tokens: int = 0
    """Maximum tokens per pass since then, including padding; 0 if unlimited, or in an older checkpoint, where each pass
    has half of its own size."""
    notes: dict[str, Any] = Field(default_factory=dict)
    """The caller's notes, JSON only, such as the state of early stopping."""


class Learner:
    """Trains a model in place; can be saved and restored. Not thread-safe."""

    kind: ClassVar[Literal["warm_start", "training"]]

    def __init__(
        self,
        model: nn.Module,
        recipe: Record,
        seed: int,
        optimizer: torch.optim.Optimizer,
        companions: Mapping[str, bytes] | None,
        ranks: Ranks = ALONE,
    ) -> None:
        """Prepares to train the model in place, from step 0. `companions` are the model's files whose tokenizer and
        configuration go into each checkpoint."""
        self._ranks = ranks
        self.model = model
        self.step = 0
        """Completed steps, and the number of the next one."""
        self._seed = seed
        self._digest = recipe.digest()
        self._optimizer = optimizer
        self.trained = weights_of(model)
        self._companions = without_weights(companions or {})
        if next(model.parameters()).dtype is torch.float32 and not has_adapter(model):
            self._companions = in_float32(self._companions)
        self._halved, self._pass_tokens = False, 0
        self._device = next(model.parameters()).device

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        return self._optimizer

    @property
    def halved(self) -> bool:
        """True if the forward passes were made smaller than the recipe's after one ran out of memory."""
        return self._halved

    def save(self, folder: Path, notes: Mapping[str, Any] | None = None) -> str:
        """Writes a checkpoint of model and optimizer with the caller's `notes` (JSON) and returns its digest. All ranks
        must call; rank 0 writes. Raises CheckpointError as `checkpoints.save`."""
        training = {_RANDOM: torch.get_rng_state()}
        if self._device.type == "cuda":
            training[_RANDOM_GPU] = torch.cuda.get_rng_state(self._device)
        for name, parameter in self.model.named_parameters():
            for slot, value in self._optimizer.state.get(parameter, {}).items():
                training[f"{slot}/{name}"] = torch.as_tensor(value)  # gathered when written
        state = {"progress": self._progress(notes or {}).model_dump(mode="json"), "random": _python_random()}
        files: dict[str, Content] = {
            **self.trained.files(),
            TRAINING: TensorFile(training),
            STATE: (json.dumps(state, sort_keys=True) + "\n").encode(),
        }
        if self._ranks.number == 0:
            return save(folder, files, self._companions)
        gathered(files)
        return ""

    def restore(self, folder: Path) -> dict[str, Any]:
        """Restores model and optimizer from a checkpoint and returns the caller's notes. Raises CheckpointError, with
        nothing changed, for a damaged folder or another learner or model."""
        files = read_verified(folder, names={STATE, TRAINING})
        try:
            state = json.loads(files[STATE])
            progress = LearnerProgress.model_validate(state["progress"])
            python = state["random"]
            training = safetensors.torch.load(files.pop(TRAINING))
            generator, on_gpu = training.pop(_RANDOM), training.pop(_RANDOM_GPU, None)
        except (KeyError, TypeError, ValueError, ValidationError, safetensors.SafetensorError) as error:
            raise CheckpointError(f"{folder} is not a learner's checkpoint: {error}", hint=_START_AGAIN) from error
        own = self._progress({})
        for what in ("kind", "seed", "recipe"):
            found, expected = getattr(progress, what), getattr(own, what)
            if found != expected:
                raise CheckpointError(f"{folder} has {what} {found}, not {expected}", hint=_START_AGAIN)
        # Read after the moments, so that not all of both is in memory twice.
        self.trained.load(folder, read_verified(folder, names={WEIGHTS, ADAPTER, ADAPTER_CONFIG}), progress.base)
        _load_optimizer(self.model, self._optimizer, training)
        torch.set_rng_state(generator)
        if on_gpu is not None and self._device.type == "cuda":
            torch.cuda.set_rng_state(on_gpu, self._device)
        random.setstate((python["version"], tuple(python["words"]), python["gauss"]))
        self.step, self._halved, self._pass_tokens = progress.step, progress.halved, progress.pass_tokens
        return progress.notes

    def take_moments(self, folder: Path) -> None:
        """Loads the optimizer state of another learner's checkpoint, of the same model, method and optimizer. Raises
        CheckpointError for a damaged folder, other weights or another optimizer."""
        try:
            training = safetensors.torch.load(read_verified(folder, names={TRAINING})[TRAINING])
        except (KeyError, ValueError, safetensors.SafetensorError) as error:
            raise CheckpointError(f"{folder} has no optimizer state: {error}", hint=_START_AGAIN) from error
        kept = {key: value for key, value in training.items() if "/" in key}
        known = {name for name, _ in self.model.named_parameters()}
        if strangers := sorted({key.partition("/")[2] for key in kept} - known):
            raise CheckpointError(
                f"{folder} has optimizer state of unknown parameter {strangers[0]}", hint=_START_AGAIN
            )
        if kept and isinstance(self._optimizer, Muon) is not any(key.startswith(f"{MOMENT}/") for key in kept):
            raise CheckpointError(f"{folder} has the optimizer state of another optimizer", hint=_OTHER_OPTIMIZER)
        _load_optimizer(self.model, self._optimizer, kept)

    def _progress(self, notes: Mapping[str, Any]) -> LearnerProgress:
        return LearnerProgress(
            kind=self.kind,
            step=self.step,
            seed=self._seed,
            recipe=self._digest,
            base=self.trained.base,
            halved=self._halved,
            pass_tokens=self._pass_tokens,
            notes=dict(notes),
        )

    @contextmanager
    def _seeded(self, what: str) -> Iterator[None]:
        """Seeds torch's generators (used by dropout) for this step and restores them afterwards. A replayed step thus
        draws equal numbers."""
        with torch.random.fork_rng(devices=[self._device] if self._device.type == "cuda" else []):
            torch.manual_seed(derive(what, self._seed, self.step))
            yield


def _load_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, training: Mapping[str, Tensor]) -> None:
    optimizer.state.clear()
    for name, parameter in model.named_parameters():
        slots = {key.partition("/")[0]: value for key, value in training.items() if key.partition("/")[2] == name}
        if slots:
            # Moments lie at their parameter or in main memory; AdamW's step count is on the CPU, others' is a number.
            plain, rests = isinstance(optimizer, torch.optim.AdamW), isinstance(optimizer, HostedMoments)
            optimizer.state[parameter] = {
                slot: (value if plain else int(value)) if slot == "step" else value if rests else like(parameter, value)
                for slot, value in slots.items()
            }


def gathered(files: Mapping[str, Content]) -> None:
    """Takes part, on a rank above 0, in the collective reads of sharded tensors while rank 0 writes these files."""
    for name in sorted(files):
        content = files[name]
        if not isinstance(content, bytes | Path):
            for _ in content:
                pass


def _python_random() -> dict[str, Any]:
    version, words, gauss = random.getstate()
    return {"version": version, "words": list(words), "gauss": gauss}
