"""Assigns items to workers, collects their replies, and attributes each missing reply.

Invariants: every item of every batch is settled once; a slow item delays no other for longer than
`zygote.SLOW_SECONDS`: items behind it move to another worker, and it runs at lower priority. A worker has imported what
its items need before their clock starts. Everything runs on the service's thread.

Attribution of an item without a verdict. The item itself is to blame, deterministically, if it
    - used all of its CPU time, ran out of memory in a worker that had decided nothing else, or is nested too deeply: a
      `fail` that says so. A hang never passes and never escapes a verdict.
Any other loss (killed from outside, starved of CPU, broken) is retried once, alone, in a fresh worker; if that is lost
too, and not by the item's own doing, the verdict is `infra_error`. Items around a lost one keep their verdicts or are
requeued.
"""

from __future__ import annotations

import json
import math
import os
import signal
import struct
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from runtime.framing import FrameError
from verifiers.boxes.frames import Frames, encode
from verifiers.boxes.own_time import LAST_PATIENCE, PATIENCE
from verifiers.contract.protocols import ProposalReply
from verifiers.contract.verdict import Ground, SpecProblem, Verdict
from verifiers.registry import package_of, packages
from verifiers.workers import messages
from verifiers.workers.batches import ItemResult, WaitingBatches, WorkBatch, WorkItem, broken, failed
from verifiers.workers.channel import Channel
from verifiers.workers.worker_process import OUT_OF_MEMORY

CHUNK = 64
CHUNK_CHARS = 200_000
LOW = 16
"""Fewest items that a worker may have queued before it gets more."""
SLOW_WORKERS = 16
"""Extra workers that may be busy with slow items, beside the normal ones."""
SLOW_OF_A_BATCH = 6
"""Slow items at which the rest of their batch waits, to the benefit of other batches."""
MAX_REQUEUES = 4
GRACE_SECONDS = 2.0
"""Seconds past the moment at which the zygote should have killed a worker."""
END_SECONDS = 60.0
"""Time limit for the zygote to obey a KILL, in seconds; long because a loaded machine schedules it late."""
LOAD_SECONDS = 600.0
"""Time limit for the zygote to import a package, in seconds; counts towards no item. Takes two CPU seconds, more wall
clock on a loaded machine. A dead zygote is noticed immediately."""
READ = 1 << 20


class WorkersLost(Exception):
    """The zygote, from which workers are forked, is gone."""


@dataclass(eq=False)
class WorkerSlot:
    number: int
    items: dict[int, WorkItem] = field(default_factory=dict)
    """Unanswered items by index, in order."""
    given: int = 0
    """Items assigned over its life; the next index."""
    answered: int = 0
    slow: bool = False
    """True if it is busy with a slow item or is ending: it gets no more items."""
    seconds: float = 0.0
    gives_way: bool = True
    """False on an item's last attempt."""
    last_reply: float = 0.0
    killed: bool = False
    frames: Frames = field(default_factory=Frames)

    @property
    def deadline(self) -> float:
        """Moment at which the worker's reply is overdue, as time.monotonic()."""
        patience = PATIENCE if self.gives_way else LAST_PATIENCE
        return self.last_reply + (END_SECONDS if self.killed else patience * self.seconds + GRACE_SECONDS)


