"""Service that decides texts in warm workers and kills those that exceed their time.

The host never parses a submission: it sends data, waits, and kills. SymPy and Z3 are loaded in the workers only. The
fork server (zygote) runs in a box of the runtime's broker or, without a broker, as a process that confines itself;
`verifiers.workers.scheduler` assigns items and attributes losses.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
import time
from collections.abc import Sequence
from typing import Self

from runtime.errors import InfrastructureError, RefusedError, SandboxError
from runtime.programs import READY
from verifiers.boxes.box import ToolBoxes
from verifiers.contract.errors import SpecError
from verifiers.contract.protocols import ProposalReply
from verifiers.contract.spec_data import SpecModel
from verifiers.contract.verdict import Ground, Outcome, SpecProblem, Verdict
from verifiers.registry import decider
from verifiers.workers.batches import Pair, WaitingBatches, WorkBatch, WorkItem, broken, failed
from verifiers.workers.channel import BoxChannel, Channel, in_boxes, in_process
from verifiers.workers.process import ConfinedProcess
from verifiers.workers.scheduler import WorkerScheduler, WorkersLost

__all__ = ["MEMORY_MIB", "Pair", "VerifierService"]
MEMORY_MIB = 1024
"""Data limit of one worker in MiB, including memory shared with the zygote. SymPy and the solvers need about 200."""
START_SECONDS = 60.0
"""Time limit for a zygote to become ready, in seconds; counts towards no item."""
GIVES_WAY_SECONDS = 0.5
"""Seconds with only slow items in progress, after which zygote and workers yield CPU to other boxes."""
GIVES_WAY_UNTIL = 10.0
"""Seconds after which they get their CPU share back, so that they finish on a permanently busy machine."""
MAX_CHARS = 2_000_000
"""Maximum length of a submission, in characters."""
STARTS = 3
"""Consecutive zygote losses after which the waiting items are given up."""
log = logging.getLogger(__name__)


class VerifierService:
    """Verifies submissions from their text, in workers. A context manager, safe to use from several threads. Starts its
    zygote on first use."""

    def __init__(
        self,
        *,
        boxes: ToolBoxes | None = None,
        workers: int | None = None,
        memory_mib: int = MEMORY_MIB,
        or_process: bool = False,
    ) -> None:
        """Configures the workers, which start on first use. `boxes`: their broker must know
        `workers.program.verifier_program`. With None, or if boxes are refused and `or_process` is set, a process
        confines itself; verdicts always name the isolation. `workers`: items decided concurrently, by default one per
        processor up to 4; extra workers start while some are slow."""
        self.workers = workers or min(4, len(os.sched_getaffinity(0)))
        self._memory_mib = memory_mib
        self._launches = [] if boxes is None else [in_boxes(boxes, memory_mib, self.workers)]
        if boxes is None or or_process:
            self._launches.append(in_process(memory_mib))
        self._lock = threading.Lock()
        self._waiting = WaitingBatches()
        self._new: list[WorkBatch] = []
        self._closed = False
        self._thread: threading.Thread | None = None
        self._wake_out, self._wake_in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._channel: Channel | None = None
        self._scheduler: WorkerScheduler | None = None
        self._losses = 0
        self._slow_since: float | None = None
        self._gives_way = False
        self._preloads = False
        """True if all packages are imported before the first item."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def zygote_pid(self) -> int | None:
        """Process id of a warm zygote on this host, or None."""
        channel = self._channel
        return channel.pid if isinstance(channel, ConfinedProcess) and self._scheduler is not None else None

    @property
    def isolation(self) -> str:
        """Isolation of the workers; empty before they start."""
        return self._channel.isolation if self._channel is not None else ""

    def start(self) -> None:
        """Starts the zygote in the background and imports all packages; failures are reported by later verdicts."""
        self._preloads = True
        self._submit(WorkBatch([], 0.0))

    def verify(self, spec: SpecModel, submission: str, seconds: float = 5.0) -> Verdict:
        """Verifies one submission in a worker; see `verify_many`. Raises SpecError for an unusable spec."""
        found = self.verify_many([(spec, submission)], seconds)[0]
        if isinstance(found, SpecProblem):
            raise SpecError(found.message, hint=found.hint)
        return found

    def verify_many(self, pairs: Sequence[Pair], seconds: float = 5.0) -> list[Verdict | SpecProblem]:
        """Returns, in order, a verdict for each pair, or the problem with its spec. `seconds` is the CPU time limit of
        one item. Never raises for an item; raises SpecError for a spec that is not decided from text."""
        batch = WorkBatch(pairs, seconds)
        for spec in {type(spec): spec for spec, _ in pairs}.values():
            decider(spec)
        for place, (_, submission) in enumerate(pairs):
            item = WorkItem(batch, place)
            if len(submission) > MAX_CHARS:
                reason = f"the text has {len(submission)} characters (limit: {MAX_CHARS})"
                batch.settle(item, failed(item, Ground.UNREADABLE, reason, 0.0))
            else:
                batch.waiting.append(item)
        if batch.waiting:
            self._submit(batch)
            batch.done.wait()
        found = [batch.results[place] for place in range(len(pairs))]
        return [result for result in found if not isinstance(result, ProposalReply)]

    def propose(self, spec: SpecModel, way: str, question: str, seconds: float = 5.0) -> ProposalReply:
        """Proposes answers to a question by one named way, in a worker with limits as for verdicts. Raises
        InfrastructureError if the worker broke; a way that exceeds its time or memory returns no proposals."""
        batch = WorkBatch([(spec, question)], seconds, way=way)
        batch.waiting.append(WorkItem(batch, 0))
        self._submit(batch)
        batch.done.wait()
        match batch.results[0]:
            case ProposalReply() as found:
                return found
            case Verdict(outcome=Outcome.INFRA_ERROR) as verdict:
                raise InfrastructureError(verdict.reason)
            case result:
                return ProposalReply(by=way, note=result.reason)

    def close(self) -> None:
        """Kills the workers; waiting callers get `infra_error`. Closing twice is fine."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
        self._wake()
        if thread is not None:
            thread.join()
        os.close(self._wake_out)
        os.close(self._wake_in)

    def _submit(self, batch: WorkBatch) -> None:
        with self._lock:
            if self._closed:
                raise ValueError("this verifier service is closed")
            self._new.append(batch)
            if self._thread is None:
                # one thread for its whole life: the kernel kills a confined process with the thread that started it
                self._thread = threading.Thread(target=self._run, name="verifier-service", daemon=True)
                self._thread.start()
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_in, b"x")

    # on the service's own thread

    def _run(self) -> None:
        try:
            while not self._closed:
                self._round()
        finally:
            self._drop()
            with self._lock:
                self._closed = True
            self._collect()
            self._give_up("the verifier service was closed")

    def _round(self) -> None:
        wanted = self._collect()
        try:
            if self._scheduler is None and (wanted or self._waiting):
                self._begin()
            scheduler = self._scheduler
            if scheduler is None:
                self._wait(None)
                return
            if self._preloads:
                scheduler.load()
            scheduler.assign()
            self._set_priority(scheduler)
            scheduler.flush()
            if self._wait(scheduler):
                scheduler.receive()
                self._losses = 0
            scheduler.watch()
        except WorkersLost as lost:
            self._restart(str(lost))
        except Exception as error:
            log.exception("the verifier service broke")
            self._restart(f"{type(error).__name__}")
            self._give_up(f"the verifier service broke: {type(error).__name__}")

    def _set_priority(self, scheduler: WorkerScheduler) -> None:
        """Lowers the CPU priority of zygote and workers for a while if all running items are slow and retryable."""
        now = time.monotonic()
        if not scheduler.may_give_way:
            self._slow_since = None
        elif self._slow_since is None:
            self._slow_since = now
        slow = now - self._slow_since if self._slow_since is not None else 0.0
        gives_way = GIVES_WAY_SECONDS <= slow < GIVES_WAY_UNTIL
        if gives_way is not self._gives_way and self._channel is not None:
            self._gives_way = gives_way
            self._channel.give_way(gives_way)

    def _collect(self) -> bool:
        """Queues newly submitted batches. Returns True if there were any."""
        with self._lock:
            new, self._new = self._new, []
        for batch in new:
            if batch.waiting:
                self._waiting.add(batch)
        return bool(new)

    def _begin(self) -> None:
        """Starts a zygote. If that fails, all waiting items get `infra_error` with the reason."""
        try:
            self._channel = self._launched()
            if not isinstance(self._channel, BoxChannel):  # the broker has already waited for READY
                self._await_ready(self._channel)
            self._slow_since, self._gives_way = None, False
            self._scheduler = WorkerScheduler(self._channel, self.workers, self._memory_mib, self._waiting)
        except (OSError, SandboxError) as error:
            self._drop()
            hint = getattr(error, "hint", "")
            self._give_up(f"the worker cannot be started: {error}" + (f" ({hint})" if hint else ""))

    def _launched(self) -> Channel:
        """Launches a zygote, in a box if possible. After one refusal of boxes, they are not tried again."""
        while len(self._launches) > 1:
            try:
                return self._launches[0]()
            except RefusedError as error:
                log.warning("no boxes are available; texts are decided in a process that confines itself: %s", error)
                del self._launches[0]
        return self._launches[0]()

    def _await_ready(self, channel: Channel) -> None:
        """Waits until a new zygote reports READY. Raises WorkersLost."""
        received, deadline = b"", time.monotonic() + START_SECONDS
        _, replies = channel.descriptors
        while len(received) < len(READY):
            if not select.select([replies], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise WorkersLost(f"it was not ready within {START_SECONDS:g} s")
            with contextlib.suppress(BlockingIOError):
                data = os.read(replies, len(READY) - len(received))
                if not data:
                    raise WorkersLost("it exited")
                received += data
        if received != READY:
            raise WorkersLost("protocol error")

    def _wait(self, scheduler: WorkerScheduler | None) -> bool:
        """Waits for a wake-up, a reply of the zygote or a deadline. Returns True if the zygote sent something."""
        poll = select.poll()
        poll.register(self._wake_out, select.POLLIN)
        most: float | None = None
        if scheduler is not None:
            poll.register(scheduler.replies, select.POLLIN)
            if scheduler.wants_to_write:
                poll.register(scheduler.requests, select.POLLOUT)
            moments = [] if scheduler.deadline is None else [scheduler.deadline]
            if self._slow_since is not None:
                turns = (self._slow_since + GIVES_WAY_SECONDS, self._slow_since + GIVES_WAY_UNTIL)
                moments += [turn for turn in turns if turn > time.monotonic()]
            if moments:
                most = max(0.0, (min(moments) - time.monotonic()) * 1000) + 10
        ready = {descriptor for descriptor, _ in poll.poll(most)}
        if self._wake_out in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_out, 4096)
        return scheduler is not None and scheduler.replies in ready

    def _restart(self, why: str) -> None:
        """Kills the zygote and returns its work to the queue for a new one; gives up after `STARTS` losses in a row."""
        ended = self._channel.kill() if self._channel is not None else why
        reason = f"{why}: {ended}"
        log.warning("the verifiers' worker was lost: %s", reason)
        if self._scheduler is not None:
            self._scheduler.abandon(reason)
        self._drop()
        self._losses += 1
        if self._losses >= STARTS:
            self._losses = 0
            self._give_up(f"the worker was lost {STARTS} times: {reason}")

    def _give_up(self, reason: str) -> None:
        for item in self._waiting.drain():
            item.batch.settle(item, broken(item, reason))

    def _drop(self) -> None:
        if self._scheduler is not None:
            self._scheduler.abandon("the verifier service was closed")
        self._scheduler = None
        if self._channel is not None:
            self._channel.kill()
        self._channel = None
