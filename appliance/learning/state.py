"""What a learner needs to go on after a restart: weights, optimizer, random state, and what it was doing.

Weights and optimizer moments are kept by parameter name as safetensors; step, seed, recipe digest and whatever the
caller adds are JSON. A tied weight is stored once. Learners draw their own randomness from (seed, step), so a replayed
step is the same step; the generators of Python and torch are kept for whatever else draws from them.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import safetensors
import safetensors.torch
import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor, nn

from appliance.learning.checkpoints import STATE, TRAINING, WEIGHTS, save
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import read_verified

_RANDOM = "random.torch"
_START_AGAIN = "go on with the seed and the recipe that it was made with, or start anew"


class Progress(BaseModel):
    """Where a learner stands. It must be the same learner that goes on: kind, seed and recipe are compared."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["warm_start", "training"]
    step: int
    """Steps done."""
    seed: int
    recipe: str
    """Digest of the recipe."""
    notes: dict[str, Any] = {}
    """The caller's own, JSON only: the watch, for example."""


def recipe_digest(recipe: BaseModel) -> str:
    return hashlib.sha256(recipe.model_dump_json().encode()).hexdigest()


def save_state(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress, companions: Path | None
) -> str:
    """Writes the checkpoint and returns its digest. Raises CheckpointError as `checkpoints.save` does."""
    training = {_RANDOM: torch.get_rng_state()}
    for name, parameter in model.named_parameters():
        for slot, value in optimizer.state.get(parameter, {}).items():
            training[f"{slot}/{name}"] = torch.as_tensor(value)
    state = {"progress": progress.model_dump(mode="json"), "random": _python_random()}
    files: dict[str, bytes | Path] = {
        WEIGHTS: safetensors.torch.save(dict(_weights(model)), metadata={"format": "pt"}),
        TRAINING: safetensors.torch.save({name: _plain(tensor) for name, tensor in training.items()}),
        STATE: (json.dumps(state, sort_keys=True) + "\n").encode(),
    }
    return save(folder, files, companions)


def load_state(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, expected: Progress) -> Progress:
    """Puts weights, optimizer and random state back; returns where it stood.

    `expected` says which learner asks: its kind, seed and recipe must be those of the checkpoint. Raises
    CheckpointError when the folder is broken, or of another learner or model; the model is then unchanged.
    """
    files = read_verified(folder)
    try:
        state = json.loads(files[STATE])
        progress = Progress.model_validate(state["progress"])
        python = state["random"]
        weights, training = (safetensors.torch.load(files[name]) for name in (WEIGHTS, TRAINING))
        generator = training.pop(_RANDOM)
    except (KeyError, TypeError, ValueError, ValidationError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{folder} is not a learner's checkpoint: {error}", hint=_START_AGAIN) from error
    for what in ("kind", "seed", "recipe"):
        if getattr(progress, what) != getattr(expected, what):
            found = getattr(progress, what)
            raise CheckpointError(f"{folder} has {what} {found}, not {getattr(expected, what)}", hint=_START_AGAIN)
    _load_weights(folder, model, weights)
    _load_optimizer(model, optimizer, training)
    torch.set_rng_state(generator)
    random.setstate((python["version"], tuple(python["words"]), python["gauss"]))
    return progress


def _weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Each tensor once, under the first of its names: tied weights are one object."""
    seen: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, _plain(tensor)


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous()


def _load_weights(folder: Path, model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    own = dict(_weights(model))
    if {name: tensor.shape for name, tensor in own.items()} != {name: tensor.shape for name, tensor in weights.items()}:
        raise CheckpointError(
            f"{folder} holds the weights of another architecture", hint="load the model folder that it was made from"
        )
    target = model.state_dict(keep_vars=True)
    with torch.no_grad():
        for name, tensor in weights.items():
            target[name].copy_(tensor)


def _load_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, training: Mapping[str, Tensor]) -> None:
    optimizer.state.clear()
    for name, parameter in model.named_parameters():
        slots = {key.partition("/")[0]: value for key, value in training.items() if key.partition("/")[2] == name}
        if slots:
            # Moments lie where their parameter lies; AdamW's own step count stays on the CPU.
            optimizer.state[parameter] = {
                slot: value if slot == "step" else value.to(parameter.device) for slot, value in slots.items()
            }


def _python_random() -> dict[str, Any]:
    version, words, gauss = random.getstate()
    return {"version": version, "words": list(words), "gauss": gauss}
