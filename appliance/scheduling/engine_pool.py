"""Makes one engine of several: who runs where and when is the scheduler's to say, and a lost engine loses nothing.

What always holds. To its caller it is an `Engine`. A request runs on one engine at a time; those of one group go to one
engine while it has room. What was sampled of a request is kept, with its log-probabilities and the version of the
weights that drew it, when the request is taken from its engine: because memory is about to run out, because new weights
come in the middle of it (`push_in_flight`), or because the engine failed. It then goes on from its tokens. A turn is
handed out whole, whoever sampled its parts. An engine that fails, or that holds other weights than it was given, serves
nobody until it has taken a later push. While one engine is left, the failure of another is nobody's business; that of
the last one is raised.

What is drawn depends on the weights, the tokens and the seed. vLLM draws the next tokens of a request that goes on with
other numbers than it would have without the break; the torch engine with the same.
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
"""Requests that an engine whose memory cannot run out gets beyond its rows: it reads their prompts together."""
GROWTH = 8
"""Tokens that a request may gain between two looks at the engine's memory, at most: vLLM runs a few steps ahead."""
UNIT = 64
"""The longest conversation is taken to have a multiple of so many tokens, which whole blocks of memory are."""
LOOKS = 64
"""Steps between two questions about preemptions."""

T = TypeVar("T")


@dataclass
class _PooledRow:
    """A request that is unfinished."""

    request: GenerationRequest
    known: list[int]
    """Its tokens, up to where the engine that has it began, or to the last turn that was handed out."""
    group: str
    part: Turn | None = None
    """What was sampled of the turn under way before the request was taken from an engine."""
    engine: str | None = None
    waits: bool = False
    """For its caller."""
    over: Turn | None = None
    """The rest of its turn, which ended while new weights were waited for, and is handed out with the next step."""
    scheduled: bool = True
    """Known to the scheduler: one that waits without an engine is not."""

    def asked(self) -> GenerationRequest:
        """What an engine is asked for it now."""
        gained = len(self.known) > len(self.request.prompt)
        return replace(self.request, prompt=tuple(self.known)) if gained else self.request


