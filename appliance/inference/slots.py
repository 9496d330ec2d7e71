"""Keeps the keys and values of the decoding loop: each step takes one time slot that all rows share.

What always holds. Every step writes the keys and values of all rows at slot `head`, which is one cheap slice; a row
sees the slots that it owns, in the order of its tokens, and no other (`bias` is 0 there and -inf elsewhere). A row that
waits or is empty does not own the slot that the step wrote. Positions count a row's own tokens, so gaps do not show.
When `head` reaches the end, every row's tokens are moved together and the loop goes on; only then do waits stop
costing slots.

Rows are numbered 0 to `count - 1`; `keep` renumbers them when few are left.
"""

from __future__ import annotations

import torch
from torch import Tensor

HIDDEN = float("-inf")


class SlotCache:
    """Holds [rows, key/value heads, slots, head size] for each layer, made when the first prompt arrives."""

    def __init__(self, rows: int, tokens: int, spare: int) -> None:
        """`tokens` is the most that one row can hold; `spare` slots are the steps between two moves, at least."""
        self.count = 0
        self.head = 0
        self.low = 0
        """No row owns a slot below this one."""
        self.rows = rows
        self.capacity = tokens + max(spare, 1)
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self.bias = torch.full((rows, self.capacity), HIDDEN)
        self.positions = torch.zeros(rows, dtype=torch.long)
        """Tokens that each row holds, which is the position of its next one."""
        self._first = [self.capacity] * rows

    def clear(self) -> None:
        """Forgets all rows; keeps the memory for the next ones."""
        self.count = self.head = self.low = 0
        self.bias.fill_(HIDDEN)
        self.positions.zero_()
        self._first = [self.capacity] * self.rows

    def seat(self, row: int, keys: list[Tensor], values: list[Tensor]) -> None:
        """Gives a row its prompt: `[heads, tokens, size]` for each layer. The row must be empty (`vacate`)."""
        tokens = keys[0].shape[1] if keys else 0
        if not self.count:
            self._fit(keys, values)
        self.count = max(self.count, row + 1)
        self.head = max(self.head, tokens)
        start = self.head - tokens
        for whole, part in zip(self.keys, keys, strict=True):
            whole[row, :, start : self.head] = part
        for whole, part in zip(self.values, values, strict=True):
            whole[row, :, start : self.head] = part
        self.bias[row].fill_(HIDDEN)
        self.bias[row, start : self.head] = 0.0
        self.positions[row] = tokens
        self._first[row] = start

    def _fit(self, keys: list[Tensor], values: list[Tensor]) -> None:
        """Makes the memory, unless it has the right shape already. Zeros, because a hidden NaN would still spread."""
        shapes = [(self.rows, part.shape[0], self.capacity, part.shape[2]) for part in (*keys, *values)]
        if [tuple(whole.shape) for whole in (*self.keys, *self.values)] != shapes:
            made = [torch.zeros(shape) for shape in shapes]
            self.keys, self.values = made[: len(keys)], made[len(keys) :]

    def free(self) -> None:
        """Forgets all rows and what their keys and values were."""
        self.clear()
        self.keys, self.values = [], []

    def vacate(self, row: int) -> None:
        """Takes everything from the row."""
        self.bias[row].fill_(HIDDEN)
        self.positions[row] = 0
        self._first[row] = self.capacity

    def begin(self) -> None:
        """Opens slot `head` for the step's tokens, to all rows: one that sees no slot at all would give NaN."""
        if self.head == self.capacity:
            self.gather()
        self.bias[: self.count, self.head] = 0.0
        self.low = min(self._first[: self.count], default=0)
        self.low = min(self.low, self.head)

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Stores `[count, heads, size]` of this step; returns the window `[count, heads, low..head, size]`."""
        k, v = self.keys[layer], self.values[layer]
        n, head = self.count, self.head
        k[:n, :, head] = keys
        v[:n, :, head] = values
        return k[:n, :, self.low : head + 1], v[:n, :, self.low : head + 1]

    @property
    def window(self) -> Tensor:
        """Returns the additive mask `[count, low..head]` of the window that `write` returns."""
        return self.bias[: self.count, self.low : self.head + 1]

    def commit(self, going: Tensor) -> None:
        """Closes the step: only the rows in `going` `[count]` moved."""
        n = self.count
        self.positions[:n] += going
        self.bias[:n, self.head].masked_fill_(~going, HIDDEN)
        self.head += 1

    def keep(self, rows: list[int]) -> None:
        """Keeps only these rows, in this order, as rows 0, 1, ..."""
        index, n = torch.tensor(rows, dtype=torch.long), len(rows)
        for whole in (*self.keys, *self.values):
            whole[:n, :, self.low : self.head] = whole[index, :, self.low : self.head]
        self.bias[:n] = self.bias[index]
        self.bias[n:] = HIDDEN
        self.positions[:n] = self.positions[index]
        self.positions[n:] = 0
        self._first = [self._first[row] for row in rows] + [self.capacity] * (self.rows - n)
        self.count = n
        if not n:
            self.head = 0

    def gather(self) -> None:
        """Moves every row's tokens together, so that all rows end at the same, lowest possible slot."""
        n = self.count
        longest = int(self.positions[:n].max()) if n else 0
        owned = self.bias[:n, : self.head] == 0.0
        order = owned.to(torch.uint8).argsort(dim=1, stable=True)[:, self.head - longest :]
        for whole in (*self.keys, *self.values):
            index = order[:, None, :, None].expand(n, whole.shape[1], longest, whole.shape[3])
            whole[:n, :, :longest] = whole[:n].gather(2, index)
        start = longest - self.positions[:n]
        self.bias[:n] = HIDDEN
        self.bias[:n, :longest].masked_fill_(torch.arange(longest) >= start[:, None], 0.0)
        self._first[:n] = [s if s < longest else self.capacity for s in start.tolist()]
        self.head = longest