class WorkerScheduler:
    def __init__(self, channel: Channel, workers: int, memory_mib: int, waiting: WaitingBatches) -> None:
        self._channel, self._workers, self._memory_mib, self._waiting = channel, workers, memory_mib, waiting
        self._alone: deque[WorkItem] = deque()
        """Items to decide in a worker of their own."""
        self._slots: dict[int, WorkerSlot] = {}
        self._numbers = 0
        self._reader = messages.message_reader()
        self._unsent = bytearray()
        self._oom = 0
        self._has: set[str] = set()
        """Packages that the zygote has imported or was asked to import."""
        self._loading: dict[str, float] = {}
        """Packages not imported yet, with their deadlines."""
        self.requests, self.replies = channel.descriptors

    @property
    def may_give_way(self) -> bool:
        """True if only slow items run and none is on its last attempt: a last attempt needs its full share of CPU."""
        at_work = [worker for worker in self._slots.values() if worker.items]
        return bool(at_work) and not self._waiting and all(worker.slow and worker.gives_way for worker in at_work)

    @property
    def wants_to_write(self) -> bool:
        return bool(self._unsent)

    @property
    def deadline(self) -> float | None:
        """Next moment at which a worker's reply or a package's import is overdue; None if nothing is awaited."""
        moments = [worker.deadline for worker in self._slots.values() if worker.items]
        return min([*moments, *self._loading.values()], default=None)

    def load(self, names: Iterable[str] | None = None) -> None:
        """Makes the zygote import packages (default: all), once. Existing workers end after their current items."""
        wanted = [package for package in (packages() if names is None else names) if package not in self._has]
        if not wanted:
            return
        for package in wanted:
            self._has.add(package)
            self._loading[package] = time.monotonic() + LOAD_SECONDS
            self._unsent += messages.pack(
                0, messages.MessageKind.LOAD, messages.PACKAGE.pack(packages().index(package))
            )
        for worker in self._slots.values():
            worker.slow = True
            if not worker.items and not worker.killed:
                self._end(worker)

    def assign(self) -> None:
        """Assigns waiting items to workers, starting new ones if allowed; packages that items need are loaded first."""
        if self._loading:
            return
        while self._alone and len(self._slots) < self._workers + SLOW_WORKERS:
            item = self._alone.popleft()
            if not item.settled:
                slot = self._new_slot()
                slot.slow = True
                # After running out of memory, both attempts together take no longer than one timeout.
                self._send(slot, [item], seconds=max(1.0, item.batch.seconds - item.spent), gives_way=False)
        while self._waiting:
            working = [worker for worker in self._slots.values() if not worker.slow]
            worker = min(working, key=lambda one: len(one.items), default=None)
            if worker is None or (worker.items and len(working) < self._workers):
                if len(self._slots) >= self._workers + SLOW_WORKERS:
                    return
                worker = self._new_slot()
            elif len(worker.items) >= LOW:
                return
            share = -(-len(self._waiting) // self._workers)
            items = self._waiting.take(min(CHUNK, share), CHUNK_CHARS, self._held_up())
            if not items:
                return
            missing = {package for item in items if (package := package_of(item.pair[0]))} - self._has
            if missing:
                self._waiting.put_back(items)
                self.load(sorted(missing))
                return
            if worker.items and items[0].batch.seconds != worker.seconds:  # one clock at a time
                self._waiting.put_back(items)
                return
            self._send(worker, items, seconds=items[0].batch.seconds, gives_way=True)

    def _held_up(self) -> set[WorkBatch]:
        """Returns the batches with too many slow items, whose other items must wait."""
        slow = Counter(
            next(iter(worker.items.values())).batch for worker in self._slots.values() if worker.slow and worker.items
        )
        return {batch for batch, count in slow.items() if count >= SLOW_OF_A_BATCH}

    def flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self.requests, self._unsent)]
        except BlockingIOError:
            return
        except OSError as error:
            raise WorkersLost(str(error)) from error

    def receive(self) -> None:
        """Reads and handles the pending replies of the zygote. Raises WorkersLost."""
        try:
            data = os.read(self.replies, READ)
        except BlockingIOError:
            return
        except OSError as error:
            raise WorkersLost(str(error)) from error
        if not data:
            raise WorkersLost("it exited")
        try:
            for (_, number, kind), body in self._reader.feed(data):
                self._receive(number, kind, body)
        except (ValueError, KeyError, IndexError, TypeError, FrameError, struct.error) as error:
            raise WorkersLost(f"protocol error: {type(error).__name__}") from error

    def watch(self) -> None:
        """Kills overdue workers. Raises WorkersLost if the zygote does not obey."""
        now = time.monotonic()
        if self._loading and now > min(self._loading.values()):
            raise WorkersLost("it did not import a package in time")
        for worker in list(self._slots.values()):
            if worker.items and now > worker.deadline:
                if worker.killed:
                    raise WorkersLost("it did not kill a worker in time")
                self._end(worker)
                worker.last_reply = now

    def abandon(self, why: str) -> None:
        """Gives up a dead zygote: items in progress are retried once, alone; others by any worker."""
        out_of_memory = "memory" in why
        for worker in self._slots.values():
            items = list(worker.items.values())
            if items and (worker.slow or out_of_memory):
                took = max(0.0, time.monotonic() - worker.last_reply)
                self._lost(items[0], "died", 0.0, why, took=took)
                items = items[1:]
            self._requeue(items, why)
        self._waiting.put_back(list(self._alone))
        self._slots.clear()
        self._alone.clear()

    def _new_slot(self) -> WorkerSlot:
        self._numbers += 1
        worker = self._slots[self._numbers] = WorkerSlot(self._numbers)
        return worker

    def _send(self, worker: WorkerSlot, items: list[WorkItem], *, seconds: float, gives_way: bool) -> None:
        if not worker.items:
            worker.last_reply = time.monotonic()
        worker.seconds, worker.gives_way = seconds, gives_way
        first = worker.given
        for item in items:
            worker.items[worker.given] = item
            worker.given += 1
        texts = [(item.pair[0].model_dump_json(), item.pair[1]) for item in items]
        frame = encode({"seconds": seconds, "first": first, "items": texts, "way": items[0].batch.way})
        self._unsent += messages.pack(
            worker.number, messages.MessageKind.ITEMS, messages.CLOCK.pack(seconds, gives_way) + frame
        )

    def _end(self, worker: WorkerSlot) -> None:
        worker.slow = worker.killed = True
        self._unsent += messages.pack(worker.number, messages.MessageKind.KILL)

    # replies

    def _receive(self, number: int, kind: int, body: bytes) -> None:
        if kind == messages.MessageKind.LOADED:
            del self._loading[packages()[messages.PACKAGE.unpack(body)[0]]]
            return
        worker = self._slots.get(number)
        if worker is None:
            return
        match kind:
            case messages.MessageKind.REPLIES:
                worker.last_reply = time.monotonic()
                try:
                    worker.frames.feed(body)
                    while (answer := worker.frames.next()) is not None:
                        self._answer(worker, answer)
                except (ValueError, KeyError, TypeError, FrameError):
                    self._end(worker)  # its unanswered items are attributed and requeued at its end
                if worker.slow and not worker.items and not worker.killed:
                    self._end(worker)
            case messages.MessageKind.SLOW:
                self._is_slow(worker, messages.INDEX.unpack(body)[0])
            case messages.MessageKind.ENDED:
                del self._slots[number]
                self._has_ended(worker, json.loads(body))

    def _answer(self, worker: WorkerSlot, answer: dict[str, Any]) -> None:
        item = worker.items.get(answer["index"])
        if item is None:
            return
        result: ItemResult | None = None
        if answer["kind"] == "verdict":
            result = Verdict.model_validate({**answer["verdict"], "isolation": self._channel.isolation})
        elif answer["kind"] == "proposal":
            result = ProposalReply.model_validate(answer["proposal"])
        elif answer["kind"] == "spec_problem":
            result = SpecProblem(message=answer["message"][:1000], hint=answer["hint"][:1000])
        if isinstance(result, ProposalReply) is not bool(item.batch.way) and not isinstance(result, SpecProblem | None):
            raise ValueError("unexpected kind of answer")
        took = float(answer["seconds"]) if answer["kind"] in ("memory", "recursion") else 0.0
        if not 0 <= took < math.inf:
            raise ValueError("invalid duration")
        del worker.items[answer["index"]]
        worker.answered += 1
        match answer["kind"]:
            case _ if result is not None:
                item.batch.settle(item, result)
            case "memory":
                others = list(worker.items.values())
                worker.items.clear()
                self._end(worker)
                self._requeue(others, "its worker ran out of memory")
                self._lost(item, "memory", 0.0, "out of memory", took=took, fresh=worker.answered == 1)
            case "recursion":
                reason = "too deeply nested to decide"
                self._settle(item, failed(item, Ground.MEMORY, reason, took))
            case _:
                self._settle(item, broken(item, str(answer["reason"])[:1000]))

    def _is_slow(self, worker: WorkerSlot, index: int) -> None:
        if index not in worker.items:
            return
        worker.slow = True
        behind = [worker.items.pop(other) for other in list(worker.items) if other > index]
        if behind:
            self._unsent += messages.pack(worker.number, messages.MessageKind.HOLD, messages.INDEX.pack(index))
            self._waiting.put_back(behind)

    def _has_ended(self, worker: WorkerSlot, ended: dict[str, Any]) -> None:
        item = worker.items.pop(ended["item"], None)
        others, status = list(worker.items.values()), int(ended["status"])
        if item is None and others and ended["why"] == "asked":  # it was silent for too long
            item, others = others[0], others[1:]
        why = _how(status)
        if item is not None:
            kind = ended["why"]
            if kind == "died" and status == -signal.SIGXCPU:
                kind = "cpu"
            elif kind == "died" and status == OUT_OF_MEMORY:
                kind = "memory"
            elif kind == "died" and status == -signal.SIGKILL and self._channel.out_of_memory() > self._oom:
                self._oom = self._channel.out_of_memory()
                kind = "memory"
            self._lost(item, kind, float(ended["cpu"]), why, took=float(ended["took"]), fresh=worker.answered == 0)
        self._requeue(others, why)

    # attribution

    def _lost(self, item: WorkItem, kind: str, cpu: float, why: str, *, took: float, fresh: bool = False) -> None:
        """Decides if an item lost with its worker was itself to blame; settles or retries it. `took`: seconds since its
        worker started it."""
        seconds = item.batch.seconds
        own = kind == "cpu" or (kind == "memory" and (fresh or item.attempts))
        if own or (kind == "timeout" and cpu >= seconds - item.spent):
            self._settle(item, self._expensive(item, kind, took))
        elif item.attempts:
            text = f"no verdict after two attempts: {'no answer in time' if kind in ('timeout', 'asked') else why}"
            self._settle(item, broken(item, text, took))
        else:
            item.attempts += 1
            if kind == "memory":
                item.spent += seconds / 2
            self._alone.append(item)

    def _requeue(self, items: list[WorkItem], why: str) -> None:
        """Requeues items that were lost with another one; after `MAX_REQUEUES` times, they get `infra_error`."""
        back = []
        for item in items:
            item.requeued += 1
            if item.requeued <= MAX_REQUEUES:
                back.append(item)
            else:
                self._settle(item, broken(item, f"no verdict: {why}, repeatedly"))
        self._waiting.put_back(back)

    def _expensive(self, item: WorkItem, kind: str, took: float) -> Verdict:
        if kind == "memory":
            return failed(item, Ground.MEMORY, f"too expensive to decide within {self._memory_mib} MiB", took)
        return failed(item, Ground.TIMEOUT, f"too expensive to decide within {item.batch.seconds:g} s", took)

    def _settle(self, item: WorkItem, verdict: Verdict) -> None:
        item.batch.settle(item, verdict.model_copy(update={"isolation": self._channel.isolation}))


def _how(status: int) -> str:
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
    return f"the worker died with {how}"
