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
    routes: Tensor | None = None
    """Experts that a mixture chose for each token, [N, S, layers * chosen] (`routing`)."""

    def one(self, row: int, tokens: int) -> Prefilled:
        """Returns the prefilled prompt of one row, of `tokens` tokens, without the dimension N."""
        keys, values = ([part[row, :, :tokens] for part in parts] for parts in (self.keys, self.values))
        routes = None if self.routes is None else self.routes[row, :tokens]
        return Prefilled(self.logits[row], keys, values, routes)


def padded(rows: Sequence[Sequence[float]], fill: float = 0) -> Tensor:
    """Stacks non-empty rows as a tensor [B, T] of the elements' type, padded on the right to the longest."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])


class Decoder(Protocol):
    @property
    def vocabulary(self) -> int:
        """Size of the model's vocabulary: exclusive upper bound of token ids."""

    @property
    def routes(self) -> Tensor | None:
        """Experts that a mixture chose for each token of the last `extend` or `advance`, `[tokens, layers * chosen]`;
        None for other models."""

    def prefill(self, ids: Tensor, lengths: Tensor) -> Prefilled:
        """Runs the model on prompts `[N, S]`, padded on the right, of `lengths` `[N]`; returns their last logits, keys
        and values."""

    def extend(self, ids: Tensor, reading: RowReading, *, every: bool = False) -> Tensor:
        """Runs the model on more tokens `[S]` of one row after its cached ones. Returns logits `[1, V]` after the last,
        or `[S, V]` after each. The caller closes the reading."""

    def advance(self, ids: Tensor, cache: SlotCache) -> Tensor:
        """Runs the model on one more token for each row `[B]` and returns the logits `[B, V]` after it. The caller
        opens and closes the step."""

    def logits(self, ids: Tensor) -> Tensor:
        """Returns the model's logits `[N, S, V]` after each token of `[N, S]`; undefined after padding."""

    def without_adapter(self) -> AbstractContextManager[None]:
        """Context in which the decoder computes the base model without its adapter (`low_rank`)."""
