"""Writes a session's initial files into a fresh sandbox.

Invariants: files are written one after another, and `done` is called once, unless `stop` came first. Called from the
reactor only.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.errors import LimitError, SandboxError, StartError
from runtime.guest.wire import Op, ReplyKind, write_body
from runtime.sessions.branches import NewFile
from runtime.sessions.files import FILE_SECONDS, reason
from runtime.sessions.outcomes import CallOutcome
from runtime.sessions.ports import Port, PortRequest
from runtime.sessions.session_queue import SessionRequest

Done = Callable[[tuple[NewFile, CallOutcome] | None], None]
"""Callback with the first file that could not be written, or None."""


class Supplies:
    def __init__(self, files: tuple[NewFile, ...], terms: PortRequest) -> None:
        self.files, self._terms = files, terms
        self._port: Port | None = None
        self._request: SessionRequest | None = None

    @property
    def under_way(self) -> bool:
        return self._port is not None

    def begin(self, port: Port, done: Done) -> None:
        self._port = port
        self._write(port, 0, done)

    def stop(self) -> None:
        """Stops writing a session's initial files; the answer to a file under way is ignored."""
        if self._port is not None and self._request is not None:
            self._port.worker.withdraw(self._request)
        self._port = self._request = None

    def _write(self, port: Port, number: int, done: Done) -> None:
        if number == len(self.files):
            self._port = self._request = None
            done(None)
            return
        file, terms = self.files[number], self._terms

        def written(outcome: CallOutcome) -> None:
            if port is not self._port:
                return
            if outcome.kind is ReplyKind.OK:
                self._write(port, number + 1, done)
            else:
                self._port = self._request = None
                done((file, outcome))

        body = write_body(f"/work/{file.name}", file.data)
        request = SessionRequest(Op.WRITE, port.number, body, FILE_SECONDS, written, terms.caller, terms.priority)
        self._request = request
        port.worker.turn(request)


def unwritten(file: NewFile, outcome: CallOutcome) -> SandboxError:
    """Returns the error for a session's initial file that could not be written."""
    if outcome.kind is ReplyKind.REFUSED:
        return LimitError(f"the file {file.name} cannot be written to /work: {reason(outcome)}")
    return StartError(f"the sandbox ended while the file {file.name} was written", hint="Open a new session.")
