"""Makes a model ready to be trained as a recipe says: in its type, with an adapter, with activations that are computed
again."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import nn

from appliance.inference.engine import ModelFiles
from appliance.inference.folder import open_model
from appliance.learning.errors import LearningError
from appliance.learning.lora import add_adapter
from appliance.learning.recipes.recipe import TrainingRecipe

LARGE = 50_000_000
"""Parameters from which on a model is large."""
THRESHOLD = 1 << 20
"""Bytes from which on a block has pages of its own."""
_M_MMAP_THRESHOLD = -3


def return_freed_memory(model: nn.Module) -> bool:
    """Fixes the threshold for this process when the model is large; says whether it did. Other C libraries than glibc
    have no such call and are left alone."""
    if sum(parameter.numel() for parameter in model.parameters()) < LARGE:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, THRESHOLD))


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
