"""The zygote of the verifiers' hands: what they need is imported here once, and each hand is a copy of it.

What always holds: hostile text is never looked at here, only passed on to a hand, byte for byte; an item that takes
longer than its clock allows ends with its hand, killed; a hand that has ended is told once, after all that it said.
A fork costs some 10 ms where a start with its imports would cost a second, so a hand is expendable. An item that
computes for long gives way to others: they hardly notice it, and it still gets enough for its clock to be fair.

It is a program of the runtime (`verifiers.workers.program`), or where there is no broker a process that confines itself
before it says READY; both speak `verifiers.workers.lines` over standard input and output.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import sys
import time
from dataclasses import dataclass, field

from runtime.guest import confine, filters
from runtime.programs import READY
from verifiers import registry
from verifiers.workers import hand as hands
from verifiers.workers.frames import HEADER as FRAME
from verifiers.workers.lines import BUSY_SHARE, CLOCK, INDEX, PACKAGE, PATIENCE, Kind, Line, Lines, pack
from verifiers.workers.progress import NONE, Progress

READ = 1 << 20
LOOK_SECONDS = 0.02
SLOW_SECONDS = 0.1
"""After which whatever waits behind an item goes to another hand."""
GIVES_WAY_SECONDS = 0.1
"""Of computing, after which an item gives way to others."""
LOWER = 12
"""By how much its niceness grows then: beside one other process it has a sixteenth of a processor (sched(7))."""
IDLE_SHARE = 0.01
"""Of its time: who computes less does not compute, but was stopped, or waits."""
MAX_FRAME = 4 << 20
"""Of one answer; a hand that says more has lost its mind."""


@dataclass(eq=False)
class Hand:
    number: int
    pid: int
    requests: int
    replies: int
    progress: Progress
    seconds: float = 0.0
    gives_way: bool = False
    batches: int = 0
    """Given to it."""
    unsent: bytearray = field(default_factory=bytearray)
    said: bytearray = field(default_factory=bytearray)
    slow: int = NONE
    """The item of which it was told that it takes long."""
    lowered: bool = False
    why: str = "died"
    cpu: float = 0.0

    @property
    def busy(self) -> bool:
        """Also when it has not begun with what it was given."""
        return self.progress.batches < self.batches


class Zygote:
    def __init__(self, source: int, sink: int, memory_mib: int) -> None:
        self._source, self._sink, self._memory_mib = source, sink, memory_mib
        self._lines = Lines()
        self._hands: dict[int, Hand] = {}
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)
        self._by_descriptor: dict[int, Hand] = {}
        self._dying: set[int] = set()
        """Killed and told, and not yet reaped."""

    def serve(self) -> None:
        """Until the other side closes its end; then all hands are killed."""
        try:
            while True:
                busy = self._dying or any(hand.busy for hand in self._hands.values())
                for descriptor, _ in self._poll.poll(LOOK_SECONDS * 1000 if busy else None):
                    if descriptor != self._source:
                        self._stirs(descriptor)
                        continue
                    data = os.read(self._source, READ)
                    if not data:
                        return
                    for line in self._lines.feed(data):
                        self._take(line)
                now = time.monotonic()
                for hand in list(self._hands.values()):
                    self._look(hand, now)
                if self._dying:
                    self._reap()
        finally:
            for hand in self._hands.values():
                os.kill(hand.pid, signal.SIGKILL)

    def _take(self, line: Line) -> None:
        hand = self._hands.get(line.hand)
        match line.kind:
            case Kind.ITEMS:
                if hand is None:
                    hand = self._fork(line.hand)
                hand.seconds, hand.gives_way = CLOCK.unpack_from(line.body)
                hand.unsent += line.body[CLOCK.size :]
                hand.batches += 1
                self._send(hand)
            case Kind.HOLD if hand is not None:
                hand.progress.hold(INDEX.unpack(line.body)[0])
            case Kind.KILL if hand is not None:
                self._kill(hand, "asked")
            case Kind.LOAD:
                load(registry.DECIDE[PACKAGE.unpack(line.body)[0]])
                self._say(line.hand, Kind.LOADED, line.body)

    def _fork(self, number: int) -> Hand:
        request_out, request_in = os.pipe()
        reply_out, reply_in = os.pipe()
        progress, parent = Progress(), os.getpid()
        pid = os.fork()
        if pid == 0:
            hands.main(request_out, reply_in, progress, parent=parent, memory_mib=self._memory_mib)
        os.close(request_out)
        os.close(reply_in)
        os.set_blocking(request_in, False)
        os.set_blocking(reply_out, False)
        hand = self._hands[number] = Hand(number, pid, request_in, reply_out, progress)
        self._by_descriptor[request_in] = self._by_descriptor[reply_out] = hand
        self._poll.register(reply_out, select.POLLIN)
        return hand

    def _send(self, hand: Hand) -> None:
        try:
            while hand.unsent:
                del hand.unsent[: os.write(hand.requests, hand.unsent)]
        except BlockingIOError:
            self._poll.register(hand.requests, select.POLLOUT)
            return
        except BrokenPipeError:
            hand.unsent.clear()  # its end of the replies tells the rest
        with contextlib.suppress(KeyError):
            self._poll.unregister(hand.requests)

    def _stirs(self, descriptor: int) -> None:
        hand = self._by_descriptor.get(descriptor)
        if hand is None:
            return
        if descriptor == hand.requests:
            self._send(hand)
        elif self._hear(hand) == 0:
            self._bury(hand)

    def _hear(self, hand: Hand) -> int | None:
        """How many bytes it has said since; None while it says nothing, 0 when it cannot any more."""
        try:
            data = os.read(hand.replies, READ)
        except BlockingIOError:
            return None
        hand.said += data
        whole = self._whole(hand)
        if whole:
            self._say(hand.number, Kind.SAID, bytes(hand.said[:whole]))
            del hand.said[:whole]
        return len(data)

    def _whole(self, hand: Hand) -> int:
        """How many bytes of what it said are whole frames."""
        end = 0
        while len(hand.said) - end >= FRAME.size:
            (length,) = FRAME.unpack_from(hand.said, end)
            if length > MAX_FRAME:
                self._kill(hand, "died")
                break
            if len(hand.said) - end - FRAME.size < length:
                break
            end += FRAME.size + length
        return end

    def _look(self, hand: Hand, now: float) -> None:
        """Is what it does taking long, or too long?"""
        item, since, before = hand.progress.item, hand.progress.since, hand.progress.cpu
        if item == NONE or hand.progress.item != item:
            return
        age = now - since
        if age < SLOW_SECONDS:
            return
        hand.cpu = max(0.0, cpu_of(hand.pid) - before)
        if age >= hand.seconds and not self._is_crowded(hand, age):
            self._out_of_time(hand)
            return
        if hand.slow != item:
            hand.slow = item
            self._say(hand.number, Kind.SLOW, INDEX.pack(item))
        if hand.gives_way and not hand.lowered and hand.cpu >= GIVES_WAY_SECONDS:
            hand.lowered = True
            with contextlib.suppress(OSError):  # then it does not, and only takes time from others
                os.setpriority(os.PRIO_PROCESS, hand.pid, os.getpriority(os.PRIO_PROCESS, 0) + LOWER)

    @staticmethod
    def _is_crowded(hand: Hand, age: float) -> bool:
        """Whether it computes, but others have the processors."""
        computes = hand.cpu > IDLE_SHARE * age
        return computes and hand.cpu < BUSY_SHARE * hand.seconds and age < PATIENCE * hand.seconds

    def _kill(self, hand: Hand, why: str) -> None:
        if hand.why == "died":
            hand.why = why
        os.kill(hand.pid, signal.SIGKILL)  # it is not reaped before its pipe has ended

    def _out_of_time(self, hand: Hand) -> None:
        """Told at once: what has given way to others may take long to die, too."""
        self._kill(hand, "timeout")
        while self._hear(hand):
            pass
        self._dying.add(hand.pid)
        self._tell_end(hand, -signal.SIGKILL)

    def _reap(self) -> None:
        self._dying -= {pid for pid in self._dying if os.waitpid(pid, os.WNOHANG)[0]}

    def _bury(self, hand: Hand) -> None:
        _, status = os.waitpid(hand.pid, 0)
        self._tell_end(hand, os.waitstatus_to_exitcode(status))

    def _tell_end(self, hand: Hand, status: int) -> None:
        item = hand.progress.item
        took = max(0.0, time.monotonic() - hand.progress.since) if item != NONE else 0.0
        if hand.why == "died" and item != NONE:
            hand.cpu = 0.0
        with contextlib.suppress(KeyError):
            self._poll.unregister(hand.requests)
        self._poll.unregister(hand.replies)
        for descriptor in (hand.requests, hand.replies):
            del self._by_descriptor[descriptor]
            os.close(descriptor)
        del self._hands[hand.number]
        ended = {"why": hand.why, "status": status, "item": item, "cpu": hand.cpu, "took": took}
        hand.progress.close()
        self._say(hand.number, Kind.ENDED, json.dumps(ended).encode())

    def _say(self, number: int, kind: Kind, body: bytes) -> None:
        data = memoryview(pack(number, kind, body))
        while data:
            data = data[os.write(self._sink, data) :]


def cpu_of(pid: int) -> float:
    """Processor seconds that a process has used (clock_getcpuclockid(3)); 0 where its kernel does not tell."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def load(package: str) -> None:
    """Imports all that decides there, and leaves nothing that a hand would have to copy when it collects garbage; what
    little there is of that now stays (gc.freeze)."""
    gc.disable()
    registry.preload(package)
    gc.freeze()
    gc.enable()


def confine_alone(parent: int) -> None:
    """Where no box is around it: it ends with its parent, gains no rights and stays in its namespaces."""
    hands.die_with(parent)
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (0, 0))
    confine.begin()
    confine.Filter(filters.one_world(os.uname().machine, filters=True)).install()


def main(memory_mib: int, parent: int) -> None:
    """`parent` is 0 in a box."""
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if parent:
        confine_alone(parent)
    os.write(sink, READY)
    os.dup2(null, 2)
    Zygote(source, sink, memory_mib).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
