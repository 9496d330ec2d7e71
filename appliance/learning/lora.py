"""LoRA training (2106.09685): a low-rank adapter beside frozen weights, using peft.

Invariants: the adapter is float32 and covers every linear layer but the head; a new one changes nothing (B is 0); base
weights take no gradient, and their digest identifies them. Merging is in `merging`; `appliance.inference.adapters`
separates adapter and base tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from appliance.inference.adapters import NAME, adapter_layers, adapter_parameters, is_adapter
from appliance.inference.shards import like
from appliance.learning.errors import LearningError
from curriculum.seeds import derive


def add_adapter(model: Any, rank: int, alpha: float, seed: int) -> None:
    """Adds a new LoRA adapter to a transformers model in place and freezes the rest; deterministic in `seed`. Raises
    LearningError for a model without linear layers of its own, and if other layers would get one: peft includes the
    fused experts of some mixtures."""
    from peft import LoraConfig, inject_adapter_in_model
    from transformers.pytorch_utils import Conv1D

    linear, head = (nn.Linear, Conv1D), model.get_output_embeddings()
    names = [name for name, one in model.named_modules() if isinstance(one, linear) and one is not head]
    config = LoraConfig(
        r=rank,
        lora_alpha=alpha,  # type: ignore[arg-type]
        lora_dropout=0.0,
        bias="none",
        target_modules=names,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive("lora", seed))
        try:
            inject_adapter_in_model(config, model)
        except ValueError as error:
            raise LearningError(
                f"{type(model).__name__} takes no adapter: {error}", hint="set training.method to full"
            ) from error
    if not all(isinstance(layer.get_base_layer(), linear) for layer in adapter_layers(model)):
        raise LearningError(
            f"{type(model).__name__} takes no adapter: its fused experts would get one too",
            hint="set training.method to full",
        )
    trained = 0
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(is_adapter(name))
        if is_adapter(name):
            parameter.data = parameter.data.float()
            trained += parameter.numel()
    if not trained:
        raise LearningError(f"no layer of {type(model).__name__} takes an adapter", hint="set training.method to full")


def load_adapter(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copies saved LoRA adapter values into the model. Raises LearningError if shapes differ."""
    own = adapter_parameters(model)
    if {name: one.shape for name, one in own.items()} != {name: one.shape for name, one in tensors.items()}:
        raise LearningError(
            "the adapter has other layers or another rank",
            hint="use the model folder and recipe that it was created with",
        )
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(like(parameter, tensors[name]))


def delta(layer: Any) -> Tensor:
    """Returns what a layer's LoRA adapter adds to its weight, float32, in the weight's shape."""
    with torch.no_grad():
        found: Tensor = layer.get_delta_weight(NAME)
        return found.float()
