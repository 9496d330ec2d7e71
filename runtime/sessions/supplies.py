"""The files that a session begins with, on their way into a fresh sandbox.

What always holds: one after the other, and `done` is called once, unless `stop` came first. Called from the reactor
only.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.errors import InfrastructureError, LimitError, SandboxError
from runtime.guest.wire import Kind, Op, write_body
from runtime.sessions.branches import NewFile
from runtime.sessions.endings import Ending
from runtime.sessions.files import FILE_SECONDS, reason
from runtime.sessions.places import Place, Wish
from runtime.sessions.request import Request

Done = Callable[[tuple[NewFile, Ending] | None], None]
"""Told of the first file that could not be written, or of none."""


class Supplies:
    def __init__(self, files: tuple[NewFile, ...], wish: Wish) -> None:
        self.files, self._wish = files, wish
        self._place: Place | None = None
        self._request: Request | None = None

    @property
    def under_way(self) -> bool:
        return self._place is not None

    def begin(self, place: Place, done: Done) -> None:
        self._place = place
        self._write(place, 0, done)

    def stop(self) -> None:
        """They are not wanted there any more."""
        if self._place is not None and self._request is not None:
            self._place.worker.withdraw(self._request)
        self._place = self._request = None

    def _write(self, place: Place, number: int, done: Done) -> None:
        if number == len(self.files):
            self._place = self._request = None
            done(None)
            return
        file, wish = self.files[number], self._wish

        def written(ending: Ending) -> None:
            if place is not self._place:
                return
            if ending.kind is Kind.OK:
                self._write(place, number + 1, done)
            else:
                self._place = self._request = None
                done((file, ending))

        body = write_body(f"/work/{file.name}", file.data)
        request = Request(Op.WRITE, place.number, body, FILE_SECONDS, written, wish.caller, wish.priority)
        self._request = request
        place.worker.turn(request)


def unwritten(file: NewFile, ending: Ending) -> SandboxError:
    """Why a session cannot begin with a file."""
    if ending.kind is Kind.REFUSED:
        return LimitError(f"the file {file.name} cannot be written to /work: {reason(ending)}")
    return InfrastructureError(f"the sandbox ended while the file {file.name} was written", hint="Open a new session.")
