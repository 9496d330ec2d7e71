"""Takes a live model apart that has an adapter of low rank beside frozen weights (LoRA, 2106.09685), by peft.

What always holds: the base's tensors go by the names that the bare model has, so their digest is the bare model's, too;
an adapter's files are those that peft writes. Nothing is changed and nothing is merged here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import safetensors.torch
import torch
from torch import Tensor, nn

from appliance.inference.engine import ADAPTER, ADAPTER_CONFIG, ModelFiles
from appliance.inference.shards import own_part, whole

NAME = "default"
"""What peft calls the one adapter of a model."""
_PREFIX = "base_model.model."
"""What peft puts before the name of each tensor in a file."""


def has_adapter(model: nn.Module) -> bool:
    return any(is_adapter(name) for name, _ in model.named_parameters())


def is_adapter(name: str) -> bool:
    """Says whether a parameter of this name is an adapter's."""
    return ".lora_" in name


def adapter_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Lists what is trained, by the names that a file of peft has."""
    named = ((name, parameter) for name, parameter in model.named_parameters() if is_adapter(name))
    return {_PREFIX + name.replace(f".{NAME}.", "."): parameter for name, parameter in named}


def adapter_files(model: Any) -> dict[str, bytes]:
    """Writes the adapter as peft does: tensors, and what shape they have."""
    tensors = {name: whole(one.detach()).cpu().contiguous() for name, one in adapter_parameters(model).items()}
    settings = {
        name: sorted(value) if isinstance(value, set) else value
        for name, value in model.peft_config[NAME].to_dict().items()
    }
    return {
        ADAPTER: safetensors.torch.save(tensors, metadata={"format": "pt"}),
        ADAPTER_CONFIG: (json.dumps(settings, indent=1, sort_keys=True, default=str) + "\n").encode(),
    }


def adapter_digest(files: ModelFiles) -> str:
    """Computes SHA-256 over an adapter's two files: its settings, then its tensors."""
    return hashlib.sha256(files.get(ADAPTER_CONFIG, b"") + files.get(ADAPTER, b"")).hexdigest()


def adapter_layers(model: nn.Module) -> list[Any]:
    """Lists the layers that have an adapter beside their weight."""
    return [layer for layer in model.modules() if hasattr(layer, "lora_A")]


def base_digest(model: nn.Module, dtype: torch.dtype | None = None) -> str:
    """Computes SHA-256 over names, types, shapes and bytes of a model's weights without its adapter, in the order of
    names: that of the bare model, too. With `dtype`, that which it would have with its weights in it."""
    found = hashlib.sha256()
    for name, tensor in sorted(base_tensors(model)):
        cast = dtype is not None and tensor.is_floating_point() and isinstance(tensor, nn.Parameter)
        plain = whole(tensor.detach()).to(dtype=dtype if cast else None).cpu().contiguous()
        found.update(f"{name}\0{plain.dtype}\0{tuple(plain.shape)}\0".encode())
        found.update(plain.flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


_frozen: WeakKeyDictionary[nn.Module, tuple[object, str]] = WeakKeyDictionary()
"""Digests of frozen weights, and which tensors in which state they are of."""


def frozen_digest(model: nn.Module) -> str:
    """As `base_digest`; of weights that nothing trains it is computed anew only where other tensors are there, or torch
    has counted a change. What goes around torch's count is found at each checkpoint, which hashes everything."""
    tensors = [tensor for _, tensor in base_tensors(model)]
    if any(one.requires_grad or one.is_inference() for one in tensors):
        return base_digest(model)
    parts = [own_part(one) for one in tensors]  # a change is counted by either
    state = [(id(one), one._version, part.data_ptr(), part._version) for one, part in zip(tensors, parts, strict=True)]
    known = _frozen.get(model)
    if known is None or known[0] != state:
        known = _frozen[model] = (state, base_digest(model))
    return known[1]


def base_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Gives each name of the bare model with its tensor: all of them where there is no adapter."""
    for name, tensor in model.state_dict(keep_vars=True).items():
        if not is_adapter(name):
            yield name.replace(".base_layer", ""), tensor


def plain_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Gives the weights without the adapter by the names that the bare model has, each once: tied ones are one."""
    seen: set[int] = set()
    for name, tensor in base_tensors(model):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, whole(tensor.detach()).cpu().contiguous()


@contextmanager
def without_adapter(model: nn.Module) -> Iterator[None]:
    """Has the model compute what its frozen weights compute alone; what is trained stays what is trained."""
    layers = adapter_layers(model)
    trained = [(one, one.requires_grad) for one in model.parameters()]
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)
        for one, required in trained:
            one.requires_grad_(required)
