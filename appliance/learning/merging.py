"""Merges a base and its adapter into a plain model, in float32, and verifies the result.

Invariants: an adapter is merged only into the weights it was trained on, read from the base's own files and dequantised
where training had them in 4 bits: never into 4 bits, nor into the original weights then. The result is written only if
its log-probabilities equal those of base plus adapter. Nothing is ever unmerged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import safe_open
from torch import Tensor

from appliance.inference.adapters import adapter_layers, base_digest, plain_tensors
from appliance.inference.engine import ADAPTER, ADAPTER_CONFIG, ModelError, ModelFiles
from appliance.inference.folder import open_model
from appliance.inference.nf4 import dequantise, quantise
from appliance.learning.checkpoints import STATE, WEIGHTS, in_float32, without_weights
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import Content, read_verified, write_by_digest, write_folder
from appliance.learning.trained_weights import TensorFile, add_adapter, delta, load_adapter

MERGE_ERROR = 1e-3
"""Maximum difference of log-probabilities, in nats, from merging in float32."""
_PROBE = (4, 32)
"""Sequences and tokens per sequence compared after merging."""
_OTHER = "name the folder of the adapter's base model"


def publish_merged(checkpoint: Path, base: ModelFiles, models: Path) -> str | None:
    """Publishes base model plus LoRA adapter as a plain model in `models/<digest>/` and returns the digest; None if the
    adapter adds nothing. Raises CheckpointError, and ModelError for a base that cannot be opened."""
    files = read_verified(checkpoint)
    if adds_nothing(files):
        return None
    return write_by_digest(models, merged_files(files, base, str(checkpoint))[0])


def export_merged(checkpoint: Path, base: ModelFiles, target: Path) -> float:
    """Writes base model plus LoRA adapter as the plain model folder `target`. Returns the largest difference of
    log-probabilities. Raises as `publish_merged`."""
    files, worst = merged_files(read_verified(checkpoint), base, str(checkpoint))
    write_folder(target, files)
    return worst


def adds_nothing(files: Mapping[str, bytes]) -> bool:
    """True if a LoRA adapter is unchanged since its creation, so that it adds nothing to the base model."""
    tensors = _tensors(files, "the checkpoint")
    return not any(bool(tensor.any()) for name, tensor in tensors.items() if ".lora_B." in name)


def same_weights(trained: Path, base: Path) -> bool:
    """True if two model folders have equal weights in float32, by name."""
    with ExitStack() as stack:

        def held(folder: Path) -> dict[str, Any]:
            files = [stack.enter_context(safe_open(file, framework="pt")) for file in folder.glob("model*.safetensors")]
            return {name: file for file in files for name in file.keys()}  # noqa: SIM118 - no mapping

        ours, theirs = held(trained), held(base)
        return ours.keys() == theirs.keys() and all(
            torch.equal(ours[name].get_tensor(name).float(), theirs[name].get_tensor(name).float()) for name in ours
        )


def merged_files(adapter: Mapping[str, bytes], base: ModelFiles, name: str) -> tuple[dict[str, Content], float]:
    """Merges a LoRA adapter into its base; returns the plain model's files, and its largest difference of
    log-probabilities, in nats, from base plus adapter. `name` is the checkpoint in messages. Raises CheckpointError and
    ModelError."""
    tensors = _tensors(adapter, name)
    try:
        settings = json.loads(adapter[ADAPTER_CONFIG])
        rank, alpha = int(settings["r"]), float(settings["lora_alpha"])
        trained_beside = str(json.loads(adapter[STATE])["progress"]["base"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{name}: invalid adapter configuration: {error}", hint=_OTHER) from error
    model = _trained_on(trained_beside, base, name)
    add_adapter(model, rank, alpha, seed=0)
    load_adapter(model, tensors)
    before = _logprobs(model)
    with torch.no_grad():
        for layer in adapter_layers(model):
            layer.get_base_layer().weight += delta(layer)
            layer.lora_B["default"].weight.zero_()
    worst = float((_logprobs(model) - before).abs().max())
    if not worst <= MERGE_ERROR:
        raise CheckpointError(
            f"{name} merged into its base changes log-probabilities by {worst:.2g} nats",
            hint="nothing was written; the adapter may have diverged: use an earlier checkpoint",
        )
    weights = TensorFile(dict(plain_tensors(model)), {"format": "pt"})
    return {**in_float32(without_weights(base)), WEIGHTS: weights}, worst


def _trained_on(digest: str, base: ModelFiles, name: str) -> Any:
    """Opens the base model in float32 with the frozen weights of this digest: its own, rounded to bfloat16 or not, or
    those of 4 bits. Raises CheckpointError without such."""
    model = open_model(base, "the base model")
    found = base_digest(model)
    if digest in (found, base_digest(model, torch.bfloat16)):
        return model
    with suppress(ModelError):  # it has no layers that could be in 4 bits
        for dtype in (torch.float32, torch.bfloat16):
            del model  # free it first
            model = open_model(base, "the base model")
            quantise(model, dtype)
            if base_digest(model) == digest:
                dequantise(model)
                return model.float()
    raise CheckpointError(f"{name} has an adapter for the base model {digest[:12]}, not for {found[:12]}", hint=_OTHER)


def _logprobs(model: Any) -> Tensor:
    rows, length = _PROBE
    vocabulary = int(model.get_input_embeddings().weight.shape[0])
    positions = getattr(model.config, "max_position_embeddings", None) or length
    ids = torch.randint(0, vocabulary, (rows, min(length, positions)), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        logits = model(input_ids=ids, use_cache=False).logits.log_softmax(-1)
    found: Tensor = logits[:, :-1].gather(2, ids[:, 1:, None]).squeeze(2)
    return found


def _tensors(files: Mapping[str, bytes], name: str) -> dict[str, Tensor]:
    if ADAPTER not in files:
        raise CheckpointError(f"{name} has no {ADAPTER}", hint="name a checkpoint of a cycle that trained an adapter")
    try:
        found: dict[str, Tensor] = safetensors.torch.load(files[ADAPTER])
    except (ValueError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{ADAPTER} of {name} is broken: {error}", hint="use another checkpoint") from error
    return found
