"""Separate sandbox of one caller: stateful Python, files, programs, and snapshots of all of it.

Blocking interface to a worker on the reactor. Invariants: a failed rollback leaves the sandbox unchanged; after a
killed call the sandbox is gone, but its snapshots can still be restored. If a limit ended the sandbox between two
calls, the next call reports the limit; later ones find it gone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial

from pydantic import ValidationError

from runtime.broker_api import SnapshotCopy, Termination
from runtime.errors import BadRequestError, BrokerLostError, GuestLostError, LimitError, RefusedError, SandboxError
from runtime.guest import wire
from runtime.guest.users import UID
from runtime.guest.wire import Op, ReplyKind
from runtime.sandbox import (
    HOME,
    NO_VARIABLES,
    CallResult,
    CallStatus,
    ClosesOnExit,
    ExecResult,
    Limits,
    Priority,
    SnapshotId,
    Tier,
    Usage,
)
from runtime.sessions.files import SandboxFiles, refusal, sendable
from runtime.sessions.outcomes import HAD_ENDED, LOST_BY, STATUS_OF, CallOutcome, LossCause, not_run, result_of
from runtime.sessions.pacing import Pace, Spent, Watched, until_answered
from runtime.sessions.session_queue import MAX_FORKS, SessionRequest, call_seconds
from runtime.sessions.usage_meter import Measured, UsageMeter
from runtime.sessions.waiter import Answered, Waiter, awaited
from runtime.sessions.worker import Worker

GRACE_SECONDS = 5.0
"""Extra time of the supervisor beyond its program's limit before the sandbox is killed, in seconds."""
END_SECONDS = 10.0
"""Time for which `close` waits until nothing runs, in seconds."""


def copy_of(snapshot: SnapshotId, *, reseed: bool = False) -> SnapshotCopy:
    """Returns the request to restore a sandbox from a snapshot. Raises BadRequestError for an invalid name."""
    try:
        return SnapshotCopy(snapshot=snapshot, reseed=reseed)
    except ValidationError:
        hint = "Use the 64 hexadecimal digits of a snapshot."
        raise BadRequestError(f"{snapshot[:80]!r} is not a snapshot name", hint=hint) from None


BUILT_IN = (
    "memory_mib", "pids", "cpus", "output_bytes", "tmp_mib", "work_mib", "open_files", "cpu_seconds", "life_seconds",
)  # fmt: skip
"""Limits fixed when a sandbox was built, which override requested ones."""
OLD_SECONDS = 0.05
UNDER_WAY = "a call is running in the sandbox: a copy could not return its answer"


