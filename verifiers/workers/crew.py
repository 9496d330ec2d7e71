"""Which hand gets which items, what it says of them, and who is to blame for what it leaves unsaid.

What always holds: every item of every job is settled once; an item that takes long holds up no other for longer than
`worker.SLOW_SECONDS`: what waits behind it goes to another hand, and it gives way to that. A hand has imported what its
items need before their clock begins. All of it runs on one thread, that of the service.

Who is to blame when an item has no verdict. Its own doing, by its own text and the same way every time, is
    - out of time while it computed, out of memory in a hand that had judged nothing else, or too deep to walk through:
      a `fail` that says so. A hang is never a pass, nor a way out.
Anything else (killed by somebody, no processor, broken) is judged once more, alone, in a fresh hand; if that is lost
too, and not by its own doing, it is `infra_error`. A spec that cannot be used is that as well: it says nothing about
the submission. Items around a lost one keep their verdicts, or are given to others.
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

from verifiers.registry import DECIDE, package_of
from verifiers.verdict import Ground, Verdict
from verifiers.workers.channel import Channel
from verifiers.workers.frames import FrameError, Frames, encode
from verifiers.workers.hand import OUT_OF_MEMORY
from verifiers.workers.jobs import Item, Job, Waiting, broken, failed, unusable
from verifiers.workers.lines import BUSY_SHARE, CLOCK, INDEX, PACKAGE, PATIENCE, Kind, Line, LineError, Lines, pack

CHUNK = 64
CHUNK_CHARS = 200_000
LOW = 16
"""A hand with fewer items than this is given more."""
SLOW_HANDS = 16
"""Beside those that work, so many may be busy with an item that takes long."""
SLOW_OF_A_JOB = 6
"""A job with so many of them waits with the rest, so that others need not."""
PASSED_ON = 4
GRACE_SECONDS = 2.0
"""After the zygote should have ended a hand."""
LOAD_SECONDS = 60.0
"""For the zygote to import what decides, which no item's clock counts."""
READ = 1 << 20


class CrewLost(Exception):
    """The zygote is gone."""


@dataclass(eq=False)
class Hand:
    number: int
    items: dict[int, Item] = field(default_factory=dict)
    """Given and not answered, by index, in order."""
    given: int = 0
    """Over its life; the next index."""
    answered: int = 0
    slow: bool = False
    """Busy with an item that takes long, or on its way out: it gets nothing more."""
    seconds: float = 0.0
    heard: float = 0.0
    killed: bool = False
    frames: Frames = field(default_factory=Frames)


