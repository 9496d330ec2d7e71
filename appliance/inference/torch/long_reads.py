"""Admits rows to the shared KV memory, and reads long inputs in chunks.

Invariants: cached tokens never exceed the limit. The oldest row keeps its cache, so it always progresses; a preempted
row is recomputed from its tokens before it samples. While at least as many rows sample as wait to be read, at most one
chunk is read per step.
"""

from __future__ import annotations

from torch import Tensor

from appliance.inference.torch.blocks import Paging
from appliance.inference.torch.decoder import Decoder
from appliance.inference.torch.rows import RowTable
from appliance.inference.torch.slots import SlotCache

RIDES = 16
"""Maximum missing tokens that a row feeds one per step, with the others."""


class LongReads:
    def __init__(self, cache: SlotCache, table: RowTable, paging: Paging, room: int) -> None:
        self._cache = cache
        self._table = table
        self._paging = paging
        self.room = room
        """Token limit over all rows."""
        self.evictions = 0
        """Number of preempted rows."""

    def fits(self, tokens: int) -> bool:
        """True if `tokens` more fit into the KV cache, beside one more token of each running row."""
        table = self._table
        return self._cache.tokens + int((table.running & ~table.reading).sum()) + tokens <= self.room

    @property
    def waiting(self) -> bool:
        """True if a row's prompt is still to be read."""
        return bool((self._table.running & self._table.reading).any())

    def make_room(self) -> None:
        """Preempts the newest rows until the next decoding step fits into the KV cache."""
        while not self.fits(0) and (row := self._latest()) is not None:
            self._evict(row)

    def read(self, decoder: Decoder) -> dict[int, Tensor]:
        """Reads a chunk of a waiting row's prompt, and returns the logits of completed rows. Reads more chunks while
        fewer rows sample than wait to be read, since a step costs about the same for few rows."""
        table, found = self._table, dict[int, Tensor]()
        readers = int((table.running & table.reading).sum())
        samplers = int((table.running & ~table.reading).sum())
        for _ in range(max(1, readers // max(1, samplers))):
            if not self._read_chunk(decoder, found):
                break
        return found

    def _read_chunk(self, decoder: Decoder, found: dict[int, Tensor]) -> bool:
        """Reads a chunk of the oldest waiting row's prompt; False if impossible."""
        table, cache = self._table, self._cache
        rows = (table.running & table.reading).nonzero().squeeze(1).tolist()
        if not rows:
            return False
        row = min(rows, key=lambda one: int(table.order[one]))
        lacks = int(table.used[row] - cache.positions[row])
        if not self.fits(lacks):
            if bool((table.running & ~table.reading).any()):
                return False
            while not self.fits(lacks) and (last := self._latest(but=row)) is not None:
                self._evict(last)
        if not cache.positions[row]:
            self._copy_prompt(row)
        start = int(cache.positions[row])
        if int(table.used[row]) - start <= RIDES and start:
            table.reading[row] = False
            return True
        ids = table.ids(row, start, self._paging.chunk)
        reading = cache.read(row)
        logits = decoder.extend(ids.to(cache.device), reading)
        reading.close()
        if decoder.routes is not None:
            table.route(row, start, decoder.routes)
        if start + len(ids) == int(table.used[row]):
            table.reading[row] = False
            found[row] = logits[0]
        return True

    def _copy_prompt(self, row: int) -> None:
        """Copies to this row the KV cache of another row with the same prompt, except its last token."""
        request = self._table.requests[row]
        assert request is not None
        tokens = len(request.prompt) - 1
        for other, its in enumerate(self._table.requests):
            same = its is not None and other != row and its.prompt == request.prompt
            if same and tokens and int(self._cache.positions[other]) >= tokens:
                self._cache.copy(other, row, tokens)
                self._table.copy_routes(other, row, tokens)
                return

    def _latest(self, but: int | None = None) -> int | None:
        """Returns the newest row with cached tokens, to be preempted; spares row `but`, by default the oldest one."""
        table = self._table
        there = [row for row, request in enumerate(table.requests) if request is not None]
        spared = min(there, key=lambda row: int(table.order[row]), default=None) if but is None else but
        holders = [row for row in there if row != spared and int(self._cache.positions[row])]
        return max(holders, key=lambda row: int(table.order[row]), default=None)

    def _evict(self, row: int) -> None:
        self._cache.vacate(row)
        self._table.reading[row] = True
        self.evictions += 1
