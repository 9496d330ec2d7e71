"""Loads weights into a live vLLM model, inside each of vLLM's worker processes.

Invariants: weights are read completely, by one of the `transfers`, and hashed before any tensor of the model changes. A
failure midway leaves mixed weights, and ends the whole engine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from appliance.inference.vllm.server.core import in_one_line
from appliance.inference.vllm.transfers import received_tensors


class WeightsExtension:
    """Mixin for vLLM's worker (`worker_extension_cls`); vLLM calls the methods by name."""

    model_runner: Any
    vllm_config: Any
    rank: int
    """Rank of this worker among those that share the model."""

    def assay_load(self, weights: dict[str, Any], aliases: dict[str, str]) -> dict[str, Any]:
        """Replaces all weights in vLLM's worker by those of an offer; `aliases` maps tied tensors to their twin.
        Returns the digest of what was read (see `appliance.inference.adapters.weights_digest`), and as `refused` the
        reason that the model rejects these names. Raises RuntimeError if a layer was not completely loaded."""
        from vllm.config import set_current_vllm_config

        with received_tensors(weights, self.rank) as tensors, set_current_vllm_config(self.vllm_config):
            digest = tensors_digest(tensors, aliases)
            model = self.model_runner.get_model()
            try:
                with watched(model) as lacking:
                    self.model_runner.reload_weights(weights_iterator=self.assay_tensors(tensors))
            except (KeyError, ValueError) as error:
                return {"digest": digest, "refused": in_one_line(error)}
            mend_tied(model)
        if lacking:
            raise RuntimeError(f"missing or incomplete weights of {', '.join(lacking[:4])}")
        return {"digest": digest}

    def assay_tensors(self, tensors: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
        """Yields the tensors to load into vLLM, layer by layer."""
        yield from tensors.items()

    def assay_bound(self, adapter: int) -> int:
        """Counts the layers that compute with this LoRA adapter; `adapter` is vLLM's number."""
        manager = self.model_runner.lora_manager._adapter_manager
        slot = manager.lora_index_to_id.index(adapter)
        return sum(bool(part[slot].any()) for part in lora_parts(manager.modules.values()))

    def assay_score_at(self, temperature: float) -> None:
        """Sets the temperature at which vLLM computes log-probabilities of prompt tokens."""
        runner = self.model_runner
        plain = getattr(type(runner), "_get_prompt_logprobs_dict", None)
        if plain is None or not hasattr(getattr(runner, "sampler", None), "compute_logprobs"):
            if temperature != 1.0:
                raise RuntimeError("this vLLM scores prompts only at temperature 1")
            return

        def scored(*args: Any, **named: Any) -> Any:
            sampler = runner.sampler
            compute = sampler.compute_logprobs
            sampler.compute_logprobs = lambda logits: compute(logits.float() / temperature)
            heads = [
                head for head in runner.get_model().modules() if hasattr(head, "punica_wrapper") and _is_head(head)
            ]
            kept = [head.punica_wrapper for head in heads]
            for head in heads:
                head.punica_wrapper = _NoHeadAdapter()
            try:
                return plain(runner, *args, **named)
            finally:
                del sampler.compute_logprobs
                for head, wrapper in zip(heads, kept, strict=True):
                    head.punica_wrapper = wrapper

        runner._get_prompt_logprobs_dict = scored


class _NoHeadAdapter:
    """Replacement for vLLM's LoRA kernels in the head, which would mistake prompt rows for sampling rows. Adapters of
    heads are refused earlier, so nothing is added."""

    def add_lora_logits(self, logits: torch.Tensor, *_others: Any, **_named: Any) -> torch.Tensor:
        return logits


def _is_head(module: nn.Module) -> bool:
    return hasattr(module, "sharded_to_full_mapping")


def lora_parts(layers: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Yields the first factors of all LoRA adapters `[adapters, 1, rank, inputs]`, by part of each layer: vLLM joins
    layers with a common input."""
    for layer in layers:
        stacked = layer.lora_a_stacked
        yield from (stacked,) if isinstance(stacked, torch.Tensor) else stacked


@contextmanager
def watched(model: Any) -> Iterator[list[str]]:
    """Watches a model being loaded; yields a list of incompletely loaded layers: all of them until weights arrive.

    vLLM counts the numbers that reach each layer, and activates it once complete. Incomplete layers are found by that
    count, except padded vocabularies and layers that share another's weight.
    """
    from vllm.model_executor.layers.attention import is_deferred_attention_layer
    from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info

    named = [
        (name, layer, id(layer if layer._parameters.get("weight") is None else layer._parameters["weight"]))
        for name, layer in model.named_modules()
        if any(one is not None for one in layer._parameters.values()) and not is_deferred_attention_layer(layer)
    ]
    lacking = [name for name, _, _ in named]
    load = model.load_weights

    def loaded(weights: Iterable[tuple[str, torch.Tensor]]) -> Any:
        found = load(weights)
        missing: dict[int, int] = {}
        for _, layer, weight in named:
            info = get_layerwise_info(layer)
            missing[weight] = min(
                missing.get(weight, 1 << 62), _held(layer, info) - info.load_numel if info.can_load() else 0
            )
        lacking[:] = [name for name, _, weight in named if missing[weight] > 0]
        return found

    model.load_weights = loaded
    try:
        yield lacking
    finally:
        del model.load_weights


def _held(layer: Any, info: Any) -> int:
    """Returns how many numbers a layer must receive to be loaded completely: without vocabulary padding, and with only
    those buffers that were sent, since a layer computes most of them."""
    from vllm.model_executor.model_loader.reload.meta import SKIP_LOAD_TENSORS
    from vllm.model_executor.model_loader.reload.utils import get_layer_tensors, get_tensor_load_numel

    part = getattr(layer, "shard_indices", None)
    if part is not None:
        return int(part.num_org_elements * layer.embedding_dim)
    wanted = (layer._parameters.keys() | {name for name, _ in info.loaded_weights}) - SKIP_LOAD_TENSORS
    return sum(get_tensor_load_numel(one) for name, one in get_layer_tensors(layer).items() if name in wanted)


def mend_tied(model: nn.Module) -> list[str]:
    """Repacks the weights of layers that share them with another layer, and returns the layers' names.

    vLLM's CPU build keeps a packed copy of each linear layer's weights. A layerwise reload renews it only where a
    tensor arrived; a head tied to the embedding would keep the old copy.
    """
    owners: dict[int, int] = {}
    for module in model.modules():
        weight = module._parameters.get("weight")
        if weight is not None:
            owners[id(weight)] = owners.get(id(weight), 0) + 1
    mended = []
    for name, module in model.named_modules():
        weight = module._parameters.get("weight")
        if weight is not None and owners[id(weight)] > 1 and hasattr(module, "cpu_linear"):
            module.quant_method.process_weights_after_loading(module)
            mended.append(name)
    return mended


def tensors_digest(tensors: Mapping[str, torch.Tensor], aliases: Mapping[str, str]) -> str:
    """SHA-256 over names, types, shapes and bytes of tensors in name order, including aliases."""
    named = dict(tensors) | {name: tensors[twin] for name, twin in aliases.items()}
    found = hashlib.sha256()
    for name, tensor in sorted(named.items()):
        found.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        found.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()