class Crew:
    def __init__(self, channel: Channel, workers: int, memory_mib: int, waiting: Waiting) -> None:
        self._channel, self._workers, self._memory_mib, self._waiting = channel, workers, memory_mib, waiting
        self._again: deque[Item] = deque()
        """To be judged alone."""
        self._hands: dict[int, Hand] = {}
        self._numbers = 0
        self._lines = Lines()
        self._unsent = bytearray()
        self._oom = 0
        self._has: set[str] = set()
        """Packages that the zygote has loaded, or is told to."""
        self._loading: dict[str, float] = {}
        """Those that it has not yet loaded, and when it should have."""
        self.requests, self.replies = channel.descriptors

    @property
    def busy(self) -> bool:
        return bool(self._again) or any(hand.items for hand in self._hands.values())

    @property
    def only_slow(self) -> bool:
        """Whether nothing is under way but what takes long."""
        at_work = [hand for hand in self._hands.values() if hand.items]
        return bool(at_work) and not self._waiting and all(hand.slow for hand in at_work)

    @property
    def wants_to_write(self) -> bool:
        return bool(self._unsent)

    @property
    def deadline(self) -> float | None:
        """Moment at which a hand should long have been heard of."""
        moments = [hand.heard + PATIENCE * hand.seconds + GRACE_SECONDS for hand in self._hands.values() if hand.items]
        return min([*moments, *self._loading.values()], default=None)

    def load(self, packages: Iterable[str] = DECIDE) -> None:
        """Has them imported, once. Hands that have not got them end with what they were given."""
        wanted = [package for package in packages if package not in self._has]
        if not wanted:
            return
        for package in wanted:
            self._has.add(package)
            self._loading[package] = time.monotonic() + LOAD_SECONDS
            self._unsent += pack(0, Kind.LOAD, PACKAGE.pack(DECIDE.index(package)))
        for hand in self._hands.values():
            hand.slow = True
            if not hand.items and not hand.killed:
                self._end(hand)

    def assign(self) -> None:
        """Gives out what waits."""
        if self._loading:
            return
        while self._again and len(self._hands) < self._workers + SLOW_HANDS:
            item = self._again.popleft()
            if not item.judged:
                alone = self._new_hand()
                alone.slow = True
                self._give(alone, [item], seconds=self._time_left(item), gives_way=False)
        while self._waiting:
            working = [hand for hand in self._hands.values() if not hand.slow]
            hand = min(working, key=lambda one: len(one.items), default=None)
            if hand is None or (hand.items and len(working) < self._workers):
                if len(self._hands) >= self._workers + SLOW_HANDS:
                    return
                hand = self._new_hand()
            elif len(hand.items) >= LOW:
                return
            share = -(-len(self._waiting) // self._workers)
            items = self._waiting.take(min(CHUNK, share), CHUNK_CHARS, self._held_up())
            if not items:
                return
            missing = {package for item in items if (package := package_of(item.pair[0]))} - self._has
            if missing:
                self._waiting.back(items)
                self.load(sorted(missing))
                return
            if hand.items and items[0].job.seconds != hand.seconds:  # one clock at a time
                self._waiting.back(items)
                return
            self._give(hand, items, seconds=items[0].job.seconds, gives_way=True)

    def _held_up(self) -> set[Job]:
        """Jobs with too many items that take long."""
        slow = Counter(next(iter(hand.items.values())).job for hand in self._hands.values() if hand.slow and hand.items)
        return {job for job, count in slow.items() if count >= SLOW_OF_A_JOB}

    def flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self.requests, self._unsent)]
        except BlockingIOError:
            return
        except OSError as error:
            raise CrewLost(str(error)) from error

    def hear(self) -> None:
        """Takes what has come. Raises CrewLost."""
        try:
            data = os.read(self.replies, READ)
        except BlockingIOError:
            return
        except OSError as error:
            raise CrewLost(str(error)) from error
        if not data:
            raise CrewLost("it is gone")
        try:
            for line in self._lines.feed(data):
                self._take(line)
        except (ValueError, KeyError, IndexError, TypeError, LineError, struct.error) as error:
            raise CrewLost(f"it does not speak this protocol: {type(error).__name__}") from error

    def watch(self) -> None:
        """Ends what is overdue. Raises CrewLost when the zygote does not even do that."""
        now = time.monotonic()
        if self._loading and now > min(self._loading.values()):
            raise CrewLost("it does not load what it should")
        for hand in list(self._hands.values()):
            if hand.items and now > hand.heard + PATIENCE * hand.seconds + GRACE_SECONDS:
                if hand.killed:
                    raise CrewLost("it does not end what it should")
                self._end(hand)
                hand.heard, hand.seconds = now, 0.0

    def abandon(self, why: str) -> None:
        """The zygote is gone: what hands were at is judged once more, alone, by the next; the rest by whoever comes."""
        out_of_memory = "memory" in why
        for hand in self._hands.values():
            items = list(hand.items.values())
            if items and (hand.slow or out_of_memory):
                took = max(0.0, time.monotonic() - hand.heard)
                self._lost(items[0], "died", 0.0, why, took=took)
                items = items[1:]
            self._pass_on(items, why)
        self._waiting.back(list(self._again))
        self._hands.clear()
        self._again.clear()

    # hands

    def _new_hand(self) -> Hand:
        self._numbers += 1
        hand = self._hands[self._numbers] = Hand(self._numbers)
        return hand

    def _give(self, hand: Hand, items: list[Item], *, seconds: float, gives_way: bool) -> None:
        if not hand.items:
            hand.heard = time.monotonic()
        hand.seconds = seconds
        first = hand.given
        for item in items:
            hand.items[hand.given] = item
            hand.given += 1
        texts = [(item.pair[0].model_dump_json(), item.pair[1]) for item in items]
        frame = encode({"seconds": seconds, "first": first, "items": texts, "way": items[0].job.way})
        self._unsent += pack(hand.number, Kind.ITEMS, CLOCK.pack(seconds, gives_way) + frame)

    def _end(self, hand: Hand) -> None:
        hand.slow = hand.killed = True
        self._unsent += pack(hand.number, Kind.KILL)

    def _time_left(self, item: Item) -> float:
        """For a second attempt after memory ran out: together they take no longer than one that runs out of time."""
        return max(1.0, item.job.seconds - item.spent)

    # what they say

    def _take(self, line: Line) -> None:
        if line.kind == Kind.LOADED:
            del self._loading[DECIDE[PACKAGE.unpack(line.body)[0]]]
            return
        hand = self._hands.get(line.hand)
        if hand is None:
            return
        match line.kind:
            case Kind.SAID:
                hand.heard = time.monotonic()
                try:
                    hand.frames.feed(line.body)
                    while (answer := hand.frames.next()) is not None:
                        self._answer(hand, answer)
                except (ValueError, KeyError, TypeError, FrameError):
                    self._end(hand)  # it has lost its mind; what it has not answered is blamed and passed on at its end
                if hand.slow and not hand.items and not hand.killed:
                    self._end(hand)
            case Kind.SLOW:
                self._is_slow(hand, INDEX.unpack(line.body)[0])
            case Kind.ENDED:
                del self._hands[line.hand]
                self._has_ended(hand, json.loads(line.body))

    def _answer(self, hand: Hand, answer: dict[str, Any]) -> None:
        item = hand.items.get(answer["index"])
        if item is None:
            return
        verdict: Verdict | None = None
        if answer["kind"] == "verdict":
            verdict = Verdict.model_validate({**answer["verdict"], "isolation": self._channel.isolation})
        took = float(answer["seconds"]) if answer["kind"] in ("memory", "recursion") else 0.0
        if not 0 <= took < math.inf:
            raise ValueError("no time takes so long")
        del hand.items[answer["index"]]
        hand.answered += 1
        match answer["kind"]:
            case "verdict" if verdict is not None:
                item.job.settle(item, verdict)
            case "memory":
                others = list(hand.items.values())
                hand.items.clear()
                self._end(hand)
                self._pass_on(others, "its hand ran out of memory")
                self._lost(item, "memory", 0.0, "out of memory", took=took, fresh=hand.answered == 1)
            case "recursion":
                reason = "too deeply nested to decide"
                item.job.settle(item, self._held(failed(item, Ground.MEMORY, reason, took)))
            case "bad_spec":
                item.job.settle(item, self._held(unusable(item, str(answer["reason"]), str(answer["hint"]))))
            case _:
                item.job.settle(item, self._held(broken(item, str(answer["reason"])[:1000])))

    def _is_slow(self, hand: Hand, index: int) -> None:
        if index not in hand.items:
            return
        hand.slow = True
        behind = [hand.items.pop(other) for other in list(hand.items) if other > index]
        if behind:
            self._unsent += pack(hand.number, Kind.HOLD, INDEX.pack(index))
            self._waiting.back(behind)

    def _has_ended(self, hand: Hand, ended: dict[str, Any]) -> None:
        item = hand.items.pop(ended["item"], None)
        others, status = list(hand.items.values()), int(ended["status"])
        if item is None and others and ended["why"] == "asked":  # it was silent for too long, before it began
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
            self._lost(item, kind, float(ended["cpu"]), why, took=float(ended["took"]), fresh=hand.answered == 0)
        self._pass_on(others, why)

    # who is to blame

    def _lost(self, item: Item, kind: str, cpu: float, why: str, *, took: float, fresh: bool = False) -> None:
        """`took`: since its hand began with it."""
        seconds = item.job.seconds
        own = kind == "cpu" or (kind == "memory" and (fresh or item.attempts))
        if own or (kind == "timeout" and cpu >= BUSY_SHARE * seconds):
            item.job.settle(item, self._held(self._too_expensive(item, kind, took)))
        elif item.attempts:
            text = f"no verdict after two attempts: {'no answer in time' if kind in ('timeout', 'asked') else why}"
            item.job.settle(item, self._held(broken(item, text, took)))
        else:
            item.attempts += 1
            if kind == "memory":
                item.spent += seconds / 2
            self._again.append(item)

    def _pass_on(self, items: list[Item], why: str) -> None:
        """They were lost with another; but not for ever."""
        back = []
        for item in items:
            item.passed_on += 1
            if item.passed_on <= PASSED_ON:
                back.append(item)
            else:
                item.job.settle(item, self._held(broken(item, f"no verdict: {why}, again and again")))
        self._waiting.back(back)

    def _too_expensive(self, item: Item, kind: str, took: float) -> Verdict:
        if kind == "memory":
            return failed(item, Ground.MEMORY, f"too expensive to decide within {self._memory_mib} MiB", took)
        return failed(item, Ground.TIMEOUT, f"too expensive to decide within {item.job.seconds:g} s", took)

    def _held(self, verdict: Verdict) -> Verdict:
        return verdict.model_copy(update={"isolation": self._channel.isolation})


def _how(status: int) -> str:
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
    return f"the worker died with {how}"
