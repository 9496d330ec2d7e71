"""Decoder interface of the decoding loop: read whole prompts, and advance every row by one token."""

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
    """Prefilled prompts: `logits` [N, V] after each last token, keys and values [N, heads, S, size] by layer. Values
    beyond a prompt's length are undefined."""

    logits: Tensor
    keys: list[Tensor]
    values: list[Tensor]

    def one(self, row: int, tokens: int) -> Prefilled:
        """Returns one row's prompt of `tokens` tokens, without the dimension N."""
        keys, values = ([part[row, :, :tokens] for part in parts] for parts in (self.keys, self.values))
        return Prefilled(self.logits[row], keys, values)


def padded(rows: Sequence[Sequence[float]], fill: float = 0) -> Tensor:
    """Returns [B, T] of non-empty rows, padded on the right to the longest, with the elements' type."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])


class Decoder(Protocol):
    @property
    def vocabulary(self) -> int:
        """Exclusive upper bound of ids."""

    def prefill(self, ids: Tensor, lengths: Tensor) -> Prefilled:
        """Reads prompts `[N, S]`, padded on the right; `lengths` `[N]`."""

    def extend(self, ids: Tensor, reading: RowReading, *, every: bool = False) -> Tensor:
        """Reads more tokens `[S]` of one row after its cached ones. Returns logits `[1, V]` after the last, or `[S, V]`
        after each. The caller closes the reading."""

    def advance(self, ids: Tensor, cache: SlotCache) -> Tensor:
        """Returns logits `[B, V]` after one more token for each row `[B]`. The caller opens and closes the step."""

    def logits(self, ids: Tensor) -> Tensor:
        """Returns logits `[N, S, V]` after each token of `[N, S]`; undefined after padding."""

    def without_adapter(self) -> AbstractContextManager[None]:
        """Context in which the decoder computes the base model without its adapter (`low_rank`)."""
