"""KV cache of the decoding loop: each step takes one time slot shared by all rows.

Invariants: every step writes the keys and values of all rows at slot `head`, one cheap slice; a row sees only the slots
it owns, in token order (`bias` is 0 there and -inf elsewhere). A waiting or empty row does not own the step's slot.
Positions count a row's own tokens, so gaps have no effect. When `head` reaches the end, every row's tokens are
compacted; only then do waits stop costing slots.

With a `Paging` the slots are a window of the newest tokens: on compaction, a row's oldest tokens move into whole blocks
(`blocks.BlockPool`), and long reads go there directly. So a row's memory is at most the window and its tokens.

Rows are numbered 0 to `count - 1`; `keep` renumbers them when few are left.
"""

from __future__ import annotations

import torch
from torch import Tensor

from appliance.inference.torch.blocks import BlockPool, Paging

HIDDEN = float("-inf")


class SlotCache:
    """KV cache in slots `[rows, key/value heads, slots, head size]` per layer, allocated with the first prompt."""

    def __init__(
        self,
        rows: int,
        tokens: int,
        spare: int,
        paging: Paging | None = None,
        device: torch.device = torch.device("cpu"),  # noqa: B008 - a value
    ) -> None:
        """Creates an empty KV cache. `tokens` is the maximum of one row; `spare` is the minimum steps between two
        compactions. Keys and values are stored on `device`."""
        self.count = 0
        self.head = 0
        self.low = 0
        """First slot owned by any row."""
        self.rows = rows
        self.capacity = tokens + max(spare, 1) if paging is None else paging.window
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self.bias = torch.full((rows, self.capacity), HIDDEN, device=device)
        self.positions = torch.zeros(rows, dtype=torch.long)
        """Tokens per row, which is the position of the next one; on the CPU."""
        self.pool = BlockPool(0 if paging is None else paging.block)
        self._near = torch.zeros(rows, dtype=torch.long)
        """Tokens per row in slots; the others are in the pool."""
        self._first = [self.capacity] * rows
        self._holds, self._holds_near = self.positions.numpy(), self._near.numpy()
        """numpy views of the counts: numpy accesses single cells much faster than torch."""

    @property
    def bytes(self) -> int:
        """Bytes of the cached keys and values."""
        return sum(part.nbytes for part in (*self.keys, *self.values)) + self.pool.bytes

    @property
    def tokens(self) -> int:
        """Number of cached tokens of all rows."""
        return int(self._holds.sum())

    @property
    def device(self) -> torch.device:
        return self.bias.device

    def clear(self) -> None:
        """Drops the cached tokens of all rows; keeps the slots' memory for the next ones."""
        self.count = self.head = self.low = 0
        self.bias.fill_(HIDDEN)
        self.positions.zero_()
        self._near.zero_()
        self.pool.clear()
        self._first = [self.capacity] * self.rows

    def seat(self, row: int, keys: list[Tensor], values: list[Tensor]) -> None:
        """Stores keys and values of a row's prompt: `[heads, tokens, size]` for each layer. The row must be empty
        (`vacate`)."""
        if not self.tokens:
            self._fit(keys, values)
        self.open(row)
        self._append(row, keys, values)

    def open(self, row: int) -> None:
        """Includes an empty row in the cache's row count."""
        self.count = max(self.count, row + 1)

    def _append(self, row: int, keys: list[Tensor], values: list[Tensor]) -> None:
        """Appends keys and values of tokens after a row's blocks; the row must own no slot."""
        tokens = keys[0].shape[1] if keys else 0
        whole = tokens // self.pool.block * self.pool.block if self.pool.block else 0
        if whole:
            self.pool.add(row, [part[:, :whole] for part in keys], [part[:, :whole] for part in values])
        near = tokens - whole
        self.head = max(self.head, near)
        start = self.head - near
        for slots, part in zip(self.keys, keys, strict=True):
            slots[row, :, start : self.head] = part[:, whole:] if whole else part
        for slots, part in zip(self.values, values, strict=True):
            slots[row, :, start : self.head] = part[:, whole:] if whole else part
        self.bias[row].fill_(HIDDEN)
        self.bias[row, start : self.head] = 0.0
        self._holds[row] += tokens
        self._holds_near[row] = near
        self._first[row] = start
        self.low = min(self.low, start)

    def _fit(self, keys: list[Tensor], values: list[Tensor]) -> None:
        """Allocates the cache's memory for keys and values of this shape, unless it fits. Zeroed, because a masked NaN
        would still spread."""
        like = (*keys, *values)
        shapes = [(self.rows, part.shape[0], self.capacity, part.shape[2]) for part in like]
        made = (*self.keys, *self.values)
        same = [(tuple(whole.shape), whole.dtype, whole.device) for whole in made] == [
            (shape, part.dtype, part.device) for shape, part in zip(shapes, like, strict=True)
        ]
        if not same:
            new = [part.new_zeros(shape) for shape, part in zip(shapes, like, strict=True)]
            self.keys, self.values = new[: len(keys)], new[len(keys) :]
            self.pool.fit(keys, values)

    def free(self) -> None:
        """Drops all rows of the cache and frees its memory."""
        self.clear()
        self.keys, self.values = [], []
        self.pool.fit([], [])

    def vacate(self, row: int) -> None:
        """Drops the row's cached tokens."""
        self.bias[row].fill_(HIDDEN)
        self._holds[row] = self._holds_near[row] = 0
        self._first[row] = self.capacity
        self.pool.drop(row)

    def read(self, row: int) -> RowReading:
        """Begins to read several tokens into a row's cache; no step may run before `RowReading.close`."""
        return RowReading(self, row)

    def held(self, row: int, layer: int) -> tuple[Tensor, Tensor]:
        """Returns copies of the cached keys and values of all of a row's tokens `[heads, tokens, size]`."""
        slots = self._slots_of(row)
        keys, values = self.keys[layer][row, :, slots], self.values[layer][row, :, slots]
        if int(self.positions[row]) == len(slots):
            return keys, values
        far_keys, far_values = self.pool.history(row, layer)
        return torch.cat([far_keys, keys], 1), torch.cat([far_values, values], 1)

    def copy(self, row: int, to: int, tokens: int) -> None:
        """Copies the cached keys and values of another row's first `tokens` tokens to an empty row."""
        parts = [self.held(row, layer) for layer in range(len(self.keys))]
        self.seat(to, [keys[:, :tokens] for keys, _ in parts], [values[:, :tokens] for _, values in parts])

    def _slots_of(self, row: int) -> Tensor:
        """Returns the cache slots that a row owns, in token order."""
        return (self.bias[row, : self.head] == 0.0).nonzero().squeeze(1)

    def begin(self) -> None:
        """Begins a decoding step: compacts the cache if it is full, then opens slot `head` to all rows. A row without a
        visible slot would yield NaN."""
        if self.head == self.capacity:
            self.gather()
        self.bias[: self.count, self.head] = 0.0
        self.low = min(self._first[: self.count], default=0)
        self.low = min(self.low, self.head)

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Stores a layer's keys and values of this step, `[count, heads, size]`; returns the window `[count, heads,
        low..head, size]`."""
        k, v = self.keys[layer], self.values[layer]
        n, head = self.count, self.head
        k[:n, :, head] = keys
        v[:n, :, head] = values
        return k[:n, :, self.low : head + 1], v[:n, :, self.low : head + 1]

    @property
    def window(self) -> Tensor:
        """Additive attention mask `[count, low..head]` of the window that `write` returns."""
        return self.bias[: self.count, self.low : self.head + 1]

    def commit(self, going: Tensor) -> None:
        """Ends the decoding step: only the rows in `going` `[count]` advanced."""
        n = self.count
        self.positions[:n] += going
        self._near[:n] += going
        self.bias[:n, self.head].masked_fill_(~going.to(self.device), HIDDEN)
        self.head += 1

    def keep(self, rows: list[int]) -> None:
        """Removes all other rows from the cache; these become 0, 1, ... in this order."""
        index, n = torch.tensor(rows, dtype=torch.long), len(rows)
        for whole in (*self.keys, *self.values):
            whole[:n, :, self.low : self.head] = whole[index, :, self.low : self.head]
        self.bias[:n] = self.bias[index]
        self.bias[n:] = HIDDEN
        for counts in (self.positions, self._near):
            counts[:n] = counts[index]
            counts[n:] = 0
        self.pool.keep(rows)
        self._first = [self._first[row] for row in rows] + [self.capacity] * (self.rows - n)
        self.count = n
        if not n:
            self.head = 0

    def gather(self) -> None:
        """Compacts the cache so that all rows end at the same, lowest possible slot."""
        n = self.count
        if self.pool.block:
            self._move_to_blocks()
        longest = int(self._near[:n].max()) if n else 0
        owned = self.bias[:n, : self.head] == 0.0
        order = owned.to(torch.uint8).argsort(dim=1, stable=True)[:, self.head - longest :]
        for whole in (*self.keys, *self.values):
            index = order[:, None, :, None].expand(n, whole.shape[1], longest, whole.shape[3])
            whole[:n, :, :longest] = whole[:n].gather(2, index)
        start = longest - self._near[:n]
        self.bias[:n] = HIDDEN
        self.bias[:n, :longest].masked_fill_((torch.arange(longest) >= start[:, None]).to(self.device), 0.0)
        none = longest if self.pool.block else self.capacity
        self._first[:n] = [s if s < longest else none for s in start.tolist()]
        self.head = longest

    def _move_to_blocks(self) -> None:
        """Moves each row's oldest tokens from the cache's slots to the block pool, in whole blocks."""
        for row in range(self.count):
            whole = int(self._near[row]) // self.pool.block * self.pool.block
            if whole:
                old = self._slots_of(row)[:whole]
                self.pool.add(
                    row, [part[row, :, old] for part in self.keys], [part[row, :, old] for part in self.values]
                )
                self.bias[row, old] = HIDDEN
                self._near[row] -= whole


class RowReading:
    """Multi-token read of one row: shows each layer all tokens, and stores the new ones on close."""

    def __init__(self, cache: SlotCache, row: int) -> None:
        self._cache = cache
        self._row = row
        self._new: dict[int, tuple[Tensor, Tensor]] = {}
        self.start = int(cache.positions[row])
        """Tokens of the row before the read."""

    def update(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Stores a layer's keys and values of the new tokens, `[heads, new tokens, size]`; returns `[heads, all tokens,
        size]`."""
        self._new[layer] = keys, values
        if not self.start:
            return keys, values
        held_keys, held_values = self._cache.held(self._row, layer)
        return torch.cat([held_keys, keys], 1), torch.cat([held_values, values], 1)

    def close(self) -> None:
        """Ends the row's reading: stores the new tokens' keys and values in the cache."""
        cache, row = self._cache, self._row
        keys, values = ([self._new[layer][side] for layer in range(len(self._new))] for side in (0, 1))
        if not self.start:
            cache.seat(row, keys, values)
            return
        slots = cache._slots_of(row)
        for whole, parts in ((cache.keys, keys), (cache.values, values)):
            parts[:] = [torch.cat([whole[layer][row, :, slots], part], 1) for layer, part in enumerate(parts)]
        cache.positions[row] -= len(slots)
        cache._append(row, keys, values)
