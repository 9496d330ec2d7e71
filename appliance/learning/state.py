"""Keeps what a learner needs to go on after a restart: weights, optimizer, random state, and what it was doing.

Weights and optimizer moments are kept by parameter name as safetensors; step, seed, recipe digest and whatever the
caller adds are JSON. A tied weight is stored once. Of a model with an adapter, the adapter is kept and the digest of
the frozen weights, which is compared at each save and restore. Learners draw their own randomness from (seed, step),
so a replayed step is the same step; the generators of Python and torch are kept for whatever else draws from them.
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

from appliance.inference.adapters import has_adapter
from appliance.inference.shards import like
from appliance.learning.checkpoints import STATE, TRAINING, in_float32, save, without_weights
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import Content, read_verified
from appliance.learning.ranks import ALONE, Ranks
from appliance.learning.tensor_file import TensorFile
from appliance.learning.trained_weights import weights_of
from appliance.records.record import Record
from curriculum.seeds import derive
from runtime.model import FrozenModel

_RANDOM = "random.torch"
_RANDOM_GPU = "random.cuda"
"""Is there where the checkpoint was made on a GPU; a learner on a processor goes on without it."""
_START_AGAIN = "go on with the seed and the recipe that it was made with, or start anew"


class LearnerProgress(FrozenModel):
    """Says how far a learner is. It must be the same learner that goes on: kind, seed and recipe are compared."""

    kind: Literal["warm_start", "training"]
    step: int
    """Steps done."""
    seed: int
    recipe: str
    """Digest of the recipe."""
    base: str = ""
    """Digest of the frozen weights beside an adapter; empty where every weight is trained."""
    halved: bool = False
    """Whether the memory was too small for a pass of the recipe's size once."""
    pass_tokens: int = 0
    """The most of a pass since then, padding included; 0 where it was never too small, or in a checkpoint that does not
    know it: each pass then has half of its own size."""
    notes: dict[str, Any] = Field(default_factory=dict)
    """The caller's own, JSON only: the state of early stopping, for example."""


class Learner:
    """Trains a model in place, and is saved and restored. Not thread-safe."""

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
        """`companions` are the files of the model whose tokenizer and configuration go into each checkpoint."""
        self._ranks = ranks
        self.model = model
        self.step = 0
        """Steps done; the next one to take."""
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
        """Whether passes are smaller than the recipe's, because the memory was too small for one once."""
        return self._halved

    def save(self, folder: Path, notes: Mapping[str, Any] | None = None) -> str:
        """Writes a checkpoint (`notes` are the caller's, JSON) and returns its digest; of several ranks the first does,
        and all have to be asked. Raises CheckpointError as `checkpoints.save` does."""
        training = {_RANDOM: torch.get_rng_state()}
        if self._device.type == "cuda":
            training[_RANDOM_GPU] = torch.cuda.get_rng_state(self._device)
        for name, parameter in self.model.named_parameters():
            for slot, value in self._optimizer.state.get(parameter, {}).items():
                training[f"{slot}/{name}"] = torch.as_tensor(value)  # whole where it is written
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
        """Goes back to a checkpoint and returns the caller's notes.

        Raises CheckpointError when the folder is broken, or of another learner or model; nothing is changed then.
        """
        files = read_verified(folder)
        try:
            state = json.loads(files[STATE])
            progress = LearnerProgress.model_validate(state["progress"])
            python = state["random"]
            training = safetensors.torch.load(files[TRAINING])
            generator, on_gpu = training.pop(_RANDOM), training.pop(_RANDOM_GPU, None)
        except (KeyError, TypeError, ValueError, ValidationError, safetensors.SafetensorError) as error:
            raise CheckpointError(f"{folder} is not a learner's checkpoint: {error}", hint=_START_AGAIN) from error
        own = self._progress({})
        for what in ("kind", "seed", "recipe"):
            found, expected = getattr(progress, what), getattr(own, what)
            if found != expected:
                raise CheckpointError(f"{folder} has {what} {found}, not {expected}", hint=_START_AGAIN)
        self.trained.load(folder, files, progress.base)
        _load_optimizer(self.model, self._optimizer, training)
        torch.set_rng_state(generator)
        if on_gpu is not None and self._device.type == "cuda":
            torch.cuda.set_rng_state(on_gpu, self._device)
        random.setstate((python["version"], tuple(python["words"]), python["gauss"]))
        self.step, self._halved, self._pass_tokens = progress.step, progress.halved, progress.pass_tokens
        return progress.notes

    def take_moments(self, folder: Path) -> None:
        """Goes on with the optimizer of another learner's checkpoint, of the same model and method.

        Raises CheckpointError when the folder is broken, or has the moments of other weights."""
        try:
            training = safetensors.torch.load(read_verified(folder)[TRAINING])
        except (KeyError, ValueError, safetensors.SafetensorError) as error:
            raise CheckpointError(f"{folder} has no optimizer's state: {error}", hint=_START_AGAIN) from error
        kept = {key: value for key, value in training.items() if "/" in key}
        known = {name for name, _ in self.model.named_parameters()}
        if strangers := sorted({key.partition("/")[2] for key in kept} - known):
            raise CheckpointError(f"{folder} has the optimizer's state of {strangers[0]}", hint=_START_AGAIN)
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
        """Seeds torch's generators (dropout draws from them) for this step, and puts them back afterwards: a step
        draws the same numbers in every replay."""
        with torch.random.fork_rng(devices=[self._device] if self._device.type == "cuda" else []):
            torch.manual_seed(derive(what, self._seed, self.step))
            yield


def _load_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, training: Mapping[str, Tensor]) -> None:
    optimizer.state.clear()
    for name, parameter in model.named_parameters():
        slots = {key.partition("/")[0]: value for key, value in training.items() if key.partition("/")[2] == name}
        if slots:
            # Moments lie where their parameter lies; AdamW's own step count stays on the CPU, others' is a number.
            plain = isinstance(optimizer, torch.optim.AdamW)
            optimizer.state[parameter] = {
                slot: (value if plain else int(value)) if slot == "step" else like(parameter, value)
                for slot, value in slots.items()
            }


def gathered(files: Mapping[str, Content]) -> None:
    """Takes part where the first rank writes these files, in the order in which it does: parts are asked for then."""
    for name in sorted(files):
        content = files[name]
        if not isinstance(content, bytes | Path):
            for _ in content:
                pass


def _python_random() -> dict[str, Any]:
    version, words, gauss = random.getstate()
    return {"version": version, "words": list(words), "gauss": gauss}
