"""What the decoding loop asks of a model: read whole prompts, and advance every row by one token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from appliance.inference.slots import SlotCache


@dataclass(frozen=True)
class Prefilled:
    """Prompts that were read: `logits` [N, V] after the last token of each, keys and values [N, heads, S, size] by
    layer. Beyond a prompt's own length its keys and values mean nothing."""

    logits: Tensor
    keys: list[Tensor]
    values: list[Tensor]


class Decoder(Protocol):
    @property
    def vocabulary(self) -> int:
        """Ids are below this."""
        ...

    def prefill(self, ids: Tensor, lengths: Tensor) -> Prefilled:
        """Reads prompts `[N, S]`, padded on the right; `lengths` `[N]`."""
        ...

    def advance(self, ids: Tensor, cache: SlotCache) -> Tensor:
        """Logits `[B, V]` after one more token for each row `[B]`. The caller opens and closes the cache's step."""
        ...
