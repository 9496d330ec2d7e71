"""Separates a model's LoRA adapter (2106.09685, by peft) from its frozen weights; digests weights and gathers shards.

Invariants: base tensors have the bare model's names, so their digest equals the bare model's; adapter files are those
that peft writes. Nothing is changed or merged here.
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

from appliance.inference import nf4
from appliance.inference.engine import ADAPTER, ADAPTER_CONFIG, Engine, ModelError, ModelFiles, PushProof

NAME = "default"
"""peft's name for a model's only adapter."""
_PREFIX = "base_model.model."
"""Prefix of tensor names in peft files."""


def has_adapter(model: nn.Module) -> bool:
    return any(is_adapter(name) for name, _ in model.named_parameters())


def is_adapter(name: str) -> bool:
    """True if a model parameter of this name belongs to a LoRA adapter."""
    return ".lora_" in name


def adapter_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Returns the parameters of a model's LoRA adapter, by their names in peft files."""
    named = ((name, parameter) for name, parameter in model.named_parameters() if is_adapter(name))
    return {_PREFIX + name.replace(f".{NAME}.", "."): parameter for name, parameter in named}


def adapter_files(model: Any) -> dict[str, bytes]:
    """Returns a LoRA adapter's files as peft writes them: tensors and configuration."""
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
    """SHA-256 over a LoRA adapter's two files: configuration, then tensors."""
    return hashlib.sha256(files.get(ADAPTER_CONFIG, b"") + files.get(ADAPTER, b"")).hexdigest()


def adapter_layers(model: nn.Module) -> list[Any]:
    """Lists the model's layers with a LoRA adapter beside their weight."""
    return [layer for layer in model.modules() if hasattr(layer, "lora_A")]


def base_digest(model: nn.Module, dtype: torch.dtype | None = None) -> str:
    """SHA-256 over names, types, shapes and bytes of a model's weights without the adapter, in name order; equal to the
    bare model's, or the dequantised model's. With `dtype`, the digest after casting the weights to it."""
    found, read = hashlib.sha256(), nf4.reader(model)
    for name, tensor in sorted(_stored(model)):
        cast = dtype is not None and tensor.is_floating_point() and isinstance(tensor, nn.Parameter)
        plain = whole(read(tensor).detach()).to(dtype=dtype if cast else None).cpu().contiguous()
        found.update(f"{name}\0{plain.dtype}\0{tuple(plain.shape)}\0".encode())
        found.update(plain.flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


_frozen: WeakKeyDictionary[nn.Module, tuple[object, str]] = WeakKeyDictionary()
"""Cached digests of frozen weights, with the tensors and versions they belong to."""


def frozen_digest(model: nn.Module) -> str:
    """Returns the digest of a model's weights without the adapter (`base_digest`). It is cached for untrained weights
    until a tensor is replaced or torch counts a change. Each checkpoint hashes everything, which reveals changes that
    torch does not count."""
    tensors = [tensor for _, tensor in _stored(model)]
    if any(one.requires_grad or one.is_inference() for one in tensors):
        return base_digest(model)
    parts = [own_part(one) for one in tensors]  # either counts a change
    state = [(id(one), one._version, part.data_ptr(), part._version) for one, part in zip(tensors, parts, strict=True)]
    known = _frozen.get(model)
    if known is None or known[0] != state:
        known = _frozen[model] = (state, base_digest(model))
    return known[1]


def base_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yields the tensors of a model without its adapter, dequantised, by their names in the bare model; all if it has
    none."""
    read = nf4.reader(model)
    for name, tensor in _stored(model):
        yield name, read(tensor)


def _stored(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yields the tensors of `base_tensors` as they are stored, packed ones too."""
    for name, tensor in model.state_dict(keep_vars=True).items():
        if not is_adapter(name):
            yield name.replace(".base_layer", ""), tensor


def plain_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yields the weights of a model without its adapter, by their names in the bare model, tied ones once."""
    seen, read = set[int](), nf4.reader(model)
    for name, tensor in _stored(model):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, whole(read(tensor).detach()).cpu().contiguous()


@contextmanager
def without_adapter(model: nn.Module) -> Iterator[None]:
    """Context in which the model computes without its LoRA adapter; restores trainability afterwards."""
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


def weights_digest(model: nn.Module) -> str:
    """SHA-256 over names, types, shapes and bytes of all of a model's weights, in name order."""
    found = hashlib.sha256()
    for name, weight in sorted(model.state_dict().items()):
        tensor = weight.detach().cpu().contiguous()
        found.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        found.update(tensor.flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


def proof_of(model: nn.Module, version: str) -> PushProof:
    """Returns the proof of loaded weights that an engine must return for this live model."""
    if has_adapter(model):
        return PushProof(version, adapter_digest(adapter_files(model)), frozen_digest(model))
    return PushProof(version, weights_digest(model))


def push_model(engine: Engine, model: nn.Module, version: str) -> None:
    """Pushes a live model's weights to the engine. Raises ModelError if it then has others under that version."""
    require_proof(engine.push(model, version), model, version)


def require_proof(proof: PushProof, model: nn.Module, version: str) -> None:
    """Raises ModelError unless the proof that an engine returned matches this model's weights and version."""
    if proof != proof_of(model, version):
        raise ModelError(
            f"the engine has other weights than those of {version}",
            hint="restart the worker; nothing was sampled with them",
        )


def whole(tensor: Tensor) -> Tensor:
    """Gathers a tensor that is sharded over ranks, which all must call; returns any other unchanged."""
    found: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return found


def own_part(tensor: Tensor) -> Tensor:
    """Returns this rank's shard of a tensor, or an unsharded tensor unchanged."""
    found: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return found


def like(target: Tensor, source: Tensor) -> Tensor:
    """Moves a whole tensor to the device of `target`; if that is sharded, returns this rank's shard."""
    source = source.to(target.device)
    if not hasattr(target, "full_tensor") or source.shape != target.shape:
        return source
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(target, DTensor)
    return distribute_tensor(source, target.device_mesh, target.placements, src_data_rank=None).to(target.device)
