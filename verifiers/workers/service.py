"""Verdicts from warm workers that are killed on a wall clock: the deciders' way to judge.

The host never reads a submission: it sends data, waits, and kills. SymPy and Z3 live in the worker only. The worker is
a zygote in a box of the runtime's broker, or where there is none in a process that confines itself, and forks hands
that decide; `verifiers.workers.crew` says who gets what and who is to blame for what is lost.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from runtime.errors import InfrastructureError, RefusedError, SandboxError
from runtime.programs import READY
from verifiers.errors import SpecError
from verifiers.proposals.found import PROPOSED, Found
from verifiers.registry import CONDUCTED
from verifiers.spec import Spec
from verifiers.verdict import Ground, Outcome, Verdict
from verifiers.workers.box import ToolBoxes
from verifiers.workers.channel import BoxChannel, Channel, in_boxes, in_process
from verifiers.workers.crew import Crew, CrewLost
from verifiers.workers.jobs import Item, Job, Pair, Waiting, broken, failed
from verifiers.workers.process import ConfinedProcess

__all__ = ["MEMORY_MIB", "Pair", "VerifierService"]
MEMORY_MIB = 1024
"""Data of one hand, what it shares with the zygote included: SymPy and the solvers need about 200."""
START_SECONDS = 60.0
"""For a zygote to be warm, which no item's clock counts."""
GIVES_WAY_SECONDS = 0.5
"""While nothing but what takes long is under way, after which the whole worker gives way to other boxes."""
MAX_CHARS = 2_000_000
"""No answer is longer."""
STARTS = 3
"""Zygotes that may be lost in a row before what waits is given up."""
log = logging.getLogger(__name__)


