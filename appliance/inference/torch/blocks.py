"""Paged KV cache for long conversations, with attention over all blocks in one batch.

Invariants: a block belongs to one row and is full; the blocks in use are the first `count` of the pool, so one batched
product reads all of them without a copy. When a row's blocks are freed, the last ones in use move into the gaps. Memory
follows the tokens in use: it grows by a quarter, up to the limit, layer by layer, and shrinks when three quarters are
unused. (Blocks come from vLLM: PagedAttention, arXiv:2309.06180; there each row gathers its own.)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from appliance.inference.memory import CHUNK, WINDOW

LEAST = 8
"""Minimum blocks allocated together."""


@dataclass(frozen=True)
class Paging:
    """Sizes of the KV cache's blocks and window, and of the chunks in which prompts are read."""

    block: int = 128
    """Tokens per block."""
    window: int = WINDOW
    """Slots of the newest tokens, shared by all rows; more than twice a block."""
    chunk: int = CHUNK
    """Maximum tokens read per step; a longer prompt or tool output is split."""

    def __post_init__(self) -> None:
        if self.block < 1 or self.window <= 2 * self.block or self.chunk < 1:
            raise ValueError(f"a window of {self.window} slots is too small for two blocks of {self.block} and a step")


class BlockPool:
    """KV cache blocks `[blocks, key/value heads, tokens per block, head size]` for each layer."""

    def __init__(self, block: int) -> None:
        self.block = block
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self.owners: list[int] = []
        """Row of each block in use."""
        self._of: dict[int, list[int]] = {}
        """Blocks of each row, in token order."""
        self._index: Tensor | None = None
        self._most: int | None = None

    def allow(self, tokens: int) -> None:
        """Sets the maximum number of tokens in the pool; no memory is allocated in advance."""
        self._most = tokens // self.block if self.block else 0

    @property
    def count(self) -> int:
        return len(self.owners)

    @property
    def bytes(self) -> int:
        return sum(part.nbytes for part in (*self.keys, *self.values))

    def owner(self, device: torch.device) -> Tensor:
        """Returns the row that owns each block in use `[count]`."""
        if self._index is None:
            self._index = torch.tensor(self.owners, dtype=torch.long, device=device)
        return self._index

    def fit(self, keys: list[Tensor], values: list[Tensor]) -> None:
        """Sets the blocks' shape, type and device, from keys and values `[..., heads, any, size]` of each layer. The
        pool must be empty."""
        self.keys, self.values = (
            [part.new_empty(0, part.shape[-3], self.block, part.shape[-1]) for part in parts]
            for parts in (keys, values)
        )

    def add(self, row: int, keys: list[Tensor], values: list[Tensor]) -> None:
        """Appends whole blocks of keys and values to a row: `[heads, tokens, size]` for each layer."""
        more = keys[0].shape[1] // self.block
        if not more:
            return
        start, end = self.count, self.count + more
        if end > len(self.keys[0]):
            ahead = max(LEAST, end + end // 4)
            self._resize(ahead if self._most is None else max(end, min(ahead, self._most)))
        for wholes, parts in ((self.keys, keys), (self.values, values)):
            for whole, part in zip(wholes, parts, strict=True):
                whole[start:end] = part.reshape(part.shape[0], more, self.block, -1).transpose(0, 1)
        self.owners += [row] * more
        self._of.setdefault(row, []).extend(range(start, end))
        self._index = None

    def history(self, row: int, layer: int) -> tuple[Tensor, Tensor]:
        """Returns copies of the keys and values in a row's blocks, for one layer: `[heads, tokens, size]`."""
        blocks = self._of.get(row, [])
        return (
            self.keys[layer][blocks].transpose(0, 1).flatten(1, 2),
            self.values[layer][blocks].transpose(0, 1).flatten(1, 2),
        )

    @torch.inference_mode()
    def drop(self, row: int) -> None:
        """Frees a row's blocks."""
        gone = set(self._of.pop(row, ()))
        if not gone:
            return
        left = self.count - len(gone)
        holes = sorted(hole for hole in gone if hole < left)
        moved = [block for block in range(left, self.count) if block not in gone]
        for whole in (*self.keys, *self.values) if holes else ():
            whole[holes] = whole[moved]
        to = dict(zip(moved, holes, strict=True))
        for block, hole in to.items():
            self.owners[hole] = self.owners[block]
        del self.owners[left:]
        self._of = {row: [to.get(block, block) for block in blocks] for row, blocks in self._of.items()}
        self._index = None
        if len(self.keys[0]) > max(LEAST, 4 * left):
            self._resize(left + left // 4)

    def keep(self, rows: list[int]) -> None:
        """Keeps the blocks of these rows, which become rows 0, 1, ...; the others must have none."""
        new = {row: number for number, row in enumerate(rows)}
        self._of = {new[row]: blocks for row, blocks in self._of.items()}
        self.owners = [new[row] for row in self.owners]
        self._index = None

    def clear(self) -> None:
        """Drops the blocks of all rows and frees their memory."""
        self.owners, self._of, self._index = [], {}, None
        for parts in (self.keys, self.values):
            parts[:] = [part.new_empty(0, *part.shape[1:]) for part in parts]

    def _resize(self, size: int) -> None:
        """Moves all blocks to new memory for `size` blocks, layer by layer, so only one layer exists twice."""
        used = self.count
        for parts in (self.keys, self.values):
            for layer, part in enumerate(parts):
                parts[layer] = part.new_empty(size, *part.shape[1:])
                parts[layer][:used] = part[:used]


def attend(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor, pool: BlockPool, layer: int) -> Tensor:
    """Computes attention of one scaled query per row to the shared window and to the row's own blocks. The window is
    that of all rows (`[rows, heads, slots, size]`, `bias` `[rows, 1, 1, slots]`), the result `[rows, heads, group,
    size]`.

    Both parts use one maximum per query, so the sum is that of one softmax (online softmax, arXiv:1805.02867).
    Temporary memory follows the tokens in use, not rows times the longest.
    """
    owner, n = pool.owner(queries.device), pool.count
    near = torch.matmul(queries, keys.transpose(2, 3)).float()
    far = torch.matmul(queries[owner], pool.keys[layer][:n].transpose(2, 3)).float()
    near += bias
    top = near.amax(-1)
    top.scatter_reduce_(0, owner[:, None, None].expand(far.shape[:3]), far.amax(-1), "amax")
    near = near.sub_(top[..., None]).exp_()
    far = far.sub_(top[owner][..., None]).exp_()
    total = near.sum(-1).index_add_(0, owner, far.sum(-1))
    seen = torch.matmul(near.to(values.dtype), values).float()
    seen.index_add_(0, owner, torch.matmul(far.to(values.dtype), pool.values[layer][:n]).float())
    return seen.div_(total[..., None]).to(queries.dtype)