class EnginePool:
    """Is an `Engine` over several, each of conversations of at most `slots` tokens. Not thread-safe."""

    def __init__(
        self,
        engines: Sequence[Engine],
        slots: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        lengths: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        """`lengths` says how many tokens earlier conversations had at their end; it is asked once, where the memory of
        an engine may run out."""
        if not engines:
            raise ValueError("a pool needs at least one engine")
        self._engines = {f"engine-{number}": engine for number, engine in enumerate(engines)}
        self._serving: list[str] = []
        """Engines that hold the weights in use, in order."""
        self._slots = slots
        self._clock = clock
        self._worked = 0.0
        """Seconds of steps with something to sample."""
        self._scheduler = Scheduler({}, SchedulerState(lengths=LengthTable(longest=-(-slots // UNIT) * UNIT)))
        self._earlier: Callable[[], Iterable[int]] | None = lengths
        """None once it was asked."""
        self._memory: dict[str, tuple[int, int]] = {}
        """Of engines whose memory may run out: its tokens, no fewer than of one conversation, and those of a block."""
        self._rows: dict[int, _PooledRow] = {}
        self._version = ""
        self._steps = 0
        self._preempted: dict[str, int] = {}
        """By engine: what it had said when it was asked last."""
        self._counts = dict.fromkeys(("set_back", "set_back_tokens", "engines_lost", "pushes_in_flight"), 0)

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
        """See `Engine`. Engines that could not be given earlier weights are tried again. Raises InfrastructureError
        when no engine takes them."""
        if self._rows:
            raise RuntimeError(f"{len(self._rows)} requests are unfinished: new weights would answer half of each")
        return self._push(weights, version)

    def push_in_flight(self, weights: Weights, version: str) -> PushProof:
        """As `push`, in the middle of requests: each goes on from its tokens under the new weights, which read all of
        them anew. A model must not change under the engines later: hand over a copy of one that is being trained."""
        for name in tuple(self._serving):
            engine = self._engines[name]
            if isinstance(engine, WorksApart):  # it has sampled more than it has said
                with suppress(InfrastructureError):  # the last one, too, is tried again
                    for turn in self._asking(name, engine.pause) or ():
                        self._rows[turn.request].over = turn
        self._take_all_back(lambda row: row.engine is not None)
        self._counts["pushes_in_flight"] += 1
        return self._push(weights, version)

    def submit(self, request: GenerationRequest) -> None:
        """Raises ValueError for a request that cannot be served, RuntimeError before the first push."""
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
        """See `Engine`. A request that waits has come to its end; the length of any other says nothing."""
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
        """Takes at least one step of every engine. Raises InfrastructureError when the last of them fails, and
        NoProbabilitiesError, after which nothing is under way: other weights can be pushed."""
        self._make_room()
        self._place()
        over = [row.over for row in self._rows.values() if row.over is not None]
        turns = [self._ended(turn) for turn in over]
        busy = any(self._engines[name].runnable for name in self._serving)
        started, failure = self._clock(), None
        try:
            for engine in (self._engines[name] for name in self._serving):
                if isinstance(engine, WorksApart):  # which works while others are waited for
                    engine.begin_step()
            for name in tuple(self._serving):
                if failure is not None and not isinstance(self._engines[name], WorksApart):
                    continue
                try:
                    turns += [self._ended(turn) for turn in self._asking(name, self._engines[name].step) or ()]
                except ModelError as error:  # what others were asked is answered first
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
        """Counts since it was made: `preemptions`, requests `set_back` before it came to one and the `set_back_tokens`
        that have to be read again for it, `engines_lost`, `pushes_in_flight`; and `engine_seconds`, in which any of
        them sampled."""
        counts = {name: float(n) for name, n in self._counts.items()}
        return {"preemptions": float(self.preemptions()), **counts, "engine_seconds": self._worked}

    def sleep(self) -> None:
        """See `Engine`."""
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
        """Gives them to every engine, whatever became of it before; nothing runs on any."""
        self._retire(self._serving)
        self._version, proof, failure = "", None, InfrastructureError("there is no engine")
        for name, found in push_to_all(self._engines, weights, version).items():
            if isinstance(found, PushProof):
                proof = found
                self._serve(name, self._engines[name].capacity)
                continue
            failure = found
            self._counts["engines_lost"] += 1
            log.warning("%s serves nobody: %s", name, failure)
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
        """Asks an engine; None when it failed, and its requests are to go on elsewhere."""
        try:
            return ask()
        except InfrastructureError as error:
            self._lose(name, error)
            return None

    def _lose(self, name: str, error: InfrastructureError) -> None:
        """Takes what ran on an engine that failed. Raises its error when there is no other."""
        self._counts["engines_lost"] += 1
        log.warning("%s is lost: %s", name, error)
        self._take_all_back(lambda row: row.engine == name)
        self._retire([name])
        self._engines[name].close()
        if not self._serving:
            raise error

    def _take_all_back(self, which: Callable[[_PooledRow], bool]) -> None:
        """Takes requests back so that they are queued in the order in which they came."""
        for number, row in reversed(self._rows.items()):
            if which(row):
                self._take_back(number, row)

    def _take_back(self, number: int, row: _PooledRow) -> None:
        """Takes a request from its engine, with what was sampled of its turn; it goes on when it is placed again."""
        assert row.engine is not None
        part = Turn(number, (), (), "withdrawn")
        with suppress(KeyError):  # of a turn that had ended and did not arrive, an engine that failed knows nothing
            part = self._engines[row.engine].withdraw(number)
        row.engine = None
        self._forget(number, row, ended=False)
        if not row.waits and row.over is None:
            row.part = joined(row.part, part)
            row.known += part.ids
            self._queue(number, row)

    def _queue(self, number: int, row: _PooledRow) -> None:
        """Queues a request that had begun."""
        self._scheduler.submit(str(number), row.group, self._held_by(row), begun=True)
        row.scheduled = True

    def _forget(self, number: int, row: _PooledRow, *, ended: bool) -> None:
        """Takes a request out of the scheduler; `ended`: it ran, and came to its end."""
        if row.scheduled:
            self._scheduler.finish(str(number)) if ended else self._scheduler.drop(str(number))
        row.scheduled = False

    def _place(self) -> None:
        """Submits what there is room for."""
        while self._serving and (placed := self._scheduler.admit()):
            for one in placed:
                if one.engine in self._serving:  # else it was lost meanwhile, and they are queued again
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
        """Books a turn, and hands it out with what was sampled of it before."""
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
        """Looks how much the engines hold whose memory may run out, and takes back what they cannot hold any longer."""
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
        """Tokens of memory that a request has, or has before anybody looks again: whole blocks where those count."""
        tokens = len(row.known) if tokens is None else tokens
        if not self._memory:
            return tokens
        block = max(one for _, one in self._memory.values())
        least = min(most for most, _ in self._memory.values())
        return min(least, -(-self._slots // UNIT) * UNIT, -(-(tokens + GROWTH) // block) * block)


def make_pool(name: str, count: int, *, rows: int, slots: int, threads: int | None = None, **chosen: Any) -> EnginePool:
    """Makes a pool of so many engines of this name, each of `rows` conversations at once, of at most `slots` tokens;
    `chosen` is the rest of `make_engine`. Raises ModelError."""
    return EnginePool(make_engines(name, count, rows=rows, slots=slots, threads=threads, **chosen), slots)
