"""Decoder for any other causal language model of transformers, by its own forward pass over the shared slots.

Attention gets a prepared mask and positions, so waits and refills have no effect. An architecture with state beyond
keys and values, or one that uses slot distances instead of positions, would be silently wrong: `probe` refuses such a
model.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from appliance.inference.torch.blocks import attend
from appliance.inference.torch.decoder import Prefilled
from appliance.inference.torch.low_rank import AdaptedLinear
from appliance.inference.torch.routing import routers_of
from appliance.inference.torch.slots import RowReading, SlotCache


class GenericDecoder:
    """Decoder on the transformers model itself: weight changes there take effect here."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._routers = routers_of(model)
        self.routes: Tensor | None = None
        known = inspect.signature(model.forward).parameters
        self._few = "logits_to_keep" in known
        self._cache = "cache" if "cache" in known else "past_key_values"
        """Name of the cache argument in transformers: `cache` since 5.2x, and only that from 5.40."""

    @property
    def vocabulary(self) -> int:
        return int(self._model.get_output_embeddings().weight.shape[0])

    def prefill(self, ids: Tensor, lengths: Tensor) -> Prefilled:
        from transformers import DynamicCache

        n, s = ids.shape
        cache = DynamicCache()
        seen = (torch.arange(s, device=ids.device) < lengths[:, None].to(ids.device)).long()
        ends, which = torch.unique(lengths - 1, return_inverse=True)
        out = self._forward(
            input_ids=ids,
            attention_mask=seen,
            position_ids=torch.arange(s, device=ids.device).expand(n, s),
            use_cache=True,
            **{self._cache: cache},
            **({"logits_to_keep": ends.to(ids.device)} if self._few else {}),
        )
        last: Tensor = out.logits[torch.arange(n), which if self._few else lengths - 1].float()
        routes = None if self.routes is None else self.routes.view(n, s, -1)
        return Prefilled(last, [layer.keys for layer in cache.layers], [layer.values for layer in cache.layers], routes)

    def extend(self, ids: Tensor, reading: RowReading, *, every: bool = False) -> Tensor:
        from transformers import DynamicCache

        s, start = len(ids), reading.start
        cache = DynamicCache()
        cache.layers = [_RowLayer(reading, layer) for layer in range(self._model.config.num_hidden_layers)]
        hidden = torch.ones(s, start + s, dtype=torch.bool, device=ids.device).triu(start + 1)
        mask = torch.zeros(1, 1, s, start + s, dtype=self._model.dtype, device=ids.device)
        out = self._forward(
            input_ids=ids[None],
            attention_mask=mask.masked_fill_(hidden, torch.finfo(mask.dtype).min),
            position_ids=torch.arange(start, start + s, device=ids.device)[None],
            use_cache=True,
            **{self._cache: cache},
            **({"logits_to_keep": 1} if self._few and not every else {}),
        )
        logits: Tensor = out.logits[0].float()
        return logits if every else logits[-1:]

    def logits(self, ids: Tensor) -> Tensor:
        logits: Tensor = self._forward(input_ids=ids, use_cache=False).logits.float()
        return logits

    @contextmanager
    def without_adapter(self) -> Iterator[None]:
        layers = [layer for layer in self._model.modules() if isinstance(layer, AdaptedLinear)]
        kept = [layer.product for layer in layers]
        for layer in layers:
            layer.product = layer.product.without_adapter()
        try:
            yield
        finally:
            for layer, product in zip(layers, kept, strict=True):
                layer.product = product

    def _forward(self, **inputs: Any) -> Any:
        """Runs the model's forward pass in evaluation mode and returns its output. Dropout, which the trainer may have
        left on, would distort samples."""
        self._model.eval()
        if self._routers is None:
            return self._model(**inputs)
        with self._routers.recording() as taken:
            out = self._model(**inputs)
        self.routes = taken().cpu()
        return out

    def advance(self, ids: Tensor, cache: SlotCache) -> Tensor:
        from transformers import DynamicCache

        window = DynamicCache()
        window.layers = [_Window(cache, layer) for layer in range(len(cache.keys))]
        mask = cache.window[:, None, None].clamp(min=torch.finfo(self._model.dtype).min).to(self._model.dtype)
        with _blocks_seen(self._model, cache):
            out = self._forward(
                input_ids=ids[:, None],
                attention_mask=mask,
                position_ids=cache.positions[: len(ids), None].to(ids.device),
                use_cache=True,
                **{self._cache: window},
            )
        logits: Tensor = out.logits[:, -1].float()
        return logits


class _CacheLayer(ABC):
    """Interface of a KV cache layer in transformers."""

    is_sliding = False
    is_croppable = False
    is_compileable = False
    is_initialized = True

    @abstractmethod
    def get_seq_length(self) -> int:
        """Returns the number of tokens cached before the current ones."""

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        return -1


class _Window(_CacheLayer):
    """Cache layer of transformers that reads and writes one layer of the slots."""

    def __init__(self, cache: SlotCache, layer: int) -> None:
        self._cache = cache
        self._layer = layer

    def update(self, keys: Tensor, values: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        _attended.set((self._cache, self._layer))
        return self._cache.write(self._layer, keys[:, :, 0], values[:, :, 0])

    def get_seq_length(self) -> int:
        return self._cache.head - self._cache.low


class _RowLayer(_CacheLayer):
    """Cache layer of transformers for one row that reads several tokens."""

    def __init__(self, reading: RowReading, layer: int) -> None:
        self._reading = reading
        self._layer = layer

    def update(self, keys: Tensor, values: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        k, v = self._reading.update(self._layer, keys[0], values[0])
        return k[None], v[None]

    def get_seq_length(self) -> int:
        return self._reading.start


_attended: ContextVar[tuple[SlotCache, int]] = ContextVar("attended")
"""Layer whose keys and values the model received last, and attends to next."""
BLOCKS = "assay_blocks"
KNOWN = frozenset(("position_ids", "use_cache", "is_causal", "output_router_logits"))
"""Attention arguments that change nothing for one token per row."""


def _attend_to_blocks(
    module: object, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor, **said: Any
) -> tuple[Tensor, None]:
    """Attention function for transformers: attends to the given window and to the blocks before it."""
    scaling = said.pop("scaling", None)
    if said.pop("dropout", 0.0) or any(said[name] is not None for name in said.keys() - KNOWN):
        raise ValueError(f"its attention needs more than keys and values: {', '.join(sorted(said.keys() - KNOWN))}")
    cache, layer = _attended.get()
    n, heads, _, size = query.shape
    queries = (query * (size**-0.5 if scaling is None else scaling)).view(n, key.shape[1], -1, size)
    seen = attend(queries, key, value, attention_mask.float(), cache.pool, layer)
    return seen.reshape(n, 1, heads, -1), None


@contextmanager
def _blocks_seen(model: Any, cache: SlotCache) -> Iterator[None]:
    """Context in which the model also attends to the cache's blocks."""
    if not cache.pool.count:
        yield
        return
    from transformers import AttentionInterface

    AttentionInterface.register(BLOCKS, _attend_to_blocks)
    before = model.config._attn_implementation
    model.config._attn_implementation = BLOCKS
    try:
        yield
    finally:
        model.config._attn_implementation = before
