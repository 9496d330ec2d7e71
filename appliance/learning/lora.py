"""Trains an adapter of low rank beside the frozen weights of a model (LoRA, 2106.09685), by the package peft.

What always holds: the adapter is float32 and lies on every linear layer but the head; a new one changes nothing (B is
0); the base's weights take no gradient, and their digest tells them from any other's. Nothing is merged here
(`merging`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from appliance.learning.checkpoints import ADAPTER, ADAPTER_CONFIG
from appliance.learning.errors import LearningError
from appliance.learning.ranks import like, whole
from curriculum.seeds import derive

_NAME = "default"
_PREFIX = "base_model.model."
"""What peft puts before the name of each tensor in a file."""


def add_adapter(model: Any, rank: int, alpha: float, seed: int) -> None:
    """Puts a new adapter into a transformers model, in place, and freezes everything else. Equal seeds give equal ones.

    Raises LearningError for a model without linear layers of its own.
    """
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(
        r=rank,
        lora_alpha=alpha,  # type: ignore[arg-type]
        lora_dropout=0.0,
        bias="none",
        target_modules="all-linear",
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
    trained = 0
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(_is_adapter(name))
        if _is_adapter(name):
            parameter.data = parameter.data.float()
            trained += parameter.numel()
    if not trained:
        raise LearningError(f"no layer of {type(model).__name__} takes an adapter", hint="set training.method to full")


def has_adapter(model: nn.Module) -> bool:
    return any(_is_adapter(name) for name, _ in model.named_parameters())


def adapter_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Lists what is trained, by the names that a file of peft has."""
    named = ((name, parameter) for name, parameter in model.named_parameters() if _is_adapter(name))
    return {_PREFIX + name.replace(f".{_NAME}.", "."): parameter for name, parameter in named}


def adapter_files(model: Any) -> dict[str, bytes]:
    """Writes the adapter as peft does: tensors, and what shape they have."""
    tensors = {name: whole(one.detach()).cpu().contiguous() for name, one in adapter_parameters(model).items()}
    settings = {
        name: sorted(value) if isinstance(value, set) else value
        for name, value in model.peft_config[_NAME].to_dict().items()
    }
    return {
        ADAPTER: safetensors.torch.save(tensors, metadata={"format": "pt"}),
        ADAPTER_CONFIG: (json.dumps(settings, indent=1, sort_keys=True, default=str) + "\n").encode(),
    }


def load_adapter(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Puts an adapter's values in the place of the model's. Raises LearningError when they have other shapes."""
    own = adapter_parameters(model)
    if {name: one.shape for name, one in own.items()} != {name: one.shape for name, one in tensors.items()}:
        raise LearningError(
            "the adapter is for other layers, or of another rank",
            hint="use the model folder and the recipe that it was made with",
        )
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(like(parameter, tensors[name]))


def base_digest(model: nn.Module, dtype: torch.dtype | None = None) -> str:
    """Computes SHA-256 over names, types, shapes and bytes of a model's weights without its adapter, in the order of
    names: that of the bare model, too. With `dtype`, that which it would have with its weights in it."""
    found = hashlib.sha256()
    for name, tensor in sorted(_base_tensors(model)):
        cast = dtype is not None and tensor.is_floating_point() and isinstance(tensor, nn.Parameter)
        plain = whole(tensor.detach()).to(dtype=dtype if cast else None).cpu().contiguous()
        found.update(f"{name}\0{plain.dtype}\0{tuple(plain.shape)}\0".encode())
        found.update(plain.flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


def plain_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Gives the weights without the adapter by the names that the bare model has, each once: tied ones are one."""
    seen: set[int] = set()
    for name, tensor in _base_tensors(model):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, whole(tensor.detach()).cpu().contiguous()


def adapter_layers(model: nn.Module) -> list[Any]:
    """Lists the layers that have an adapter beside their weight."""
    return [layer for layer in model.modules() if hasattr(layer, "lora_A")]


def delta(layer: Any) -> Tensor:
    """Computes what the adapter adds to a layer's weight, in float32 and in that weight's shape."""
    with torch.no_grad():
        found: Tensor = layer.get_delta_weight(_NAME)
        return found.float()


def _base_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, tensor in model.state_dict(keep_vars=True).items():
        if not _is_adapter(name):
            yield _plain_name(name), tensor


def _plain_name(name: str) -> str:
    return name.replace(".base_layer", "")


def _is_adapter(name: str) -> bool:
    return ".lora_" in name