class VerifierService:
    """A context manager; safe to use from several threads, which have turns. Starts its worker when it is needed."""

    def __init__(
        self,
        *,
        boxes: ToolBoxes | None = None,
        workers: int | None = None,
        memory_mib: int = MEMORY_MIB,
        or_process: bool = False,
    ) -> None:
        """`boxes` whose broker knows `workers.program.verifier_program`. None: a process that confines itself, as where
        boxes are refused and `or_process` allows it; a verdict always says which it was. `workers`: hands that decide
        at once, the processors by default; there are more while some are busy for long."""
        self.workers = workers or min(4, len(os.sched_getaffinity(0)))
        self._memory_mib = memory_mib
        self._launches = [] if boxes is None else [in_boxes(boxes, memory_mib, self.workers)]
        if boxes is None or or_process:
            self._launches.append(in_process(memory_mib))
        self._lock = threading.Lock()
        self._waiting = Waiting()
        self._new: list[Job] = []
        self._closed = False
        self._thread: threading.Thread | None = None
        self._wake_out, self._wake_in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._channel: Channel | None = None
        self._crew: Crew | None = None
        self._lost = 0
        self._slow_since: float | None = None
        self._gives_way = False
        self._ahead = False
        """Whether all is imported ahead of the first item that needs it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def worker_pid(self) -> int | None:
        """Process id of the zygote, where it is a process of this machine and warm."""
        channel = self._channel
        return channel.pid if isinstance(channel, ConfinedProcess) and self._crew is not None else None

    @property
    def isolation(self) -> str:
        """What the worker is held in; empty before there is one."""
        return self._channel.isolation if self._channel is not None else ""

    def start(self) -> None:
        """Has the worker made warm now, for items of all kinds; what goes wrong is told by the verdicts."""
        self._ahead = True
        self._submit(Job([], 0.0))

    def verify(self, spec: Spec, submission: str, seconds: float = 5.0) -> Verdict:
        """One verdict; see `verify_many`."""
        return self.verify_many([(spec, submission)], seconds)[0]

    def verify_many(self, pairs: Sequence[Pair], seconds: float = 5.0) -> list[Verdict]:
        """A verdict for each pair, in order. `seconds` is the wall clock of one item; never raises for an item, but
        SpecError for a spec that is not decided from a text."""
        job = Job(pairs, seconds)
        for spec in {type(spec): spec for spec, _ in pairs}.values():
            if spec.kind in CONDUCTED:
                raise SpecError(f"{spec.kind} is not decided from a text alone", hint="Ask `verifiers.checker`.")
        for place, (_, submission) in enumerate(pairs):
            item = Item(job, place)
            if len(submission) > MAX_CHARS:
                reason = f"a text of {len(submission)} characters, of which no more than {MAX_CHARS} are read"
                job.settle(item, failed(item, Ground.UNREADABLE, reason, 0.0))
            else:
                job.waiting.append(item)
        if job.waiting:
            self._submit(job)
            job.done.wait()
        return [job.verdicts[place] for place in range(len(pairs))]

    def propose(self, spec: Spec, way: str, question: str, seconds: float = 5.0) -> Found:
        """What is found this way (`verifiers.proposals.proposing`), in the same worker and under the same clock. Raises
        InfrastructureError where the worker broke; a way that took too long or too much has found nothing."""
        job = Job([(spec, question)], seconds, way=way)
        job.waiting.append(Item(job, 0))
        self._submit(job)
        job.done.wait()
        verdict = job.verdicts[0]
        if verdict.outcome is Outcome.INFRA_ERROR:
            raise InfrastructureError(verdict.reason)
        told = verdict.evidence.get(PROPOSED)
        if told is None:
            return Found(by=way, note=verdict.reason)
        try:
            return Found.model_validate(told)
        except ValidationError as error:
            raise InfrastructureError("the worker does not say what it found") from error

    def close(self) -> None:
        """Kills the worker; who waits gets `infra_error`. Closing twice is fine."""
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

    def _submit(self, job: Job) -> None:
        with self._lock:
            if self._closed:
                raise ValueError("this verifier service is closed")
            self._new.append(job)
            if self._thread is None:
                # one thread for all its life: the kernel ends a confined process with the thread that started it
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
            if self._crew is None and (wanted or self._waiting):
                self._begin()
            crew = self._crew
            if crew is None:
                self._wait(None)
                return
            if self._ahead:
                crew.load()
            crew.assign()
            self._weigh(crew)
            crew.flush()
            if self._wait(crew):
                crew.hear()
                self._lost = 0
            crew.watch()
        except CrewLost as lost:
            self._fall_back(str(lost))
        except Exception as error:
            log.exception("the verifier service broke")
            self._fall_back(f"{type(error).__name__}")
            self._give_up(f"the verifier service broke: {type(error).__name__}")

    def _weigh(self, crew: Crew) -> None:
        """The whole worker gives way while all that it does takes long, and no longer."""
        now = time.monotonic()
        if not crew.only_slow:
            self._slow_since = None
        elif self._slow_since is None:
            self._slow_since = now
        gives_way = self._slow_since is not None and now >= self._slow_since + GIVES_WAY_SECONDS
        if gives_way is not self._gives_way and self._channel is not None:
            self._gives_way = gives_way
            self._channel.give_way(gives_way)

    def _collect(self) -> bool:
        """Takes in what is new; whether there was something."""
        with self._lock:
            new, self._new = self._new, []
        for job in new:
            if job.waiting:
                self._waiting.add(job)
        return bool(new)

    def _begin(self) -> None:
        """A warm zygote, or everything that waits is told why there is none."""
        try:
            self._channel = self._launched()
            if not isinstance(self._channel, BoxChannel):  # there the broker has heard that it is ready
                self._greet(self._channel)
            self._slow_since, self._gives_way = None, False
            self._crew = Crew(self._channel, self.workers, self._memory_mib, self._waiting)
        except (OSError, SandboxError) as error:
            self._drop()
            hint = getattr(error, "hint", "")
            self._give_up(f"the worker cannot be started: {error}" + (f" ({hint})" if hint else ""))

    def _launched(self) -> Channel:
        """Boxes that are refused once are not asked for again."""
        while len(self._launches) > 1:
            try:
                return self._launches[0]()
            except RefusedError as error:
                log.warning(
                    "texts are decided in a process that confines itself, because there are no boxes: %s", error
                )
                del self._launches[0]
        return self._launches[0]()

    def _greet(self, channel: Channel) -> None:
        """Waits for READY. Raises CrewLost."""
        heard, deadline = b"", time.monotonic() + START_SECONDS
        _, replies = channel.descriptors
        while len(heard) < len(READY):
            if not select.select([replies], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise CrewLost(f"it was not ready within {START_SECONDS:g} s")
            with contextlib.suppress(BlockingIOError):
                data = os.read(replies, len(READY) - len(heard))
                if not data:
                    raise CrewLost("it is gone")
                heard += data
        if heard != READY:
            raise CrewLost("it does not speak this protocol")

    def _wait(self, crew: Crew | None) -> bool:
        """Until something happens; whether the zygote said something."""
        poll = select.poll()
        poll.register(self._wake_out, select.POLLIN)
        most: float | None = None
        if crew is not None:
            poll.register(crew.replies, select.POLLIN)
            if crew.wants_to_write:
                poll.register(crew.requests, select.POLLOUT)
            moments = [] if crew.deadline is None else [crew.deadline]
            if self._slow_since is not None and not self._gives_way:
                moments.append(self._slow_since + GIVES_WAY_SECONDS)
            if moments:
                most = max(0.0, (min(moments) - time.monotonic()) * 1000) + 10
        ready = {descriptor for descriptor, _ in poll.poll(most)}
        if self._wake_out in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_out, 4096)
        return crew is not None and crew.replies in ready

    def _fall_back(self, why: str) -> None:
        """Another zygote takes over; not for ever."""
        said = self._channel.kill() if self._channel is not None else why
        told = f"{why}: {said}"
        log.warning("the verifiers' worker was lost: %s", told)
        if self._crew is not None:
            self._crew.abandon(told)
        self._drop()
        self._lost += 1
        if self._lost >= STARTS:
            self._lost = 0
            self._give_up(f"the worker was lost {STARTS} times: {told}")

    def _give_up(self, reason: str) -> None:
        for item in self._waiting.empty():
            item.job.settle(item, broken(item, reason))

    def _drop(self) -> None:
        if self._crew is not None:
            self._crew.abandon("the verifier service was closed")
        self._crew = None
        if self._channel is not None:
            self._channel.kill()
        self._channel = None
