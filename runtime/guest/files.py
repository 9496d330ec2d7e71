"""Files and programs, asked for by the host and done by the supervisor, which user code cannot have poisoned.

The tree below /work and /tmp belongs to hostile code: every step of a path is opened without following links, and only
a regular file with one name is ever read or replaced.
"""

from __future__ import annotations

import json
import os
import select
import signal
import stat
import time
from typing import Any

from runtime.guest.wire import Kind, Op, Request

ROOTS = ("work", "tmp")


class RefusedError(Exception):
    """What was asked for is not there, or is not a plain file."""


def answer(request: Request) -> tuple[Kind, bytes, bytes]:
    """Kind, content and report for one EXEC, READ or WRITE."""
    line, _, content = request.body.partition(b"\n")
    asked: dict[str, Any] = json.loads(line)
    try:
        if request.op == Op.READ:
            return Kind.OK, read(asked["path"], asked["max_bytes"]), b""
        if request.op == Op.WRITE:
            write(asked["path"], content)
            return Kind.OK, b"", b""
        return execute(asked["argv"], content, asked["seconds"], asked["output_bytes"])
    except RefusedError as error:
        return Kind.REFUSED, b"", str(error).encode()
    except OSError as error:
        return Kind.REFUSED, b"", os.strerror(error.errno or 0).encode()


def _open_parent(path: str) -> tuple[int, str]:
    parts = path.split("/")[1:]
    if len(parts) < 2 or parts[0] not in ROOTS or any(part in ("", ".", "..") for part in parts):
        raise RefusedError("only plain names under /work and /tmp can be used")
    folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    for part in parts[:-1]:
        try:
            inner = _open_folder(part, folder)
        finally:
            os.close(folder)
        folder = inner
    return folder, parts[-1]


def _open_folder(name: str, folder: int) -> int:
    """Compares what was opened with what stood there: gVisor follows a link in spite of O_NOFOLLOW with O_DIRECTORY."""
    stood = os.stat(name, dir_fd=folder, follow_symlinks=False)
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    opened = os.fstat(inner)
    if not stat.S_ISDIR(stood.st_mode) or (stood.st_dev, stood.st_ino) != (opened.st_dev, opened.st_ino):
        os.close(inner)
        raise RefusedError("a folder of the path is a link")
    return inner


def _plain(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1


def read(path: str, max_bytes: int) -> bytes:
    folder, name = _open_parent(path)
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        found = os.fstat(file)
        if not _plain(found):
            raise RefusedError("not a regular file with one name")
        if found.st_size > max_bytes:
            raise RefusedError(f"{found.st_size} bytes, more than the {max_bytes} asked for")
        data = b""
        while len(data) <= max_bytes and (more := os.read(file, max_bytes + 1 - len(data))):
            data += more
        if len(data) > max_bytes:
            raise RefusedError(f"grew beyond the {max_bytes} bytes asked for")
        return data
    finally:
        os.close(file)


def write(path: str, data: bytes) -> None:
    """Writes beside the name and renames over it, so that what stood there, a link for one, is replaced unopened."""
    folder, name = _open_parent(path)
    temporary = f".{os.getpid()}.{time.monotonic_ns()}"
    try:
        try:
            if not _plain(os.stat(name, dir_fd=folder, follow_symlinks=False)):
                raise RefusedError("not a regular file with one name")
        except FileNotFoundError:
            pass
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
        except OSError:
            os.unlink(temporary, dir_fd=folder)
            raise
        finally:
            os.close(file)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


def execute(argv: list[str], stdin: bytes, seconds: float, output_bytes: int) -> tuple[Kind, bytes, bytes]:
    """Runs one program to its end; output is standard output, then standard error as the report says.

    More than `output_bytes` of either, or more than `seconds`, ends its whole process group.
    """
    if "/" not in argv[0]:
        raise RefusedError("a program is named by its full path")
    pipes = [os.pipe() for _ in range(3)]
    (stdin_out, stdin_in), (stdout_out, stdout_in), (stderr_out, stderr_in) = pipes
    actions = [
        (os.POSIX_SPAWN_DUP2, stdin_out, 0),
        (os.POSIX_SPAWN_DUP2, stdout_in, 1),
        (os.POSIX_SPAWN_DUP2, stderr_in, 2),
    ]
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/work", "LANG": "C.UTF-8", "TMPDIR": "/tmp"}  # noqa: S108
    try:
        pid = os.posix_spawn(argv[0], argv, environment, file_actions=actions, setsid=True)
    except OSError:
        for ends in pipes:
            for end in ends:
                os.close(end)
        raise
    for end in (stdin_out, stdout_in, stderr_in):
        os.close(end)
    kind, texts = _exchange(stdin_in, stdin, stdout_out, stderr_out, time.monotonic() + seconds, output_bytes)
    if kind is not Kind.OK:
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    for end in (stdout_out, stderr_out):
        os.close(end)
    facts = {"exit_code": os.waitstatus_to_exitcode(status), "stdout_bytes": len(texts[0])}
    return kind, texts[0] + texts[1], json.dumps(facts).encode()


def _exchange(
    stdin_in: int, stdin: bytes, stdout_out: int, stderr_out: int, deadline: float, output_bytes: int
) -> tuple[Kind, tuple[bytes, bytes]]:
    gathered = {stdout_out: bytearray(), stderr_out: bytearray()}
    open_ends = set(gathered)
    poll = select.poll()
    for end in gathered:
        poll.register(end, select.POLLIN)
    os.set_blocking(stdin_in, False)
    poll.register(stdin_in, select.POLLOUT)
    view, kind, feeding = memoryview(stdin), Kind.OK, True
    while open_ends and kind is Kind.OK:
        left = deadline - time.monotonic()
        if left <= 0:
            kind = Kind.TIMEOUT
            break
        for descriptor, _ in poll.poll(left * 1000):
            if descriptor == stdin_in:
                try:
                    view = view[os.write(stdin_in, view) :] if view else view
                except BrokenPipeError:
                    view = view[:0]
                if not view:
                    poll.unregister(stdin_in)
                    os.close(stdin_in)
                    feeding = False
                continue
            data = os.read(descriptor, 1 << 16)
            if not data:
                poll.unregister(descriptor)
                open_ends.discard(descriptor)
            gathered[descriptor] += data
            if len(gathered[descriptor]) > output_bytes:
                del gathered[descriptor][output_bytes:]
                kind = Kind.OUTPUT
    if feeding:
        os.close(stdin_in)
    return kind, (bytes(gathered[stdout_out]), bytes(gathered[stderr_out]))
