"""Creates the recipe's optimizer for the trained weights."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import nn

from appliance.learning.errors import LearningError
from appliance.learning.muon import Muon
from appliance.learning.recipes.recipe import TrainingRecipe

BETAS = (0.9, 0.95)


def make_optimizer(model: nn.Module, recipe: TrainingRecipe, **others: Any) -> torch.optim.Optimizer:
    """Creates the model's optimizer, without weight decay unless set in `others`. Raises LearningError if 8-bit moments
    are unavailable."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    settings: dict[str, Any] = {"lr": recipe.learning_rate, "betas": BETAS, "weight_decay": 0.0} | others
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(trained, **settings)
    if recipe.optimizer == "muon":
        tables = {id(weight) for one in model.modules() if isinstance(one, nn.Embedding) for weight in one.parameters()}
        if (head := model.get_output_embeddings()) is not None:  # type: ignore[operator]
            tables.add(id(head.weight))
        hidden = [weight for weight in trained if weight.ndim == 2 and id(weight) not in tables]
        inside = set(map(id, hidden))
        return Muon(hidden, [weight for weight in trained if id(weight) not in inside], **settings)
    devices = sorted({parameter.device.type for parameter in trained})
    if devices != ["cuda"]:
        raise _refused(f"they need an NVIDIA GPU, but the model is on {', '.join(devices)}")
    try:
        optim = importlib.import_module("bitsandbytes.optim")
    except (ImportError, OSError, RuntimeError) as error:
        raise _refused(f"bitsandbytes cannot be loaded: {error}") from error
    made: torch.optim.Optimizer = optim.AdamW8bit(trained, **settings)
    return made


def _refused(reason: str) -> LearningError:
    return LearningError(
        f"training.optimizer is adamw_8bit, but 8-bit moments are not available: {reason}",
        hint="set training.optimizer to adamw, or install bitsandbytes where the model is on an NVIDIA GPU",
    )
