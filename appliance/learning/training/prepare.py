"""Prepares a model for training by a recipe: data type, adapter, activation recomputation."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import nn

from appliance.inference.engine import ModelFiles
from appliance.inference.folder import open_model
from appliance.learning.errors import LearningError
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.trained_weights import add_adapter

LARGE = 50_000_000
"""Minimum parameters of a large model."""
THRESHOLD = 1 << 20
"""Minimum bytes of a block with pages of its own."""
_M_MMAP_THRESHOLD = -3


def return_freed_memory(model: nn.Module) -> bool:
    """Makes malloc return freed memory of a large model to the system, by fixing its mmap threshold for this process;
    True if done. C libraries other than glibc lack the call and are left alone."""
    if sum(parameter.numel() for parameter in model.parameters()) < LARGE:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, THRESHOLD))


def open_for(files: ModelFiles, recipe: TrainingRecipe) -> Any:
    """Opens a model in the numeric type that the recipe trains in: float32, unless frozen. Raises ModelError."""
    frozen_half = recipe.method == "lora" and recipe.precision == "bfloat16"
    return open_model(files, dtype=torch.bfloat16 if frozen_half else torch.float32)


def prepare(model: Any, recipe: TrainingRecipe, seed: int) -> None:
    """Prepares a transformers model for training in place: adds the LoRA adapter and gradient checkpointing if the
    recipe asks for them. Equal seeds give equal adapters. Raises LearningError for a model that does not support the
    recipe."""
    return_freed_memory(model)
    if recipe.method == "lora":
        add_adapter(model, recipe.lora_rank, recipe.lora_alpha, seed)
    if recipe.gradient_checkpointing:
        # transformers 5.23 renamed it, and the old name warns.
        enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
        try:
            enable({"use_reentrant": False})
        except ValueError as error:
            raise LearningError(
                f"{type(model).__name__} does not support gradient checkpointing: {error}",
                hint="set training.gradient_checkpointing to false",
            ) from error
