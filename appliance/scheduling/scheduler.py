"""Admits rollouts to engines by the memory that their keys and values will need, and refills it as it frees.

A rollout holds memory for each of its tokens, grows while it runs, and gives all of it back at its end; nobody knows
when that is. An engine that has too many evicts some and computes them again; one that has too few is idle. So before
one more is admitted, the memory of all that the engine then has is forecast, from now until the last of them may end:
mean, and standard deviation times `caution` (lengths of many rollouts add up to something far steadier than each). It
is admitted when the highest point of that curve fits. What engines evict makes the scheduler more cautious, and what
they sample less, so that in the long run a fixed small share of all tokens is computed again.

What always holds. Rollouts are admitted in the order in which they came, those that had begun before the others. An
engine that has none is given one, whatever the forecast. No engine has more than it has rows. The rollouts of a group
go where the first of it went (their prompt is remembered there) while that engine has room. A rollout stays where it is
until it ends, is set back because memory is about to run out, or its engine is lost; it then goes on from the tokens
that it has. Of an engine whose rows cannot have more tokens than it holds, nothing is forecast.

The idea of a running quantile of observed lengths is rStar2-Agent's (2508.20722, section 3.2: rollouts are sent to
where memory is free); the forecast, which is a quantile of the sum, is ours.
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
"""Share of the tokens that may be computed again: less is admitted when it is more, and more when it is less."""
GAIN = 4.0
"""Standard deviations of caution for tokens that are as many as all engines hold."""


class SchedulerState(FrozenModel):
    """Is what was learned, which goes from one batch to the next. Who runs is in the ledger."""

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
    """The range of lengths that it is in."""
    engine: str | None = None


class Scheduler:
    def __init__(self, engines: Mapping[str, int], state: SchedulerState) -> None:
        """`engines`: the tokens whose keys and values each can hold. Raises ValueError for one that holds none."""
        self._curve = LengthCurve(state.lengths)
        self._caution = state.caution
        self._known: dict[str, _Known] = {}
        self._queue: deque[str] = deque()
        self._capacity: dict[str, float] = {}
        """By engine: tokens that it holds, without bound where its rows are the only one."""
        self._rows: dict[str, float] = {}
        self._used: dict[str, int] = {}
        """By engine: tokens of the rollouts that it has."""
        self._held: dict[str, Row] = {}
        """By engine: how many rollouts it has in each range of lengths."""
        self._home: dict[str, str] = {}
        """By group: the engine that its first rollout went to."""
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
        """Lets an engine take part from now on, with at most so many rollouts at once; `tokens` is None where those
        cannot have more than it holds. Raises ValueError."""
        if name in self._capacity or (tokens is not None and tokens < 1):
            raise ValueError(f"an engine has a name of its own and holds at least one token, not {name!r} and {tokens}")
        if (rows is None and tokens is None) or (rows is not None and rows < 1):
            raise ValueError(f"an engine has at least one row, not {rows}")
        self._capacity[name] = np.inf if tokens is None else tokens
        self._rows[name] = np.inf if rows is None else rows
        self._used[name], self._held[name] = 0, np.zeros(RANGES)

    def learn(self, lengths: Iterable[int]) -> None:
        """Notes how many tokens rollouts had at their end that ran elsewhere, or before."""
        for tokens in lengths:
            place = self._curve.range_of(min(tokens, self._curve.longest))
            self._curve.grew(0, place)
            self._curve.end(place)

    def submit(self, rollout: str, group: str, tokens: int, *, begun: bool = False) -> None:
        """Queues a rollout that has so many tokens by now, before all others where it had begun. Raises ValueError for
        one that is known, or too long."""
        if rollout in self._known:
            raise ValueError(f"{rollout} is known already")
        self._known[rollout] = _Known(group, tokens, self._curve.range_of(tokens))
        self._curve.expect(len(self._known))
        self._members[group] += 1
        self._queue.appendleft(rollout) if begun else self._queue.append(rollout)

    def admit(self) -> list[Placed]:
        """Says which rollouts begin now, and where; in the order in which they were queued."""
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
        """Does the same where rows are the only bound, and nothing is to be forecast."""
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
        """Notes how many tokens a running rollout has by now. Raises KeyError for one that does not run."""
        known = self._running(rollout)
        place = self._curve.range_of(tokens)
        if self._queue:  # nothing is learned of caution while there is nothing to be cautious with
            self._note(-REGENERATED * (tokens - known.tokens))
        self._let_go(known)
        if place != known.place:
            self._curve.grew(known.place, place)
        known.place, known.tokens = place, tokens
        self._hold(known)

    def finish(self, rollout: str) -> None:
        """Notes that a rollout has come to its end. Raises KeyError for one that does not run."""
        known = self._running(rollout)
        self._remove(rollout)
        self._curve.end(known.place)

    def set_back(self, growth: int) -> list[str]:
        """Says which rollouts are to be taken from their engines now, so that none has to evict one while each that
        runs gains `growth` tokens: the shortest, which cost the least to compute again. They keep their tokens and are
        queued before all others; they come back when the forecast has room for them, not before."""
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
        """Forgets a rollout that will not be gone on with; its length says nothing. Raises KeyError."""
        self._remove(rollout)

    def note_evictions(self, tokens: int) -> None:
        """Notes that engines have to compute so many tokens again, for rollouts that they evicted."""
        self._note(tokens)

    def remove_engine(self, name: str) -> list[str]:
        """Takes an engine away. What ran on it is queued again, before all that has not begun; returns who that is.

        Raises KeyError."""
        del self._capacity[name], self._held[name], self._used[name], self._rows[name]
        self._home = {group: home for group, home in self._home.items() if home != name}
        back = [rollout for rollout, known in self._known.items() if known.engine == name]
        for rollout in reversed(back):
            self._known[rollout].engine = None
            self._queue.appendleft(rollout)
        return back

    def _peak(self, means: Row, variances: Row) -> Row:
        """Returns the highest point of each engine's forecast, in tokens [engines], of [engines, RANGES]."""
        return np.asarray((means + self._caution * np.sqrt(variances)).max(1))

    def _figures(self) -> tuple[Row, Row]:
        """Returns mean and variance of what a rollout holds [RANGES, RANGES]: by its range now, and ranges from now."""
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
            raise KeyError(f"{rollout} waits")
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