class OwnSandbox(SandboxFiles, ClosesOnExit):
    """Separate sandbox that its caller uses directly: the only implementation of `runtime.sandbox.Sandbox`; created by
    `Sessions.sandbox`."""

    def __init__(
        self,
        worker: Worker,
        limits: Limits,
        waiter: Waiter,
        *,
        caller: str,
        priority: Priority,
        born: Callable[[OwnSandbox], None],
    ) -> None:
        built = {name: getattr(worker.profile, name) for name in BUILT_IN}
        self.limits = limits.model_copy(update={name: value for name, value in built.items() if value is not None})
        self._waiter, self._caller, self._priority, self._born = waiter, caller, priority, born
        self._account = UsageMeter()
        self._closed = False
        self._enter(worker)
        born(self)

    @property
    def usage(self) -> Usage:
        """Current resource usage, summed over the successive sandboxes of this object."""

        def measure(worker: Worker, done: Measured) -> None:
            self._waiter.launcher.usage(worker.handle, done)

        silence = f"no usage report for sandbox {self.id}"
        used: Usage = awaited(self._waiter.reactor, partial(self._account.report, measure), END_SECONDS, silence)
        return used

    def run(self, code: str, *, seconds: float | None = None, patience: float = 1.0) -> CallResult:
        """Runs Python code in the sandbox. After a killed call it is gone: later calls raise InfrastructureError."""
        limit = call_seconds(seconds, self.limits)
        if not self._counted():
            return not_run(self.limits, Tier.SANDBOX)
        outcome, used = self._patiently(Op.RUN, code.encode("utf-8", "surrogatepass"), limit, patience, 0.0)
        if outcome.kind not in (ReplyKind.OK, ReplyKind.EXCEPTION):
            self._lose(self._worker)
            self._loss_reported = True
        aside = "" if outcome.blamed else HAD_ENDED
        result = result_of(outcome, limits=self.limits, seconds=limit, tier=Tier.SANDBOX, sandbox=self.id, aside=aside)
        self._account.called(outcome.seconds, len(outcome.output))
        return result.model_copy(update=used._asdict())

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] = NO_VARIABLES,
        cwd: str = HOME,
        user: str = "",
        seconds: float | None = None,
        output_bytes: int | None = None,
        patience: float = 1.0,
    ) -> ExecResult:
        """Runs a program in the sandbox. If too long, its group is killed; without patience, the sandbox survives."""
        self._require_startable(argv, env, cwd, user, stdin)
        limit = call_seconds(seconds, self.limits)
        most = self.limits.output_bytes if output_bytes is None else min(output_bytes, self.limits.output_bytes)
        if most < 1:
            raise BadRequestError(f"a program cannot be limited to {most} bytes of output")
        if not self._counted():
            return ExecResult(status=CallStatus.CALLS, exit_code=None, stdout=b"", stderr=b"", seconds=0.0)
        wall = limit * max(1.0, patience)
        staged, last = self._stage(stdin, f"the input of {argv[0][:80]!r}")
        where = cwd if cwd.startswith("/") else f"{HOME}/{cwd}"
        asked = wire.exec_body(
            argv, last, seconds=wall, output_bytes=most, env=env, cwd=where, user=user, staged=staged
        )
        outcome, used = self._patiently(Op.EXEC, asked, limit, patience, GRACE_SECONDS)
        if outcome.kind is ReplyKind.REFUSED:
            raise refusal(outcome, f"{argv[0][:200]!r} cannot be run")
        exit_code, cut = self._program_facts(outcome)
        status = CallStatus.OK if outcome.kind is ReplyKind.OK else STATUS_OF.get(outcome.kind, CallStatus.DIED)
        self._account.called(outcome.seconds, len(outcome.output))
        return ExecResult(
            status=status,
            exit_code=exit_code if status is CallStatus.OK else None,
            stdout=outcome.output[:cut],
            stderr=outcome.output[cut:],
            seconds=outcome.seconds,
            computed=used.computed,
            waited=used.waited,
        )

    # snapshots

    def snapshot(self, *, durable: bool = False) -> SnapshotId:
        if self._account.snapshots >= self.limits.snapshots:
            raise LimitError(f"all {self.limits.snapshots} snapshots of this sandbox have been taken")
        self._require_open()
        worker = self._worker

        def begin(done: Answered[SnapshotId]) -> None:
            def taken(snapshot: SnapshotId | SandboxError) -> None:
                worker.release()
                done(snapshot)

            if worker.state == "ready" and not worker.hold():
                done(BadRequestError(UNDER_WAY, hint="Take the snapshot before the call, or after its answer."))
            else:
                self._waiter.launcher.snapshot(worker.handle, durable=durable, label=self._caller, done=taken)

        taken = self._waiter.ask(begin, "a snapshot")
        self._account.snapshots += 1
        return taken

    def prepare(self, snapshot: SnapshotId, copies: int = 1) -> None:
        """Keeps `copies` sandboxes of a snapshot ready until it is forgotten or 0 are wanted; each costs memory."""
        wanted = copy_of(snapshot).snapshot
        if not 0 <= copies <= 64:
            raise BadRequestError(f"copies must be 0 to 64 ({copies})")
        self._require_open()
        self._waiter.ask(partial(self._waiter.launcher.prepare, wanted, copies), "copies ahead of need")

    def restore(self, snapshot: SnapshotId) -> None:
        """Rolls the sandbox back to a snapshot; CPU time and life restart. The old sandbox ends a moment later, to not
        compete with the first call. Raises BadRequestError for an unknown snapshot; nothing is lost then."""
        self._require_open()
        [worker] = self._waiter.workers(copy_of(snapshot), caller=self._caller, priority=self._priority)
        old = self._worker
        self._enter(worker)
        reactor = self._waiter.reactor

        def later() -> None:
            reactor.after(OLD_SECONDS, lambda: old.lose(LossCause.DIED))

        reactor.here(later)

    def fork(self, snapshot: SnapshotId, n: int) -> Sequence[OwnSandbox]:
        if not 1 <= n <= MAX_FORKS:
            raise BadRequestError(f"a sandbox can be forked into 1 to {MAX_FORKS} others, not {n}")
        self._require_open()
        copy = copy_of(snapshot, reseed=True)
        workers = self._waiter.workers(copy, n, caller=self._caller, priority=self._priority)
        return [
            OwnSandbox(worker, self.limits, self._waiter, caller=self._caller, priority=self._priority, born=self._born)
            for worker in workers
        ]

    def forbid(self) -> None:
        """Refuses the sandbox's calls from now on as if closed; the closing pool removes the rest."""
        self._closed = True

    def close(self) -> None:
        """Closes the sandbox, even from another thread during a call, which then raises BadRequestError."""
        if self._closed:
            return
        self._closed = True
        worker = self._worker
        self._lose(worker)
        self._termination_of(worker)

    # inside

    def _enter(self, worker: Worker) -> None:
        self._worker, self.id = worker, worker.id
        self._loss_reported = False  # True once a call has reported how this one ended
        self._waiter.reactor.here(lambda: self._account.placed(worker, alone=True))

    def _lose(self, worker: Worker) -> None:
        self._waiter.reactor.here(lambda: worker.lose(LossCause.DIED))

    def _require_startable(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: str, user: str, stdin: bytes
    ) -> None:
        """Checks a request to run a program before it is sent. Raises BadRequestError, RefusedError or LimitError."""
        texts = [*argv, *env, *env.values(), cwd, user]
        if not argv or not argv[0] or any("\0" in text or not sendable(text) for text in texts):
            raise BadRequestError("a program needs a name, and its arguments and environment must be text without NUL")
        if any(not name or "=" in name for name in env):
            raise BadRequestError("an environment variable needs a name without an equals sign")
        profile = self._worker.profile
        if not profile.users and user not in ("", "guest", str(UID)):
            raise RefusedError(
                f"{user[:80]!r} cannot run programs here: this sandbox has one user",
                hint="Omit the user: only a sandbox with a userland under gVisor has others.",
            )
        if len(stdin) > (most := profile.memory_mib << 19):
            raise LimitError(f"{len(stdin)} bytes of input exceed this sandbox's limit of {most}")

    def _counted(self) -> bool:
        """Counts a call against the sandbox's limit; False if none is left."""
        self._require_open()
        if self._account.calls >= self.limits.calls:
            return False
        self._account.calls += 1
        return True

    def _require_open(self) -> None:
        if self._closed:
            raise BadRequestError(f"sandbox {self.id} is closed")

    def _ask(self, op: Op, body: bytes, limit: float) -> CallOutcome:
        return self._believed(self._asked(self._worker, op, body, limit).result())

    def _asked(self, worker: Worker, op: Op, body: bytes, limit: float) -> Future[CallOutcome]:
        self._require_open()
        answer: Future[CallOutcome] = Future()
        request = SessionRequest(op, 0, body, limit, answer.set_result)
        send = worker.turn if op is Op.RUN else worker.send  # one interpreter runs one call at a time
        self._waiter.reactor.here(lambda: send(request))
        return answer

    def _patiently(self, op: Op, body: bytes, limit: float, patience: float, grace: float) -> tuple[CallOutcome, Spent]:
        """Sends a request to the sandbox and waits for its outcome, with patience. `grace` is the guest's extra time to
        report that it kept the limit."""
        if patience <= 1:
            return self._explained(self._asked(self._worker, op, body, limit + grace).result()), Spent()
        worker, reactor, launcher = self._worker, self._waiter.reactor, self._waiter.launcher

        def measure(done: Measured) -> None:
            reactor.here(lambda: launcher.usage(worker.handle, done, waits=True))

        def give_way(others_first: bool) -> None:
            reactor.here(lambda: launcher.give_way(worker.handle, others_first, lambda _problem: None))

        def end() -> None:
            reactor.here(worker.stop)

        answer = self._asked(worker, op, body, limit * patience + grace)
        used = until_answered(answer, Pace(limit, limit * patience, self.limits.cpus), Watched(measure, give_way, end))
        return self._explained(answer.result()), used

    def _explained(self, outcome: CallOutcome) -> CallOutcome:
        """Validates a call's outcome like `_believed`; a limit used up before it is reported once, unblamed."""
        if isinstance(outcome.kind, LossCause):
            self._require_open()
            unreported = not outcome.blamed and not self._loss_reported and outcome.kind is not LossCause.BROKER
            limit = LOST_BY.get(self._termination_of(self._worker).cause) if unreported else None
            self._require_open()
            outcome = self._believed(outcome) if limit is None else outcome._replace(kind=limit)
            self._loss_reported = True
        return outcome

    def _termination_of(self, worker: Worker) -> Termination:
        """Waits for a lost sandbox's termination, which soon becomes known."""
        silence = f"no termination report for sandbox {self.id}"
        return awaited(self._waiter.reactor, worker.when_ended, END_SECONDS, silence)

    def _believed(self, outcome: CallOutcome) -> CallOutcome:
        """Returns a call's outcome if it says anything about the call. Raises BrokerLostError or GuestLostError
        otherwise."""
        if isinstance(outcome.kind, LossCause):
            self._require_open()
            gone, hint = f"sandbox {self.id} is gone", "Open a new sandbox, or restore a snapshot."
            if outcome.kind is LossCause.BROKER:
                raise BrokerLostError(f"{gone} with its broker", hint=hint)
            if not outcome.blamed:
                raise GuestLostError(gone, hint=hint)
        return outcome

    def _program_facts(self, outcome: CallOutcome) -> tuple[int | None, int]:
        if outcome.kind not in (ReplyKind.OK, ReplyKind.TIMEOUT, ReplyKind.OUTPUT):
            return None, len(outcome.output)
        try:
            facts = json.loads(outcome.report)
            return int(facts["exit_code"]), int(facts["stdout_bytes"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise GuestLostError(f"sandbox {self.id} sent no valid report of the program's end") from error
