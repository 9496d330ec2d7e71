"""Digests of an engine's weights, and verification of a push."""

from __future__ import annotations

import hashlib

import torch
from torch import nn

from appliance.inference.adapters import adapter_digest, adapter_files, frozen_digest, has_adapter
from appliance.inference.engine import Engine, ModelError, PushProof


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
