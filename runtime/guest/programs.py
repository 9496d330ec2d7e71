"""Runs programs for the host: started by the supervisor, never by a process with user code in it.

Invariants: output beyond the cap or time beyond the limit ends the whole process group, and no program makes the
supervisor wait beyond the limit, neither by not exiting nor by a descendant that keeps its output open. Processes that
leave the group live on inside the sandbox, count there, and die with it.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time

from runtime.guest import kinds, users
from runtime.guest.process import SIGKILL

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/work",
    "LANG": "C.UTF-8",
    "TMPDIR": "/tmp",  # noqa: S108
    "PYTHONHASHSEED": "0",
}
"""Base environment; the hash seed equals that of the guest's Python, so sets of text have one order in all runs."""
PATH_FOLDERS = 64
FIRST_PAUSE, LAST_PAUSE = 0.001, 0.05
"""Shortest and longest time between checks for the program's end, in seconds; a guest has no descriptor for that."""


class HinderedError(Exception):
    """Raised for a program that keeps its supervisor from watching it; the sandbox must end."""


class Ended:
    """Result of a program that has ended: exit code as in `os.waitstatus_to_exitcode`, and its output."""

    def __init__(self, kind: int, exit_code: int, stdout: bytes, stderr: bytes) -> None:
        self.kind, self.exit_code, self.stdout, self.stderr = kind, exit_code, stdout, stderr


class Start:
    """Program to start: path or name on its own PATH, arguments, environment, folder and user."""

    def __init__(self, argv: list[str], env: dict[str, str], cwd: str, user: str) -> None:
        if not argv or not argv[0]:
            raise ValueError("a program has a name")
        self.argv, self.cwd, self.account = argv, cwd, users.find(user)
        self.env = ENVIRONMENT | {"HOME": self.account.home} | env

    def spawn(self, actions: list[tuple[int, int, int]]) -> int:
        """Starts the program in its own session, with its user's rights; returns the process id. Raises OSError."""
        try:
            self._enter()
            return os.posix_spawn(self._found(), self.argv, self.env, file_actions=actions, setsid=True)
        finally:
            if self.cwd:
                os.chdir("/")

    def _enter(self) -> None:
        if not self.cwd:
            return
        try:
            os.chdir(self.cwd)
        except OSError as error:
            error.strerror = f"its working folder: {error.strerror}"
            raise

    def _found(self) -> str:
        """Returns the program's path, found as execvp(3) does in its environment. Raises OSError with the reason."""
        name = self.argv[0]
        if "/" in name:
            if not stat.S_ISREG(os.stat(name).st_mode):  # noqa: PTH116 - gVisor blocks when executing a pipe
                raise PermissionError(errno.EACCES, "not a regular file")
            return name
        found = [f"{folder or '.'}/{name}" for folder in self.env.get("PATH", "").split(":")[:PATH_FOLDERS]]
        found = [path for path in found if os.path.isfile(path)]  # noqa: PTH113
        if not found:
            raise FileNotFoundError(errno.ENOENT, f"no program {name!r} on its PATH")
        return next((path for path in found if os.access(path, os.X_OK)), found[0])


def execute(start: Start, stdin: list[bytes], seconds: float, output_bytes: int) -> Ended:
    """Runs one program to its end and returns the result. OUTPUT: more than `output_bytes` of either stream; TIMEOUT:
    more than `seconds`.

    Raises OSError if it cannot start, HinderedError if it started and cannot be watched: only the program itself can
    have exhausted the resources for that.
    """
    run = _Run(start, stdin, output_bytes)
    try:
        return run.finish(time.monotonic() + seconds)
    except OSError as error:
        raise HinderedError(str(error)) from error


class _Run:
    def __init__(self, start: Start, stdin: list[bytes], output_bytes: int) -> None:
        (stdin_out, stdin_in), (stdout_out, stdout_in), (stderr_out, stderr_in) = (os.pipe() for _ in range(3))
        theirs, ours = (stdin_out, stdout_in, stderr_in), (stdin_in, stdout_out, stderr_out)
        actions = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(theirs)]
        try:
            self._pid = users.acting_as(start.account, lambda: start.spawn(actions))
        except BaseException:
            for end in ours:
                os.close(end)
            raise
        finally:
            for end in theirs:
                os.close(end)
        self._output_bytes = output_bytes
        self._stdin, self._unsent, self._later = stdin_in, memoryview(b""), stdin[::-1]
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
            users.acting_as(users.ROOT, lambda: os.killpg(self._pid, SIGKILL))
            _, status = os.waitpid(self._pid, 0)
        for end in list(self._open):
            self._close(end)
        stdout, stderr = self._gathered.values()
        return Ended(kind, os.waitstatus_to_exitcode(status), bytes(stdout), bytes(stderr))

    def _exchange(self) -> int:
        """Transfers all of the program's input and output possible now; returns OK, or OUTPUT beyond the cap."""
        for descriptor, _ in self._poll.poll(0):
            if descriptor == self._stdin:
                self._feed()
            elif not self._gather(descriptor):
                return kinds.OUTPUT
        return kinds.OK

    def _feed(self) -> None:
        try:
            while self._unsent or self._later:
                if not self._unsent:
                    self._unsent = memoryview(self._later.pop())
                self._unsent = self._unsent[os.write(self._stdin, self._unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            pass
        self._close(self._stdin)

    def _gather(self, descriptor: int) -> bool:
        """Reads the program's available output; False once it exceeds the cap."""
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
