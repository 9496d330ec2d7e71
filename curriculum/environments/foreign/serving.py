"""Keeps what a server prints to its standard error, for when it dies. It runs in the guest, before a world's program.

What always holds: a server never waits for a reader of its errors, because a process of its own reads them all and
keeps the end. Nothing of it is shown while the server lives.
"""

import contextlib
import os
import select
import signal
import sys
import traceback

KEPT_BYTES, TOLD_CHARS = 4_096, 700
SERVER_SECONDS = 3_600
LAST_SECONDS = 2.0
"""Seconds for which the errors of a dead server are waited for: something that it started may hold them open."""


class Errors:
    """The end of a server's errors, read from the process that keeps them."""

    __slots__ = ("_kept", "_server")

    def __init__(self, server: int, kept: int) -> None:
        self._server, self._kept = server, kept

    def last(self) -> str:
        """Ends the server; returns the end of its errors in one line, or nothing."""
        for end in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                end(self._server, signal.SIGKILL)
        found = b""
        while select.select([self._kept], [], [], LAST_SECONDS)[0]:
            more = os.read(self._kept, KEPT_BYTES)
            if not more:
                break
            found += more
        lines = [line.strip() for line in found.decode("utf-8", "replace").splitlines() if line.strip(" ^~")]
        text = "; ".join(lines)
        plain = "".join(letter if letter.isprintable() else " " for letter in text)
        return plain if len(plain) <= TOLD_CHARS else "... " + plain[-TOLD_CHARS:]


def fork_server(run: "object", stdin: int, stdout: int, kept: "tuple[int, ...]" = ()) -> Errors:
    """Forks a server that calls `run` with these as its standard input and output, and no other open file but `kept`.
    Returns its errors."""
    errors, told = os.pipe(), os.pipe()
    keeper = os.fork()
    if keeper == 0:
        _keep(errors, told)
    server = os.fork()
    if server:
        for end in (*errors, told[1]):
            os.close(end)
        return Errors(server, told[0])
    try:
        os.setsid()
        for number, end in enumerate((stdin, stdout, errors[1])):
            os.dup2(end, number)
        for number in range(3, 1024):
            if number not in kept:
                with contextlib.suppress(OSError):
                    os.close(number)
        sys.stdin, sys.stdout, sys.stderr = (open(n, "w" if n else "r", encoding="utf-8") for n in range(3))  # noqa: PTH123, SIM115
        signal.signal(signal.SIGURG, signal.SIG_IGN)
        signal.alarm(SERVER_SECONDS)
        run()  # type: ignore[operator]
    except BaseException as error:  # noqa: BLE001 - the server has ended, for any reason
        if not (isinstance(error, SystemExit) and not error.code):
            os.write(2, "".join(traceback.format_exception(error)).encode("utf-8", "replace")[-KEPT_BYTES:])
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(0)


def _keep(errors: "tuple[int, int]", told: "tuple[int, int]") -> None:
    """Reads a server's errors to their end, and then gives the last of them."""
    end = b""
    try:
        os.setsid()
        signal.signal(signal.SIGURG, signal.SIG_IGN)
        for number in range(1024):
            if number not in (errors[0], told[1]):
                with contextlib.suppress(OSError):
                    os.close(number)
        while more := os.read(errors[0], 1 << 16):
            end = (end + more)[-KEPT_BYTES:]
        os.write(told[1], end)
    finally:
        os._exit(0)
