"""Combines several engines into one: the scheduler decides placement, and a lost engine loses no tokens.

Invariants: callers see an `Engine`. A request runs on one engine at a time; requests of a group share an engine while
it has room. When a request is withdrawn from its engine, because memory runs out, new weights arrive midway
(`push_in_flight`) or the engine failed, its tokens are kept with log-probabilities and weight versions, and it
continues from them. A turn is returned whole, even if several engines sampled it. An engine that fails, or has other
weights than pushed, is unused until a later push succeeds. The failure of an engine is hidden while another is left;
that of the last one is raised.

Draws depend on weights, tokens and seed. After a break, vLLM continues with other random numbers than without it; the
torch engine with the same.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from appliance.inference.engine import (
    Engine,
    EngineCapacity,
    GenerationRequest,
    ModelError,
    NoProbabilitiesError,
    PushProof,
    Turn,
    WorksApart,
)
from appliance.inference.engines import make_engines
from appliance.scheduling.joining import joined
from appliance.scheduling.lengths import LengthTable
from appliance.scheduling.pushing import push_to_all
from appliance.scheduling.scheduler import Scheduler, SchedulerState
from runtime.errors import InfrastructureError

if TYPE_CHECKING:
    from appliance.inference.engine import Weights

log = logging.getLogger(__name__)
AHEAD = 64
"""Requests beyond the rows of an engine without memory limit, which reads their prompts in batches."""
GROWTH = 8
"""Maximum tokens that a request gains between two memory checks: vLLM runs a few steps ahead."""
UNIT = 64
"""Rounding of the longest conversation in tokens, a multiple of memory blocks."""
LOOKS = 64
"""Steps between two preemption counts."""

T = TypeVar("T")


@dataclass
class _PooledRow:
    """Unfinished generation request in the pool."""

    request: GenerationRequest
    known: list[int]
    """Its tokens, up to where its engine began, or to the last returned turn."""
    group: str
    part: Turn | None = None
    """Tokens of the current turn sampled before the request left an engine."""
    engine: str | None = None
    waits: bool = False
    """True while waiting for its caller."""
    over: Turn | None = None
    """Rest of a turn that ended while new weights were pushed; returned with the next step."""
    scheduled: bool = True
    """True if known to the scheduler; a waiting request without an engine is not."""

    def asked(self) -> GenerationRequest:
        """Returns the generation request to submit to an engine now, which continues from the tokens so far."""
        gained = len(self.known) - len(self.request.prompt)
        if not gained:
            return self.request
        rule = self.request.rule if self.part is not None and len(self.part.ids) == gained else None  # of one turn
        rule = rule and replace(rule, drawn=gained)
        return replace(self.request, prompt=tuple(self.known), rule=rule)


class EnginePool:
    """`Engine` that distributes requests over several engines, with conversations of at most `slots` tokens. Not
    thread-safe."""

    def __init__(
        self,
        engines: Sequence[Engine],
        slots: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        lengths: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        """Creates a pool of these engines. `lengths` returns final token counts of earlier conversations; called once,
        if an engine's memory may run out."""
        if not engines:
            raise ValueError("a pool needs at least one engine")
        self._engines = {f"engine-{number}": engine for number, engine in enumerate(engines)}
        self._serving: list[str] = []
        """Engines with the current weights, in order."""
        self._slots = slots
        self._clock = clock
        self._worked = 0.0
        """Seconds of steps that sampled."""
        self._scheduler = Scheduler({}, SchedulerState(lengths=LengthTable(longest=-(-slots // UNIT) * UNIT)))
        self._earlier: Callable[[], Iterable[int]] | None = lengths
        """None after its call."""
        self._memory: dict[str, tuple[int, int]] = {}
        """Engines whose memory may run out: its tokens, at least one conversation, and the block size."""
        self._rows: dict[int, _PooledRow] = {}
        self._version = ""
        self._steps = 0
        self._preempted: dict[str, int] = {}
        """Last preemption count by engine."""
        self._counts = dict.fromkeys(("set_back", "set_back_tokens", "engines_lost", "pushes_in_flight"), 0)

    @property
    def restricts(self) -> bool:
        """True if all engines can restrict their draws."""
        return all(getattr(one, "restricts", False) for one in self._engines.values())

    @property
    def version(self) -> str:
        return self._version

    @property
    def tokens_sampled(self) -> int:
        return sum(engine.tokens_sampled for engine in self._engines.values())

    @property
    def unfinished(self) -> int:
        return len(self._rows)

    @property
    def runnable(self) -> int:
        self._place()
        over = sum(row.over is not None for row in self._rows.values())
        return over + sum(self._engines[name].runnable for name in self._serving)

    @property
    def capacity(self) -> EngineCapacity:
        found = [self._engines[name].capacity for name in self._serving or self._engines]
        tokens = [one.tokens for one in found if one.tokens is not None]
        return EngineCapacity(
            sum(one.rows for one in found),
            sum(tokens) if len(tokens) == len(found) else None,
            max(one.block for one in found),
        )

    def push(self, weights: Weights, version: str) -> PushProof:
        """Loads new weights into all engines; see `Engine`. Retries engines that failed earlier pushes. Raises
        InfrastructureError if no engine accepts the weights."""
        if self._rows:
            raise RuntimeError(f"{len(self._rows)} requests are unfinished: new weights would answer half of each")
        return self._push(weights, version)

    def push_in_flight(self, weights: Weights, version: str) -> PushProof:
        """Loads new weights into all engines while requests run: each continues from its tokens under the new weights,
        which read them again. Pass a copy of a model in training: engines require unchanging weights."""
        for name in tuple(self._serving):
            engine = self._engines[name]
            if isinstance(engine, WorksApart):  # it sampled more than it has reported
                with suppress(InfrastructureError):  # the last one is retried too
                    for turn in self._asking(name, engine.pause) or ():
                        self._rows[turn.request].over = turn
        self._take_all_back(lambda row: row.engine is not None)
        self._counts["pushes_in_flight"] += 1
        return self._push(weights, version)

    def submit(self, request: GenerationRequest) -> None:
        """Queues a generation request. Raises ValueError for an unservable one, RuntimeError before the first push."""
        if not self._version:
            raise RuntimeError("no weights are loaded")
        if request.id in self._rows:
            raise ValueError(f"request {request.id} is unfinished already")
        request.require_fit(self._slots)
        row = _PooledRow(request, list(request.prompt), request.group or f"request {request.id}")
        self._rows[request.id] = row
        self._scheduler.submit(str(request.id), row.group, self._held_by(row))
        self._place()

    def resume(self, request: int, forced: Sequence[int]) -> None:
        row = self._rows.get(request)
        if row is None or not row.waits:
            raise ValueError(f"request {request} does not wait")
        if len(row.known) + len(forced) >= row.request.max_tokens:
            raise ValueError(f"{len(forced)} tokens leave no room in the budget of request {request}")
        if row.engine is not None:
            engine = row.engine
            self._asking(engine, lambda: self._engines[engine].resume(request, forced))
        row.known += forced
        row.waits = False
        if row.engine is not None:
            self._scheduler.grow(str(request), self._held_by(row))
        else:
            self._queue(request, row)

    def finish(self, request: int) -> None:
        """Ends a request and frees its row; see `Engine`. Only a waiting request has reached its end; other lengths are
        not recorded."""
        row = self._rows.pop(request, None)
        if row is None:
            return
        engine, row.engine = row.engine, None
        self._forget(request, row, ended=row.waits and engine is not None)
        if engine is not None:
            self._asking(engine, lambda: self._engines[engine].finish(request))

    def withdraw(self, request: int) -> Turn:
        row = self._rows[request]
        if row.engine is not None:
            self._take_back(request, row)
        del self._rows[request]
        self._forget(request, row, ended=False)
        return joined(row.part, replace(row.over or Turn(request, (), (), "withdrawn"), ended="withdrawn"))

    def under_way(self, request: int) -> Turn:
        row = self._rows.get(request)
        if row is None or row.waits:
            return Turn(request, (), (), "withdrawn")
        part = replace(row.over or Turn(request, (), (), "withdrawn"), ended="withdrawn")
        if row.engine is not None:
            part = self._engines[row.engine].under_way(request)
        return joined(row.part, part)

    def step(self) -> list[Turn]:
        """Takes at least one decoding step of every engine and returns the turns that ended. Raises InfrastructureError
        if the last engine fails, and NoProbabilitiesError, after which no request is left and other weights can be
        pushed."""
        self._make_room()
        self._place()
        over = [row.over for row in self._rows.values() if row.over is not None]
        turns = [self._ended(turn) for turn in over]
        busy = any(self._engines[name].runnable for name in self._serving)
        started, failure = self._clock(), None
        try:
            for engine in (self._engines[name] for name in self._serving):
                if isinstance(engine, WorksApart):  # it works while others are awaited
                    engine.begin_step()
            for name in tuple(self._serving):
                if failure is not None and not isinstance(self._engines[name], WorksApart):
                    continue
                try:
                    turns += [self._ended(turn) for turn in self._asking(name, self._engines[name].step) or ()]
                except ModelError as error:  # collect the other engines' answers first
                    failure = failure or error
        finally:
            self._worked += self._clock() - started if busy else 0.0
        if isinstance(failure, NoProbabilitiesError):
            for number in tuple(self._rows):
                self.withdraw(number)
        if failure is not None:
            raise failure
        return turns

    def score(self, conversations: Sequence[Sequence[int]], temperature: float = 1.0) -> list[tuple[float, ...]]:
        while self._serving:
            name = self._serving[0]
            scores = self._asking(name, partial(self._engines[name].score, conversations, temperature))
            if scores is not None:
                return scores
        raise RuntimeError("no weights are loaded")

    def lengths(self) -> dict[int, int]:
        found = {number: len(row.known) for number, row in self._rows.items()}
        for name in self._serving:
            found.update(self._engines[name].lengths())
        return found

    def preemptions(self) -> int:
        return sum(engine.preemptions() for engine in self._engines.values())

    def figures(self) -> dict[str, float]:
        """Returns the pool's counts since creation: `preemptions`, requests `set_back` to avoid one with their
        `set_back_tokens` to read again, `engines_lost`, `pushes_in_flight`; and `engine_seconds` of sampling by any
        engine."""
        counts = {name: float(n) for name, n in self._counts.items()}
        return {"preemptions": float(self.preemptions()), **counts, "engine_seconds": self._worked}

    def sleep(self) -> None:
        """Frees the memory of all engines for training; see `Engine`."""
        for name in tuple(self._serving):
            self._asking(name, self._engines[name].sleep)

    def close(self) -> None:
        for engine in self._engines.values():
            engine.close()
        for number, row in self._rows.items():
            row.engine = None
            self._forget(number, row, ended=False)
        self._rows, self._version = {}, ""
        self._retire(self._serving)

    def _push(self, weights: Weights, version: str) -> PushProof:
        """Loads new weights into every engine, including failed ones; no request runs."""
        self._retire(self._serving)
        self._version, proof, failure = "", None, InfrastructureError("the pool has no engine")
        for name, found in push_to_all(self._engines, weights, version).items():
            if isinstance(found, PushProof):
                proof = found
                self._serve(name, self._engines[name].capacity)
                continue
            failure = found
            self._counts["engines_lost"] += 1
            log.warning("%s is unused: %s", name, failure)
            self._engines[name].close()
        if proof is None:
            raise failure
        self._version = version
        return proof

    def _serve(self, name: str, capacity: EngineCapacity) -> None:
        whole = -(-(self._slots + GROWTH) // capacity.block) * capacity.block
        if capacity.tokens is None or capacity.tokens >= capacity.rows * whole:
            self._scheduler.add_engine(name, None, capacity.rows + AHEAD)
        else:
            self._scheduler.add_engine(name, capacity.tokens, capacity.rows)
            self._memory[name] = capacity.tokens, capacity.block
            if self._earlier is not None:
                self._scheduler.learn(self._earlier())
                self._earlier = None
        self._serving.append(name)

    def _retire(self, names: Sequence[str]) -> None:
        for name in tuple(names):
            self._serving.remove(name)
            self._memory.pop(name, None)
            self._scheduler.remove_engine(name)

    def _asking(self, name: str, ask: Callable[[], T]) -> T | None:
        """Calls an engine and returns its answer; None if it failed, after queuing its requests for other engines."""
        try:
            return ask()
        except InfrastructureError as error:
            self._lose(name, error)
            return None

    def _lose(self, name: str, error: InfrastructureError) -> None:
        """Withdraws the requests of a failed engine, which others continue. Raises its error if no other is left."""
        self._counts["engines_lost"] += 1
        log.warning("%s is lost: %s", name, error)
        self._take_all_back(lambda row: row.engine == name)
        self._retire([name])
        self._engines[name].close()
        if not self._serving:
            raise error

    def _take_all_back(self, which: Callable[[_PooledRow], bool]) -> None:
        """Withdraws the selected requests from their engines, and queues them in order of arrival."""
        for number, row in reversed(self._rows.items()):
            if which(row):
                self._take_back(number, row)

    def _take_back(self, number: int, row: _PooledRow) -> None:
        """Withdraws a request from its engine, with its sampled tokens; it continues when placed again."""
        assert row.engine is not None
        part = Turn(number, (), (), "withdrawn")
        with suppress(KeyError):  # a failed engine does not know a turn that ended but never arrived
            part = self._engines[row.engine].withdraw(number)
        row.engine = None
        self._forget(number, row, ended=False)
        if not row.waits and row.over is None:
            row.part = joined(row.part, part)
            row.known += part.ids
            self._queue(number, row)

    def _queue(self, number: int, row: _PooledRow) -> None:
        """Queues a request that an engine had begun."""
        self._scheduler.submit(str(number), row.group, self._held_by(row), begun=True)
        row.scheduled = True

    def _forget(self, number: int, row: _PooledRow, *, ended: bool) -> None:
        """Removes a request from the scheduler; `ended`: it ran to its end."""
        if row.scheduled:
            self._scheduler.finish(str(number)) if ended else self._scheduler.drop(str(number))
        row.scheduled = False

    def _place(self) -> None:
        """Submits queued requests to engines where they fit."""
        while self._serving and (placed := self._scheduler.admit()):
            for one in placed:
                if one.engine in self._serving:  # else it was lost, and they are queued again
                    self._begin(int(one.rollout), one.engine)

    def _begin(self, number: int, name: str) -> None:
        row, engine = self._rows[number], self._engines[name]
        row.engine = name
        try:
            self._asking(name, lambda: engine.submit(row.asked()))
        except ValueError:
            del self._rows[number]
            self._forget(number, row, ended=False)
            raise

    def _ended(self, turn: Turn) -> Turn:
        """Records a turn that ended, and returns it joined with its earlier parts."""
        row = self._rows[turn.request]
        row.known += turn.ids
        whole, row.part, row.over, row.waits = joined(row.part, turn), None, None, True
        if row.engine is not None:
            self._scheduler.grow(str(turn.request), self._held_by(row))
        if turn.ended == "length":
            del self._rows[turn.request]
            self._forget(turn.request, row, ended=row.engine is not None)
        return whole

    def _make_room(self) -> None:
        """Updates the memory use of engines that may run out, and withdraws requests that do not fit any more."""
        if not self._memory:
            return
        self._steps += 1
        for name in self._memory:
            lengths = self._engines[name].lengths()
            mine = {number: row for number, row in self._rows.items() if row.engine == name}
            for number, row in mine.items():
                self._scheduler.grow(str(number), self._held_by(row, lengths.get(number)))
            if self._steps % LOOKS == 0 and mine:
                counted = self._engines[name].preemptions()
                new = counted - self._preempted.get(name, 0)
                self._preempted[name] = counted
                self._scheduler.note_evictions(new * sum(lengths.values()) // len(mine))
        for number in map(int, reversed(self._scheduler.set_back(0))):
            row = self._rows[number]
            self._counts["set_back"] += 1
            self._take_back(number, row)
            self._counts["set_back_tokens"] += len(row.known)

    def _held_by(self, row: _PooledRow, tokens: int | None = None) -> int:
        """Returns the KV cache memory of a request until the next check, in tokens, in whole blocks where needed."""
        tokens = len(row.known) if tokens is None else tokens
        if not self._memory:
            return tokens
        block = max(one for _, one in self._memory.values())
        least = min(most for most, _ in self._memory.values())
        return min(least, -(-self._slots // UNIT) * UNIT, -(-(tokens + GROWTH) // block) * block)


def make_pool(name: str, count: int, *, rows: int, slots: int, threads: int | None = None, **chosen: Any) -> EnginePool:
    """Creates a pool of `count` engines of this name, each with `rows` concurrent conversations of at most `slots`
    tokens; `chosen` are more arguments of `make_engine`. Raises ModelError."""
    return EnginePool(make_engines(name, count, rows=rows, slots=slots, threads=threads, **chosen), slots)
