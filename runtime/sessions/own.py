"""A sandbox of its own for one caller: Python that keeps its names, files, programs, snapshots of all of it.

The blocking face of a worker that lives on the reactor. What always holds: a rollback that fails leaves the sandbox as
it is; after a call that had to be killed the sandbox is gone, and a snapshot of it can still be restored. Of a sandbox
that used up a limit between two calls, the next call says which; those after it find it gone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Self

from runtime.errors import BadRequestError, InfrastructureError, LimitError
from runtime.guest import wire
from runtime.guest.wire import Kind, Op
from runtime.launcher import Fate, Kept
from runtime.profile import Profile
from runtime.sandbox import CallResult, CallStatus, Entry, ExecResult, Limits, Priority, SnapshotId, Tier, Usage
from runtime.sessions.accounts import Account, Measured
from runtime.sessions.endings import LOST_BY, STATUS_OF, Ending, Lost, not_run, result_of
from runtime.sessions.files import Files, reason, sendable
from runtime.sessions.pacing import Pace, Spent, Watched, until_answered
from runtime.sessions.request import Request
from runtime.sessions.worker import Worker
from runtime.sessions.yard import Answered, Yard

GRACE_SECONDS = 1.0
"""How much longer than its program the supervisor may take before the whole sandbox is killed."""
END_SECONDS = 10.0
"""How long `close` waits until nothing runs any more."""
HAD_ENDED = "; it had ended before this call, which did not run"
MAX_FORKS = 256


def checked_snapshot(snapshot: str) -> SnapshotId:
    """Raises BadRequestError for what is no name of a snapshot."""
    if re.fullmatch(r"[0-9a-f]{64}", snapshot) is None:
        raise BadRequestError(f"{snapshot[:80]!r} is no snapshot", hint="A snapshot is named by 64 hexadecimal digits.")
    return SnapshotId(snapshot)


def true_limits(asked: Limits, profile: Profile) -> Limits:
    """What a sandbox was built with goes before what is asked for now."""
    built = {name: getattr(profile, name) for name in BUILT_IN}
    return asked.model_copy(update={name: value for name, value in built.items() if value is not None})


BUILT_IN = (
    "memory_mib", "pids", "cpus", "output_bytes", "tmp_mib", "work_mib", "open_files", "cpu_seconds", "life_seconds",
)  # fmt: skip
OLD_SECONDS = 0.05


class OwnSandbox:
    """The one implementation of `runtime.sandbox.Sandbox`; made by `Sessions.sandbox`."""

    def __init__(
        self,
        worker: Worker,
        limits: Limits,
        yard: Yard,
        *,
        caller: str,
        priority: Priority,
        born: Callable[[OwnSandbox], None],
    ) -> None:
        self.limits = true_limits(limits, worker.profile)
        self._yard, self._caller, self._priority, self._born = yard, caller, priority, born
        self._files = Files(self._ask, self.limits)
        self._account = Account()
        self._closed = False
        self._enter(worker)
        born(self)

    @property
    def usage(self) -> Usage:
        """The latest figures, of all the sandboxes that it was, one after another."""
        answer: Future[Usage] = Future()

        def measure(worker: Worker, done: Measured) -> None:
            self._yard.launcher.usage(worker.handle, done)

        self._yard.reactor.here(lambda: self._account.report(measure, answer.set_result))
        try:
            return answer.result(timeout=END_SECONDS)
        except TimeoutError:
            raise InfrastructureError(f"nobody says what sandbox {self.id} has used") from None

    def run(self, code: str, *, seconds: float | None = None, patience: float = 1.0) -> CallResult:
        """After a call that had to be killed the sandbox is gone: later calls raise InfrastructureError."""
        limit = self._limit(seconds)
        if not self._counted():
            return not_run(self.limits, Tier.SANDBOX)
        ending, used = self._patiently(Op.RUN, code.encode("utf-8", "surrogatepass"), limit, patience, 0.0)
        if ending.kind not in (Kind.OK, Kind.EXCEPTION):
            worker = self._worker
            self._yard.reactor.here(lambda: worker.lose(Lost.DIED))
            self._told = True
        aside = "" if ending.blamed else HAD_ENDED
        result = result_of(ending, limits=self.limits, seconds=limit, tier=Tier.SANDBOX, sandbox=self.id, aside=aside)
        self._account.called(ending.seconds, len(ending.output))
        return result.model_copy(update=used._asdict())

    def exec(
        self, argv: Sequence[str], *, stdin: bytes = b"", seconds: float | None = None, patience: float = 1.0
    ) -> ExecResult:
        """Runs a program by its full path; one that takes too long is killed with its group, the sandbox lives on,
        unless it was waited for with patience."""
        if not argv or not argv[0].startswith("/") or any("\0" in word or not sendable(word) for word in argv):
            raise BadRequestError("a program is named by its full path, and every word is text without a NUL")
        limit = self._limit(seconds)
        if not self._counted():
            return ExecResult(status=CallStatus.CALLS, exit_code=None, stdout=b"", stderr=b"", seconds=0.0)
        wall = limit * max(1.0, patience)
        asked = wire.exec_body(argv, stdin, seconds=wall, output_bytes=self.limits.output_bytes)
        ending, used = self._patiently(Op.EXEC, asked, limit, patience, GRACE_SECONDS)
        if ending.kind is Kind.REFUSED:
            raise BadRequestError(f"{argv[0]} cannot be run: {reason(ending)}")
        exit_code, cut = self._program_facts(ending)
        status = CallStatus.OK if ending.kind is Kind.OK else STATUS_OF.get(ending.kind, CallStatus.DIED)
        self._account.called(ending.seconds, len(ending.output))
        return ExecResult(
            status=status,
            exit_code=exit_code if status is CallStatus.OK else None,
            stdout=ending.output[:cut],
            stderr=ending.output[cut:],
            seconds=ending.seconds,
            computed=used.computed,
            waited=used.waited,
        )

    # files

    def write(self, path: str, data: bytes) -> None:
        """Creates or replaces a file; the folder that it is in must be there."""
        self._files.write(path, data)

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        return self._files.read(path, max_bytes)

    def list(self, path: str = "/work") -> Sequence[Entry]:
        """Bytes of a name that are no text come out as escapes."""
        return self._files.list(path)

    def upload(self, source: Path, path: str) -> int:
        """What was copied before it failed stays."""
        return self._files.upload(source, path)

    def download(self, path: str, target: Path) -> int:
        return self._files.download(path, target)

    # snapshots

    def snapshot(self, *, durable: bool = False) -> SnapshotId:
        if self._account.snapshots >= self.limits.snapshots:
            raise LimitError(f"all {self.limits.snapshots} snapshots of this sandbox have been taken")
        self._require_open()
        handle = self._worker.handle

        def begin(done: Answered[Kept]) -> None:
            self._yard.launcher.snapshot(handle, durable=durable, label=self._caller, done=done)

        kept = self._yard.ask(begin, "a snapshot")
        self._account.snapshots += 1
        return kept.id

    def prepare(self, snapshot: SnapshotId, copies: int = 1) -> None:
        """Until the snapshot is forgotten or 0 copies are asked for, as many are kept ready; each costs its memory."""
        checked = checked_snapshot(snapshot)
        if not 0 <= copies <= 64:
            raise BadRequestError(f"0 to 64 copies can be kept ready, not {copies}")
        self._require_open()

        def begin(done: Answered[None]) -> None:
            self._yard.launcher.prepare(checked, copies, done)

        self._yard.ask(begin, "copies ahead of need")

    def restore(self, snapshot: SnapshotId) -> None:
        """CPU time and life begin anew. The old sandbox ends a moment later: the first call does not compete with that.

        Raises BadRequestError without such a snapshot; nothing is lost then."""
        self._require_open()
        [worker] = self._yard.restored(
            checked_snapshot(snapshot), 1, reseed=False, caller=self._caller, priority=self._priority
        )
        old = self._worker
        self._enter(worker)
        reactor = self._yard.reactor

        def later() -> None:
            reactor.after(OLD_SECONDS, lambda: old.lose(Lost.DIED))

        reactor.here(later)

    def fork(self, snapshot: SnapshotId, n: int) -> Sequence[OwnSandbox]:
        if not 1 <= n <= MAX_FORKS:
            raise BadRequestError(f"a sandbox is forked into 1 to {MAX_FORKS} others, not {n}")
        self._require_open()
        workers = self._yard.restored(
            checked_snapshot(snapshot), n, reseed=True, caller=self._caller, priority=self._priority
        )
        return [
            OwnSandbox(worker, self.limits, self._yard, caller=self._caller, priority=self._priority, born=self._born)
            for worker in workers
        ]

    def forbid(self) -> None:
        """From now on as if closed; the pool that ends removes what is left."""
        self._closed = True

    def close(self) -> None:
        """Also from another thread, in the middle of a call, which then raises BadRequestError."""
        if self._closed:
            return
        self._closed = True
        done: Future[None] = Future()
        worker = self._worker

        def end() -> None:
            worker.lose(Lost.DIED)
            worker.when_ended(lambda _fate: done.set_result(None))

        self._yard.reactor.here(end)
        try:
            done.result(timeout=END_SECONDS)
        except TimeoutError:
            raise InfrastructureError(f"the broker does not say that sandbox {self.id} has ended") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # inside

    def _enter(self, worker: Worker) -> None:
        self._worker, self.id = worker, worker.id
        self._told = False  # whether a call has said how this one ended
        self._yard.reactor.here(lambda: self._account.placed(worker, alone=True))

    def _limit(self, seconds: float | None) -> float:
        if seconds is not None and not seconds > 0:
            raise BadRequestError(f"a call cannot be limited to {seconds} seconds")
        return min(self.limits.call_seconds, seconds or self.limits.call_seconds)

    def _counted(self) -> bool:
        """Whether one more call may be made."""
        self._require_open()
        if self._account.calls >= self.limits.calls:
            return False
        self._account.calls += 1
        return True

    def _require_open(self) -> None:
        if self._closed:
            raise BadRequestError(f"sandbox {self.id} is closed")

    def _ask(self, op: Op, body: bytes, limit: float) -> Ending:
        return self._believed(self._answered(op, body, limit))

    def _answered(self, op: Op, body: bytes, limit: float) -> Ending:
        self._require_open()
        answer: Future[Ending] = Future()
        request = Request(op, 0, body, limit, answer.set_result)
        worker = self._worker
        self._yard.reactor.here(lambda: worker.send(request))
        return answer.result()

    def _patiently(self, op: Op, body: bytes, limit: float, patience: float, grace: float) -> tuple[Ending, Spent]:
        """`grace` is what the guest may take beyond the limit to say that it kept it."""
        if patience <= 1:
            return self._explained(self._answered(op, body, limit + grace)), Spent()
        self._require_open()
        answer: Future[Ending] = Future()
        worker, reactor, launcher = self._worker, self._yard.reactor, self._yard.launcher
        request = Request(op, 0, body, limit * patience + grace, answer.set_result)

        def measure(done: Measured) -> None:
            reactor.here(lambda: launcher.usage(worker.handle, done, waits=True))

        def give_way(others_first: bool) -> None:
            reactor.here(lambda: launcher.give_way(worker.handle, others_first, lambda _problem: None))

        def end() -> None:
            reactor.here(lambda: worker.lose(Lost.TIMEOUT))

        reactor.here(lambda: worker.send(request))
        used = until_answered(answer, Pace(limit, limit * patience, self.limits.cpus), Watched(measure, give_way, end))
        return self._explained(answer.result()), used

    def _explained(self, ending: Ending) -> Ending:
        """As `_believed`, but a limit that the sandbox used up before the call is told, once, by an unblamed ending."""
        if isinstance(ending.kind, Lost):
            self._require_open()
            unsaid = not ending.blamed and not self._told and ending.kind is not Lost.BROKER
            limit = LOST_BY.get(self._fate().cause) if unsaid else None
            self._require_open()
            ending = self._believed(ending) if limit is None else ending._replace(kind=limit)
            self._told = True
        return ending

    def _fate(self) -> Fate:
        """Of a sandbox that is lost; soon known."""
        fate: Future[Fate] = Future()
        worker = self._worker
        self._yard.reactor.here(lambda: worker.when_ended(fate.set_result))
        try:
            return fate.result(timeout=END_SECONDS)
        except TimeoutError:
            raise InfrastructureError(f"the broker does not say how sandbox {self.id} ended") from None

    def _believed(self, ending: Ending) -> Ending:
        """Raises InfrastructureError for one that says nothing of the call."""
        if isinstance(ending.kind, Lost):
            self._require_open()
            if ending.kind is Lost.BROKER or not ending.blamed:
                raise InfrastructureError(f"sandbox {self.id} is gone", hint="Take a new one, or restore a snapshot.")
        return ending

    def _program_facts(self, ending: Ending) -> tuple[int | None, int]:
        if ending.kind not in (Kind.OK, Kind.TIMEOUT, Kind.OUTPUT):
            return None, len(ending.output)
        try:
            facts = json.loads(ending.report)
            return int(facts["exit_code"]), int(facts["stdout_bytes"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InfrastructureError(f"sandbox {self.id} does not say how the program ended") from error
