"""Admits rollouts to engines by their forecast KV memory, and refills freed memory.

A rollout's memory grows with its tokens until it ends, at an unknown time. An engine with too many rollouts preempts
and recomputes some; one with too few idles. So before each admission, the engine's total memory is forecast until its
last rollout may end: mean plus `caution` standard deviations (a sum of many lengths varies far less than each). A
rollout is admitted if the curve's peak fits. Preempted tokens raise caution and sampled tokens lower it, so that in the
long run a small fixed share of tokens is recomputed.

Invariants: rollouts are admitted in order of arrival, those already begun first. An engine without rollouts always gets
one, whatever the forecast. No engine exceeds its rows. A group's rollouts go to the engine of its first one (where
their prompt is cached) while it has room. A rollout stays until it ends, is set back because memory runs out, or loses
its engine; it then continues from its tokens. Nothing is forecast for an engine whose rows always fit.

A running quantile of observed lengths comes from rStar2-Agent (2508.20722, section 3.2: rollouts go where memory is
free); the forecast, a quantile of the sum, is ours.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from appliance.scheduling.lengths import RANGES, LengthCurve, LengthTable, Row
from runtime.model import FrozenModel

LEAST_CAUTION, MOST_CAUTION = -1.0, 2.0
REGENERATED = 0.03
"""Target share of recomputed tokens: admission is reduced above it and increased below."""
GAIN = 4.0
"""Standard deviations of caution per total token capacity of all engines."""


class SchedulerState(FrozenModel):
    """Learned state of the rollout scheduler that is carried between batches. Running rollouts are in the ledger."""

    lengths: LengthTable
    caution: Annotated[float, Field(ge=LEAST_CAUTION, le=MOST_CAUTION)] = 1.0


@dataclass(frozen=True)
class Placed:
    rollout: str
    engine: str


@dataclass
class _Known:
    group: str
    tokens: int
    place: int
    """Current range of lengths."""
    engine: str | None = None


class Scheduler:
    def __init__(self, engines: Mapping[str, int], state: SchedulerState) -> None:
        """Creates a scheduler of rollouts on engines, with learned `state`. `engines` maps names to KV tokens. Raises
        ValueError for one without tokens."""
        self._curve = LengthCurve(state.lengths)
        self._caution = state.caution
        self._known: dict[str, _Known] = {}
        self._queue: deque[str] = deque()
        self._capacity: dict[str, float] = {}
        """Token capacity by engine; infinite where only rows limit."""
        self._rows: dict[str, float] = {}
        self._used: dict[str, int] = {}
        """Tokens of current rollouts by engine."""
        self._held: dict[str, Row] = {}
        """Number of rollouts in each range of lengths, by engine."""
        self._home: dict[str, str] = {}
        """Engine of a group's first rollout, by group."""
        self._members: Counter[str] = Counter()
        self._forecast: tuple[int, Row, Row] | None = None
        for name, tokens in engines.items():
            self.add_engine(name, tokens)

    @property
    def state(self) -> SchedulerState:
        return SchedulerState(lengths=self._curve.table(), caution=self._caution)

    @property
    def queued(self) -> int:
        return len(self._queue)

    @property
    def running(self) -> int:
        return len(self._known) - len(self._queue)

    def add_engine(self, name: str, tokens: int | None, rows: int | None = None) -> None:
        """Adds an engine with at most `rows` concurrent rollouts; `tokens` is None if those always fit. Raises
        ValueError."""
        if name in self._capacity or (tokens is not None and tokens < 1):
            raise ValueError(f"invalid engine {name!r} with {tokens} tokens: use a unique name and at least one token")
        if (rows is None and tokens is None) or (rows is not None and rows < 1):
            raise ValueError(f"invalid rows {rows}: an engine needs at least one row")
        self._capacity[name] = np.inf if tokens is None else tokens
        self._rows[name] = np.inf if rows is None else rows
        self._used[name], self._held[name] = 0, np.zeros(RANGES)

    def learn(self, lengths: Iterable[int]) -> None:
        """Records final token counts of rollouts that ran elsewhere or earlier."""
        for tokens in lengths:
            place = self._curve.range_of(min(tokens, self._curve.longest))
            self._curve.grew(0, place)
            self._curve.end(place)

    def submit(self, rollout: str, group: str, tokens: int, *, begun: bool = False) -> None:
        """Queues a rollout with its current number of tokens, first if it had begun. Raises ValueError if it is known
        already, or too long."""
        if rollout in self._known:
            raise ValueError(f"rollout {rollout} is already known")
        self._known[rollout] = _Known(group, tokens, self._curve.range_of(tokens))
        self._curve.expect(len(self._known))
        self._members[group] += 1
        self._queue.appendleft(rollout) if begun else self._queue.append(rollout)

    def admit(self) -> list[Placed]:
        """Returns the rollouts to start now, with their engines, in queue order."""
        if not self._queue or not self._capacity:
            return []
        if not any(map(np.isfinite, self._capacity.values())):
            return self._admit_by_rows()
        names = list(self._capacity)
        number = {name: place for place, name in enumerate(names)}
        held = np.stack([self._held[name] for name in names])
        used = np.array([self._used[name] for name in names], dtype=float)
        capacity, rows = np.array(list(self._capacity.values())), np.array(list(self._rows.values()))
        bounded, counts = np.isfinite(capacity), held.sum(1)
        mean, variance = self._figures()
        means, variances = held @ mean, held @ variance
        placed = []
        while self._queue:
            known = self._known[self._queue[0]]
            peaks = self._peak(means + mean[known.place], variances + variance[known.place])
            fits = ((peaks <= capacity) | (counts == 0)) & (used + known.tokens <= capacity) & (counts < rows)
            home = number.get(self._home.get(known.group, ""))
            if home is None or not fits[home]:
                free = np.where(bounded, capacity - peaks, rows - counts)
                home = int(np.where(fits, free, -np.inf).argmax())
            if not fits[home]:
                break
            rollout, known.engine = self._queue.popleft(), names[home]
            self._home.setdefault(known.group, known.engine)
            self._hold(known)
            counts[home] += 1
            used[home] += known.tokens
            means[home] += mean[known.place]
            variances[home] += variance[known.place]
            placed.append(Placed(rollout, known.engine))
        return placed

    def _admit_by_rows(self) -> list[Placed]:
        """Returns the rollouts to start now where only engines' rows limit, without a forecast."""
        free = {name: rows - self._held[name].sum() for name, rows in self._rows.items()}
        placed = []
        while self._queue:
            known = self._known[self._queue[0]]
            home = self._home.get(known.group, "")
            if free.get(home, 0) < 1 and free[home := max(free, key=free.__getitem__)] < 1:
                break
            known.engine = home
            self._home.setdefault(known.group, home)
            self._hold(known)
            free[home] -= 1
            placed.append(Placed(self._queue.popleft(), home))
        return placed

    def grow(self, rollout: str, tokens: int) -> None:
        """Updates a running rollout's number of tokens. Raises KeyError if it does not run."""
        known = self._running(rollout)
        place = self._curve.range_of(tokens)
        if self._queue:  # caution is adjusted only while rollouts are queued
            self._note(-REGENERATED * (tokens - known.tokens))
        self._let_go(known)
        if place != known.place:
            self._curve.grew(known.place, place)
        known.place, known.tokens = place, tokens
        self._hold(known)

    def finish(self, rollout: str) -> None:
        """Removes a rollout that reached its end, and records its length. Raises KeyError if it does not run."""
        known = self._running(rollout)
        self._remove(rollout)
        self._curve.end(known.place)

    def set_back(self, growth: int) -> list[str]:
        """Returns the rollouts to withdraw now, so that no engine must preempt while each running one gains `growth`
        tokens: the shortest, cheapest to recompute. They keep their tokens, are queued first, and return when the
        forecast has room."""
        taken: list[str] = []
        for name, capacity in self._capacity.items():
            if self._used[name] + growth * self._held[name].sum() <= capacity:
                continue
            mine = sorted((one for one in self._known.items() if one[1].engine == name), key=lambda one: one[1].tokens)
            used = sum(known.tokens + growth for _, known in mine)
            for rollout, known in mine[:-1]:
                if used <= capacity:
                    break
                used -= known.tokens + growth
                self._let_go(known)
                self._note(known.tokens)
                known.engine = None
                taken.append(rollout)
        self._queue.extendleft(reversed(taken))
        return taken

    def drop(self, rollout: str) -> None:
        """Removes a rollout that will not continue, without recording its length. Raises KeyError."""
        self._remove(rollout)

    def note_evictions(self, tokens: int) -> None:
        """Records the tokens that engines must recompute after preemptions."""
        self._note(tokens)

    def remove_engine(self, name: str) -> list[str]:
        """Removes an engine from the scheduler. Its rollouts are queued before all new ones, and returned. Raises
        KeyError."""
        del self._capacity[name], self._held[name], self._used[name], self._rows[name]
        self._home = {group: home for group, home in self._home.items() if home != name}
        back = [rollout for rollout, known in self._known.items() if known.engine == name]
        for rollout in reversed(back):
            self._known[rollout].engine = None
            self._queue.appendleft(rollout)
        return back

    def _peak(self, means: Row, variances: Row) -> Row:
        """Returns the peak of each engine's forecast memory, in tokens [engines], from means and variances [engines,
        RANGES]."""
        return np.asarray((means + self._caution * np.sqrt(variances)).max(1))

    def _figures(self) -> tuple[Row, Row]:
        """Returns mean and variance of a rollout's forecast memory [RANGES, RANGES], by current length range and ranges
        ahead."""
        if self._forecast is None or self._forecast[0] != self._curve.version:
            alive, sizes = self._curve.alive(), self._curve.sizes()
            self._forecast = self._curve.version, alive * sizes, alive * (1 - alive) * sizes**2
        return self._forecast[1], self._forecast[2]

    def _note(self, tokens: float) -> None:
        moved = self._caution + GAIN * tokens / max(1.0, sum(self._capacity.values()))
        self._caution = min(MOST_CAUTION, max(LEAST_CAUTION, moved))

    def _running(self, rollout: str) -> _Known:
        known = self._known[rollout]
        if known.engine is None:
            raise KeyError(f"rollout {rollout} is queued")
        return known

    def _hold(self, known: _Known) -> None:
        assert known.engine is not None
        self._held[known.engine][known.place] += 1
        self._used[known.engine] += known.tokens

    def _let_go(self, known: _Known) -> None:
        assert known.engine is not None
        self._held[known.engine][known.place] -= 1
        self._used[known.engine] -= known.tokens

    def _remove(self, rollout: str) -> None:
        known = self._known.pop(rollout)
        if known.engine is None:
            self._queue.remove(rollout)
        else:
            self._let_go(known)
        self._members[known.group] -= 1
        if not self._members[known.group]:
            del self._members[known.group]
            self._home.pop(known.group, None)
