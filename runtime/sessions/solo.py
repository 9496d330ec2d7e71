"""A sandbox of its own for one caller: Python that keeps its names, files under /work and /tmp, programs.

The blocking face of a worker that lives on the reactor's thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from runtime.errors import BadRequestError, InfrastructureError
from runtime.guest.wire import Kind, Op
from runtime.sandbox import CallResult, CallStatus, ExecResult, Limits, Tier
from runtime.sessions.endings import SENTENCES, STATUS_OF, told
from runtime.sessions.worker import Ending, Lost, Worker

READ_BYTES = 8 << 20
"""The most that `read` can be asked for."""
GRACE_SECONDS = 1.0
"""How much longer than its program the supervisor may take before the whole sandbox is killed."""
FILE_SECONDS = 20.0


def checked_path(path: str) -> str:
    """A canonical name under /work or /tmp; the guest checks what is there. Raises BadRequestError for any other."""
    parts = path.split("/")
    plain = all(part not in ("", ".", "..") and len(part.encode(errors="replace")) <= 255 for part in parts[1:])
    if len(parts) < 3 or parts[0] or parts[1] not in ("work", "tmp") or not plain or "\0" in path or len(path) > 1024:
        raise BadRequestError(f"{path!r} is no plain path under /work or /tmp")
    return path


class GVisorSandbox:
    """The one implementation of `runtime.sandbox.Sandbox`; made by `GVisorSessions.sandbox`."""

    def __init__(self, worker: Worker, limits: Limits, call_soon: Callable[[Callable[[], None]], None]) -> None:
        self.id = worker.id
        self.limits = limits
        self._worker, self._call_soon = worker, call_soon
        self._closed = False

    def run(self, code: str, *, seconds: float | None = None) -> CallResult:
        """After a call that had to be killed the sandbox is gone: later calls raise InfrastructureError."""
        limit = self._limit(seconds)
        ending = self._ask(Op.RUN, code.encode("utf-8", "surrogatepass"), limit)
        status = CallStatus.OK if ending.kind is Kind.OK else CallStatus.EXCEPTION
        error, trace = told(ending)
        if ending.kind not in (Kind.OK, Kind.EXCEPTION):
            status = STATUS_OF.get(ending.kind, CallStatus.DIED)
            memory, output = self.limits.memory_mib, self.limits.output_bytes
            error, trace = SENTENCES[status].format(seconds=limit, memory=memory, output=output), ""
            self._call_soon(lambda: self._worker.lose(Lost.DIED))
        return CallResult(
            status=status,
            output=ending.output.decode(errors="replace"),
            error="" if status is CallStatus.OK else error,
            traceback=trace,
            seconds=ending.seconds,
            tier=Tier.SANDBOX,
            sandbox=self.id,
        )

    def exec(self, argv: Sequence[str], *, stdin: bytes = b"", seconds: float | None = None) -> ExecResult:
        """Runs a program by its full path; one that takes too long is killed with its group, the sandbox lives on."""
        if not argv or not argv[0].startswith("/") or any("\0" in word for word in argv):
            raise BadRequestError("a program is named by its full path, and no word may hold a NUL")
        limit = self._limit(seconds)
        asked = {"argv": list(argv), "seconds": limit, "output_bytes": self.limits.output_bytes}
        ending = self._ask(Op.EXEC, json.dumps(asked).encode() + b"\n" + stdin, limit + GRACE_SECONDS)
        if ending.kind is Kind.REFUSED:
            raise BadRequestError(f"{argv[0]} cannot be run: {_text(ending)}")
        exit_code, cut = self._program_facts(ending)
        status = {Kind.OK: CallStatus.OK, Kind.TIMEOUT: CallStatus.TIMEOUT, Kind.OUTPUT: CallStatus.OUTPUT}.get(
            ending.kind if isinstance(ending.kind, Kind) else Kind.DIED, STATUS_OF.get(ending.kind, CallStatus.DIED)
        )
        return ExecResult(
            status=status,
            exit_code=exit_code if status is CallStatus.OK else None,
            stdout=ending.output[:cut],
            stderr=ending.output[cut:],
            seconds=ending.seconds,
        )

    def write(self, path: str, data: bytes) -> None:
        body = json.dumps({"path": checked_path(path)}).encode() + b"\n" + data
        ending = self._ask(Op.WRITE, body, FILE_SECONDS)
        self._require_ok(ending, path, "written")

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        if not 0 < max_bytes <= READ_BYTES:
            raise BadRequestError(f"between 1 and {READ_BYTES} bytes can be read at once, not {max_bytes}")
        body = json.dumps({"path": checked_path(path), "max_bytes": max_bytes}).encode() + b"\n"
        ending = self._ask(Op.READ, body, FILE_SECONDS)
        self._require_ok(ending, path, "read")
        return ending.output

    def forbid(self) -> None:
        """From now on as if closed; the pool that ends removes what is left."""
        self._closed = True

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        done: Future[None] = Future()

        def end() -> None:
            self._worker.lose(Lost.DIED)
            self._worker.when_removed(lambda: done.set_result(None))

        self._call_soon(end)
        done.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _limit(self, seconds: float | None) -> float:
        if seconds is not None and not seconds > 0:
            raise BadRequestError(f"a call cannot be limited to {seconds} seconds")
        return min(self.limits.call_seconds, seconds or self.limits.call_seconds)

    def _ask(self, op: Op, body: bytes, limit: float) -> Ending:
        if self._closed:
            raise BadRequestError(f"sandbox {self.id} is closed")
        answer: Future[Ending] = Future()
        self._call_soon(lambda: self._worker.send(op, 0, body, limit, answer.set_result))
        ending = answer.result()
        if isinstance(ending.kind, Lost) and not ending.blamed:
            raise InfrastructureError(f"sandbox {self.id} is gone", hint="Take a new one; its state is lost.")
        return ending

    def _require_ok(self, ending: Ending, path: str, what: str) -> None:
        if ending.kind is Kind.REFUSED:
            raise BadRequestError(f"{path} cannot be {what}: {_text(ending)}")
        if ending.kind is not Kind.OK:
            raise InfrastructureError(f"sandbox {self.id} ended while {path} was {what}")

    def _program_facts(self, ending: Ending) -> tuple[int | None, int]:
        if ending.kind not in (Kind.OK, Kind.TIMEOUT, Kind.OUTPUT):
            return None, len(ending.output)
        try:
            facts = json.loads(ending.report)
            return int(facts["exit_code"]), int(facts["stdout_bytes"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InfrastructureError(f"sandbox {self.id} does not say how the program ended") from error


def _text(ending: Ending) -> str:
    return ending.report.decode(errors="replace")[:300]
