"""Loads weights into a live vLLM model, inside each of vLLM's worker processes.

What always holds: what is loaded was read whole, by one of the `transfers`, and hashed before a tensor of the model
changes. A failure in the middle leaves a model of two halves: whoever sees one ends the whole engine.
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
    """vLLM mixes this class into its worker (`worker_extension_cls`); methods are called by their names."""

    model_runner: Any
    vllm_config: Any
    rank: int
    """Of this worker, among those that hold the model together."""

    def assay_load(self, weights: dict[str, Any], aliases: dict[str, str]) -> dict[str, Any]:
        """Replaces all weights by those that an offer's `weights` tell of; `aliases` names tensors that are another's
        twin.

        Returns the digest of what was read (see `appliance.inference.weights.weights_digest`), and as `refused` why the
        model takes no weights of these names. Raises RuntimeError where a layer did not take all that it has."""
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
            raise RuntimeError(f"no weights, or not all of them, came to {', '.join(lacking[:4])}")
        return {"digest": digest}

    def assay_tensors(self, tensors: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
        """Yields what the model is to load, layer by layer."""
        yield from tensors.items()

    def assay_bound(self, adapter: int) -> int:
        """Counts the layers of the model that compute with something of this adapter; `adapter` is vLLM's number."""
        manager = self.model_runner.lora_manager._adapter_manager
        slot = manager.lora_index_to_id.index(adapter)
        return sum(bool(part[slot].any()) for part in lora_parts(manager.modules.values()))

    def assay_score_at(self, temperature: float) -> None:
        """Has the log-probabilities of prompts be those of the distribution at this temperature from now on."""
        runner = self.model_runner
        plain = getattr(type(runner), "_get_prompt_logprobs_dict", None)
        if plain is None or not hasattr(getattr(runner, "sampler", None), "compute_logprobs"):
            if temperature != 1.0:
                raise RuntimeError("this vLLM scores prompts at temperature 1 only")
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
    """Stands for vLLM's LoRA kernels in the head, which would take the rows of a prompt for those that sample.

    Adapters of heads are refused before they come here, so there is nothing to add."""

    def add_lora_logits(self, logits: torch.Tensor, *_others: Any, **_named: Any) -> torch.Tensor:
        return logits


def _is_head(module: nn.Module) -> bool:
    return hasattr(module, "sharded_to_full_mapping")


def lora_parts(layers: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Yields the first halves of all adapters `[adapters, 1, rank, inputs]`, part by part of each layer: vLLM joins
    layers that read the same inputs."""
    for layer in layers:
        stacked = layer.lora_a_stacked
        yield from (stacked,) if isinstance(stacked, torch.Tensor) else stacked


@contextmanager
def watched(model: Any) -> Iterator[list[str]]:
    """Yields the names of layers that lack some of their weights: all of them, until weights were offered.

    vLLM counts the numbers that come to each layer, and puts it into service once they are as many as it holds. So it
    does not when some are kept back, whatever they are: but for vocabularies, which are padded, and for a layer whose
    weight is another's."""
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
    """Counts the numbers that a layer is to be given: not those that pad a vocabulary, and of buffers only those that
    were given, for a layer computes most of them itself."""
    from vllm.model_executor.model_loader.reload.meta import SKIP_LOAD_TENSORS
    from vllm.model_executor.model_loader.reload.utils import get_layer_tensors, get_tensor_load_numel

    part = getattr(layer, "shard_indices", None)
    if part is not None:
        return int(part.num_org_elements * layer.embedding_dim)
    wanted = (layer._parameters.keys() | {name for name, _ in info.loaded_weights}) - SKIP_LOAD_TENSORS
    return sum(get_tensor_load_numel(one) for name, one in get_layer_tensors(layer).items() if name in wanted)


def mend_tied(model: nn.Module) -> list[str]:
    """Packs the weights of layers anew that share them with another layer, and returns the layers' names.

    vLLM's processor build keeps a packed copy of each linear layer's weights. A layerwise reload makes that copy anew
    only where a tensor arrived; a head that is tied to the embedding gets none, and would keep the old one."""
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
    """Computes SHA-256 over names, types, shapes and bytes, in the order of names, the twins among them."""
    named = dict(tensors) | {name: tensors[twin] for name, twin in aliases.items()}
    found = hashlib.sha256()
    for name, tensor in sorted(named.items()):
        found.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        found.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()
