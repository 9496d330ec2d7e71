"""Makes a model ready to be trained as a recipe says: in its type, with an adapter, with activations that are computed
again."""

from __future__ import annotations

from typing import Any

import torch

from appliance.inference.engine import ModelFiles
from appliance.inference.folder import open_model
from appliance.learning.errors import LearningError
from appliance.learning.freed_memory import return_freed_memory
from appliance.learning.lora import add_adapter
from appliance.learning.recipe import TrainingRecipe


def open_for(files: ModelFiles, recipe: TrainingRecipe) -> Any:
    """Opens a model in what it is trained in: float32, unless it is frozen. Raises ModelError."""
    frozen_half = recipe.method == "lora" and recipe.precision == "bfloat16"
    return open_model(files, dtype=torch.bfloat16 if frozen_half else torch.float32)


def prepare(model: Any, recipe: TrainingRecipe, seed: int) -> None:
    """Changes a transformers model in place; with the defaults, nothing. Equal seeds give equal adapters.

    Raises LearningError for a model that cannot be trained so.
    """
    return_freed_memory(model)
    if recipe.method == "lora":
        add_adapter(model, recipe.lora_rank, recipe.lora_alpha, seed)
    if recipe.gradient_checkpointing:
        # transformers 5.23 has it under a new name, and the old one warns.
        enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
        try:
            enable({"use_reentrant": False})
        except ValueError as error:
            raise LearningError(
                f"{type(model).__name__} cannot compute its activations again: {error}",
                hint="set training.gradient_checkpointing to false",
            ) from error
