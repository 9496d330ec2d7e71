"""Tells which weights an engine holds, by their digest, and checks a push on arrival."""

from __future__ import annotations

import hashlib

import torch
from torch import nn

from appliance.inference.adapters import adapter_digest, adapter_files, frozen_digest, has_adapter
from appliance.inference.engine import Engine, ModelError, PushProof


def weights_digest(model: nn.Module) -> str:
    """Computes SHA-256 over names, types, shapes and bytes of all weights, in the order of names."""
    found = hashlib.sha256()
    for name, weight in sorted(model.state_dict().items()):
        tensor = weight.detach().cpu().contiguous()
        found.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        found.update(tensor.flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


def proof_of(model: nn.Module, version: str) -> PushProof:
    """Computes what an engine has to say that was given this live model."""
    if has_adapter(model):
        return PushProof(version, adapter_digest(adapter_files(model)), frozen_digest(model))
    return PushProof(version, weights_digest(model))


def push_model(engine: Engine, model: nn.Module, version: str) -> None:
    """Gives the engine a live model's weights. Raises ModelError when it then holds others under that version."""
    require_proof(engine.push(model, version), model, version)


def require_proof(proof: PushProof, model: nn.Module, version: str) -> None:
    """Raises ModelError where an engine proves to hold other weights than this model's, under that version."""
    if proof != proof_of(model, version):
        raise ModelError(
            f"the engine holds other weights than it was given as {version}",
            hint="start the worker again; nothing was sampled with them",
        )
