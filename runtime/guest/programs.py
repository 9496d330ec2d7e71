"""Runs programs for the host: started by the supervisor, never by a process with user code in it.

What always holds: output beyond the cap and time beyond the limit end the whole process group, and nothing that the
program does makes the supervisor wait beyond the limit: neither an end that never comes nor a descendant that keeps its
output open. What leaves the group lives on inside the sandbox, is counted there, and dies with it.
"""

from __future__ import annotations

import os
import select
import time

from runtime.guest import kinds
from runtime.guest.process import SIGKILL

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/work",
    "LANG": "C.UTF-8",
    "TMPDIR": "/tmp",  # noqa: S108
    "PYTHONHASHSEED": "0",
}
"""The seed as of the guest's own Python: sets of text have the same order in every run."""
FIRST_PAUSE, LAST_PAUSE = 0.001, 0.05
"""Seconds between looks at whether the program has ended, at first and at most; a guest has no descriptor for that."""


class HinderedError(Exception):
    """A program keeps its supervisor from watching it; the sandbox has to end."""


class Ended:
    """Says how a program ended: its exit code as `os.waitstatus_to_exitcode` has it, and what it wrote."""

    def __init__(self, kind: int, exit_code: int, stdout: bytes, stderr: bytes) -> None:
        self.kind, self.exit_code, self.stdout, self.stderr = kind, exit_code, stdout, stderr


def execute(argv: list[str], stdin: bytes, seconds: float, output_bytes: int) -> Ended:
    """Runs one program to its end. OUTPUT: more than `output_bytes` of either; TIMEOUT: more than `seconds`.

    Raises OSError when it cannot be started, ValueError when it is not named by its full path, HinderedError when it
    was started and cannot be watched: then it ran, and only it can have taken what is needed for that.
    """
    if not argv or "/" not in argv[0]:
        raise ValueError("a program is named by its full path")
    run = _Run(argv, stdin, output_bytes)
    try:
        return run.finish(time.monotonic() + seconds)
    except OSError as error:
        raise HinderedError(str(error)) from error


class _Run:
    def __init__(self, argv: list[str], stdin: bytes, output_bytes: int) -> None:
        (stdin_out, stdin_in), (stdout_out, stdout_in), (stderr_out, stderr_in) = (os.pipe() for _ in range(3))
        theirs, ours = (stdin_out, stdout_in, stderr_in), (stdin_in, stdout_out, stderr_out)
        actions = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(theirs)]
        try:
            self._pid = os.posix_spawn(argv[0], argv, ENVIRONMENT, file_actions=actions, setsid=True)
        except OSError:
            for end in ours:
                os.close(end)
            raise
        finally:
            for end in theirs:
                os.close(end)
        self._output_bytes = output_bytes
        self._stdin, self._unsent = stdin_in, memoryview(stdin)
        self._gathered = {stdout_out: bytearray(), stderr_out: bytearray()}
        self._poll = select.poll()
        for end in ours:
            os.set_blocking(end, False)
            self._poll.register(end, select.POLLOUT if end == stdin_in else select.POLLIN)
        self._open = set(ours)

    def finish(self, deadline: float) -> Ended:
        kind, pause = kinds.OK, FIRST_PAUSE
        ended, status = 0, 0
        while kind == kinds.OK and not ended:
            left = deadline - time.monotonic()
            if left <= 0:
                kind = kinds.TIMEOUT
                break
            quiet = not self._poll.poll(min(left, pause) * 1000)
            kind = self._exchange()
            ended, status = os.waitpid(self._pid, os.WNOHANG)
            pause = min(2 * pause, LAST_PAUSE) if quiet else FIRST_PAUSE
        if kind == kinds.OK:
            kind = self._exchange()
        if not ended:
            os.killpg(self._pid, SIGKILL)
            _, status = os.waitpid(self._pid, 0)
        for end in list(self._open):
            self._close(end)
        stdout, stderr = self._gathered.values()
        return Ended(kind, os.waitstatus_to_exitcode(status), bytes(stdout), bytes(stderr))

    def _exchange(self) -> int:
        """Takes and gives all that is possible now."""
        for descriptor, _ in self._poll.poll(0):
            if descriptor == self._stdin:
                self._feed()
            elif not self._gather(descriptor):
                return kinds.OUTPUT
        return kinds.OK

    def _feed(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._stdin, self._unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            pass
        self._close(self._stdin)

    def _gather(self, descriptor: int) -> bool:
        """Gives False once there is more than may be."""
        gathered = self._gathered[descriptor]
        while len(gathered) <= self._output_bytes:
            try:
                data = os.read(descriptor, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                self._close(descriptor)
                return True
            gathered += data
        del gathered[self._output_bytes :]
        return False

    def _close(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        self._open.discard(descriptor)
        os.close(descriptor)
