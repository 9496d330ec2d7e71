"""Stores the batch's conversations as tables, one row each, so that a step needs few operations instead of a loop.

Invariants, for a row with a request: `used` tokens of its conversation are known (prompt, forced, sampled), and the
cache has consumed a prefix of them; the row samples once all are consumed.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from appliance.inference.engine import GenerationRequest, Turn
from appliance.inference.sampling import uniforms
from appliance.records.rollouts import WeightSpan


class _Cells(NamedTuple):
    """numpy views of the table's tensors: numpy accesses single cells much faster than torch."""

    running: NDArray[np.bool_]
    reading: NDArray[np.bool_]
    order: NDArray[np.int64]
    used: NDArray[np.int64]
    limit: NDArray[np.int64]
    turn: NDArray[np.int64]
    temperature: NDArray[np.float32]
    ids: NDArray[np.int64]
    logprobs: NDArray[np.float32]
    uniforms: NDArray[np.float32]
    stops: NDArray[np.int64]


class RowTable:
    def __init__(self, rows: int, slots: int) -> None:
        self.requests: list[GenerationRequest | None] = []
        """Request by row; its length is the batch size."""
        self.running = torch.zeros(rows, dtype=torch.bool)
        """True for rows neither empty nor waiting."""
        self.reading = torch.zeros(rows, dtype=torch.bool)
        """True for rows with too many uncached tokens for one per step, which are read in chunks."""
        self.order = torch.zeros(rows, dtype=torch.long)
        """Order of arrival: lower numbers came first."""
        self._seated = 0
        self.used = torch.zeros(rows, dtype=torch.long)
        self.temperature = torch.ones(rows)
        self._slots = slots
        self._ids = torch.zeros(rows, slots, dtype=torch.long)
        self._logprobs = torch.zeros(rows, slots)
        self._uniforms = torch.zeros(rows, slots)
        self._limit = torch.zeros(rows, dtype=torch.long)
        self._stops = torch.full((rows, 1), -1)
        """Stop tokens `[rows, most]`; -1 pads shorter lists."""
        self._turn = torch.zeros(rows, dtype=torch.long)
        """Start of the current turn."""
        self._routes: list[bytearray] = []
        """Experts that a mixture chose for each token that it read, by row."""
        self._route = 0
        """Bytes of a token's experts."""
        self._ended: list[int] = []
        """Tokens of each row when its last turn ended."""
        self._cells = self._memory()

    def _memory(self) -> _Cells:
        tables = (self.running, self.reading, self.order, self.used, self._limit, self._turn, self.temperature)
        wide = (self._ids, self._logprobs, self._uniforms, self._stops)
        found: list[Any] = [table.numpy() for table in (*tables, *wide)]
        return _Cells(*found)

    def __len__(self) -> int:
        return len(self.requests)

    @property
    def runnable(self) -> int:
        """Number of running rows."""
        return int(np.count_nonzero(self._cells.running))

    def seat(self, row: int, request: GenerationRequest) -> None:
        """Starts a request on an empty row of the table, or on the next one."""
        if row == len(self.requests):
            self.requests.append(None)
            self._routes.append(bytearray())
            self._ended.append(0)
        self.requests[row], self._routes[row], self._ended[row] = request, bytearray(), 0
        more = len(request.stops) - self._stops.shape[1]
        if more > 0:
            self._stops = torch.nn.functional.pad(self._stops, (0, more), value=-1)
            self._cells = self._memory()
        cells, length = self._cells, len(request.prompt)
        cells.ids[row, :length] = request.prompt
        cells.uniforms[row] = uniforms(request.seed, self._slots)
        cells.used[row] = cells.turn[row] = length
        cells.limit[row] = request.max_tokens
        cells.stops[row] = -1
        cells.stops[row, : len(request.stops)] = request.stops
        cells.temperature[row] = request.temperature
        cells.running[row] = True
        cells.order[row] = self._seated
        self._seated += 1

    def vacate(self, row: int) -> None:
        self.requests[row] = None
        self._cells.running[row] = self._cells.reading[row] = False

    def force(self, row: int, ids: list[int]) -> None:
        """Appends forced tokens to a waiting row, which then runs."""
        cells = self._cells
        start = int(cells.used[row])
        end = start + len(ids)
        cells.ids[row, start:end] = ids
        cells.used[row] = cells.turn[row] = end
        cells.running[row] = True

    def route(self, row: int, start: int, routes: Tensor) -> None:
        """Stores the experts chosen for a row's tokens from `start`, `[tokens, layers * chosen]`, except where the row
        was read before: those decided its draws."""
        self._route = routes.shape[1] * routes.element_size()
        known = self._routes[row]
        known += routes.numpy().tobytes()[len(known) - start * self._route :]

    def copy_routes(self, row: int, to: int, tokens: int) -> None:
        """Copies the experts chosen for another row's first `tokens` tokens."""
        self._routes[to][: tokens * self._route] = self._routes[row][: tokens * self._route]

    def ids(self, row: int, start: int, most: int) -> Tensor:
        """Returns at most `most` known tokens of a row from `start`."""
        return self._ids[row, start : min(start + most, int(self.used[row]))]

    def next_ids(self, positions: Tensor) -> Tensor:
        """Returns each row's token at its position, `[B]`; arbitrary where unknown."""
        n = len(self)
        return self._ids[:n].gather(1, positions[:, None].clamp(max=self._slots - 1)).squeeze(1)

    def uniform(self) -> Tensor:
        """Returns the random number of each row's next draw, uniform in [0, 1), `[B]`."""
        n = len(self)
        return self._uniforms[:n].gather(1, self.used[:n, None].clamp(max=self._slots - 1)).squeeze(1)

    def append(self, drawn: Tensor, logprobs: Tensor, sampling: Tensor) -> Tensor:
        """Appends the drawn token and its log-probability to the rows in `sampling` `[B]`; returns the rows whose turn
        ended."""
        n = len(self)
        rows = sampling.nonzero().squeeze(1)
        at, ids = self.used[rows], drawn[rows]
        self._ids[rows, at] = ids
        self._logprobs[rows, at] = logprobs[rows]
        self.used[:n] += sampling
        return rows[(ids[:, None] == self._stops[rows]).any(1) | (at + 1 == self._limit[rows])]

    def take_turn(self, row: int, version: str) -> Turn:
        """Returns the turn that ended on this row; a stopped row now waits."""
        request, cells = self.requests[row], self._cells
        assert request is not None
        cells.running[row] = False
        last = int(cells.ids[row, cells.used[row] - 1])
        turn = self._turn_of(row, version, "stop" if last in request.stops else "length")
        self._ended[row] = int(cells.used[row])
        return turn

    def cut_turn(self, row: int, version: str) -> Turn:
        """Returns the sampled part of the row's current turn; empty for a waiting row."""
        cells = self._cells
        if not cells.running[row]:
            cells.turn[row] = cells.used[row]
        return self._turn_of(row, version, "withdrawn")

    def _turn_of(self, row: int, version: str, ended: Literal["stop", "length", "withdrawn"]) -> Turn:
        request, cells = self.requests[row], self._cells
        assert request is not None
        turn = slice(int(cells.turn[row]), int(cells.used[row]))
        ids, logprobs = tuple(cells.ids[row, turn].tolist()), tuple(cells.logprobs[row, turn].tolist())
        spans = (WeightSpan(version=version, start=0, end=len(ids)),) if ids else ()
        if not (ids and self._route):
            return Turn(request.id, ids, logprobs, ended, spans)
        # The experts chosen on reading a token decide the next one; the last one has not been read.
        first, start, end = (max(0, at - 1) * self._route for at in (self._ended[row], turn.start, turn.stop))
        known = self._routes[row]
        return Turn(request.id, ids, logprobs, ended, spans, bytes(known[start:end]), bytes(known[first:start]))

    def room(self, row: int) -> int:
        """Returns the number of tokens left in the row's budget."""
        return int(self._cells.limit[row] - self._cells.used[row])

    def keep(self, rows: list[int]) -> None:
        """Removes all other rows from the table; these become 0, 1, ... in this order."""
        index, n = torch.tensor(rows, dtype=torch.long), len(rows)
        for table in (self.used, self.temperature, self.order, self._limit, self._turn):
            table[:n] = table[index]
        for wide in (self._ids, self._logprobs, self._uniforms, self._stops):
            wide[:n] = wide[index]
        for marks in (self.running, self.reading):
            marks[:n] = marks[index]
            marks[n:] = False
        self.requests = [self.requests[row] for row in rows]
        self._routes, self._ended = [self._routes[row] for row in rows], [self._ended[row] for row in rows]

    def clear(self) -> None:
        self.requests, self._routes, self._ended, self._route = [], [], [], 0
        self.running.fill_(False)
        self.reading.fill_(False)
