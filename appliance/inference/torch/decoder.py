"""Says what the decoding loop asks of a model: read whole prompts, and advance every row by one token."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from appliance.inference.torch.slots import RowReading, SlotCache


@dataclass(frozen=True)
class Prefilled:
    """Holds prompts that were read: `logits` [N, V] after each one's last token, keys and values [N, heads, S, size] by
    layer. Beyond a prompt's own length its keys and values mean nothing."""

    logits: Tensor
    keys: list[Tensor]
    values: list[Tensor]

    def one(self, row: int, tokens: int) -> Prefilled:
        """The prompt of that row, which has so many tokens, alone: without the dimension N."""
        keys, values = ([part[row, :, :tokens] for part in parts] for parts in (self.keys, self.values))
        return Prefilled(self.logits[row], keys, values)


def padded(rows: Sequence[Sequence[float]], fill: float = 0) -> Tensor:
    """Makes [B, T] of rows, of at least one element, padded on the right to the longest; the type is the elements'."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])


class Decoder(Protocol):
    @property
    def vocabulary(self) -> int:
        """Ids are below this."""

    def prefill(self, ids: Tensor, lengths: Tensor) -> Prefilled:
        """Reads prompts `[N, S]`, padded on the right; `lengths` `[N]`."""

    def extend(self, ids: Tensor, reading: RowReading, *, every: bool = False) -> Tensor:
        """Reads more tokens `[S]` of one row behind what it holds; returns logits `[1, V]` after the last of them, or
        `[S, V]` after each. The caller closes the reading."""

    def advance(self, ids: Tensor, cache: SlotCache) -> Tensor:
        """Returns logits `[B, V]` after one more token for each row `[B]`. The caller opens and closes the step."""

    def logits(self, ids: Tensor) -> Tensor:
        """Returns logits `[N, S, V]` after each token of `[N, S]`; what comes after padding means nothing."""

    def without_adapter(self) -> AbstractContextManager[None]:
        """Has it compute what the base computes alone, where an adapter lies beside (`low_rank`)."""
