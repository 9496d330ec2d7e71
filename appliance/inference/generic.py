"""Decodes any other causal language model of transformers by its own forward pass over the shared slots.

Attention gets a ready mask and positions, so waits and refills do not show. An architecture that keeps another state
than keys and values, or that looks at the distance of slots instead of positions, would be wrong in silence; `probe`
decodes with gaps, compares with a plain forward pass, and refuses such a model.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from appliance.inference.decoder import Prefilled
from appliance.inference.engine import ModelError
from appliance.inference.slots import SlotCache

PROBE_ERROR = 1e-3
"""Largest difference of log-probabilities that rounding explains."""


class GenericDecoder:
    """Holds the transformers model itself: weights that change there change here."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @property
    def vocabulary(self) -> int:
        return int(self._model.get_output_embeddings().weight.shape[0])

    def prefill(self, ids: Tensor, lengths: Tensor) -> Prefilled:
        from transformers import DynamicCache

        n, s = ids.shape
        cache = DynamicCache()
        seen = (torch.arange(s) < lengths[:, None]).long()
        out = self._forward(
            input_ids=ids,
            attention_mask=seen,
            position_ids=torch.arange(s).expand(n, s),
            past_key_values=cache,
            use_cache=True,
        )
        last: Tensor = out.logits[torch.arange(n), lengths - 1].float()
        return Prefilled(last, [layer.keys for layer in cache.layers], [layer.values for layer in cache.layers])

    def logits(self, ids: Tensor) -> Tensor:
        logits: Tensor = self._forward(input_ids=ids, use_cache=False).logits.float()
        return logits

    def _forward(self, **inputs: Any) -> Any:
        """Runs the model without dropout, which the trainer may have left on and which would falsify samples."""
        self._model.eval()
        return self._model(**inputs)

    def advance(self, ids: Tensor, cache: SlotCache) -> Tensor:
        from transformers import DynamicCache

        window = DynamicCache()
        window.layers = [_Window(cache, layer) for layer in range(len(cache.keys))]
        mask = cache.window[:, None, None].clamp(min=torch.finfo(torch.float32).min)
        out = self._forward(
            input_ids=ids[:, None],
            attention_mask=mask,
            position_ids=cache.positions[: len(ids), None],
            past_key_values=window,
            use_cache=True,
        )
        logits: Tensor = out.logits[:, -1].float()
        return logits


class _Window:
    """Shows a layer of the slots to transformers as a layer of its own cache."""

    is_sliding = False
    is_croppable = False
    is_compileable = False
    is_initialized = True

    def __init__(self, cache: SlotCache, layer: int) -> None:
        self._cache = cache
        self._layer = layer

    def update(self, keys: Tensor, values: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        return self._cache.write(self._layer, keys[:, :, 0], values[:, :, 0])

    def get_seq_length(self) -> int:
        return self._cache.head - self._cache.low

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        return -1


@torch.inference_mode()
def probe(decoder: GenericDecoder, model: Any, tokens: int) -> None:
    """Checks that rows decode as in a plain forward pass with gaps, waits and company. Raises ModelError.

    `tokens`: the most that a row will hold; a window of attention shorter than that is refused.
    """
    name = type(model).__name__
    window = getattr(model.config, "sliding_window", None)
    if window and window < tokens and getattr(model.config, "use_sliding_window", True):
        raise ModelError(
            f"{name} looks back {window} tokens only, and a conversation may have {tokens}",
            hint=f"set the budget of a conversation to at most {window} tokens",
        )
    length = min(12, tokens)
    ids = torch.arange(2 * length).view(2, length) * 7 % decoder.vocabulary
    cache = SlotCache(rows=2, tokens=length, spare=3)
    try:
        expected = model.eval()(input_ids=ids, use_cache=False).logits.float().log_softmax(-1)
        first = decoder.prefill(ids[:, :3], torch.tensor([3, 2]))
        for row, n in enumerate((3, 2)):
            read = first.one(row, n)
            cache.seat(row, read.keys, read.values)
        worst = float((first.logits.log_softmax(-1) - expected[[0, 1], [2, 1]]).abs().max())
        for step in range(2 * length):
            held = cache.positions.clone()
            going = torch.tensor([bool(held[row] < length) and (step + row) % 3 > 0 for row in range(2)])
            cache.begin()
            logits = decoder.advance(ids[torch.arange(2), held.clamp(max=length - 1)], cache)
            cache.commit(going)
            for row in going.nonzero().flatten().tolist():
                difference = logits[row].log_softmax(-1) - expected[row, held[row]]
                worst = max(worst, float(difference.abs().max()))
    except (ValueError, TypeError, AttributeError, RuntimeError, IndexError, KeyError, NotImplementedError) as error:
        raise ModelError(
            f"{name} cannot be decoded here: {error}",
            hint="use a model of plain attention layers, such as Qwen2, Llama, Mistral or GPT-NeoX",
        ) from error
    if not worst <= PROBE_ERROR:
        raise ModelError(
            f"{name} decodes differently in a batch: log-probabilities are off by {worst:.2g}",
            hint="use a model of plain attention layers, such as Qwen2, Llama, Mistral or GPT-NeoX",
        )
