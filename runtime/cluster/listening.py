"""Restricts programs to listening on one address, regardless of their request.

Ray's servers listen on every interface unless the address is 127.0.0.1, without an option for that. So they run under a
seccomp filter that hands each `bind` and `listen` to us: we perform the call, with the wildcard replaced by the one
address. Invariants for the program and its children: a TCP or UDP socket is bound to that address or to loopback, or
its call fails; once we are gone, no further socket can be bound. The filter is for well-behaved programs and is not a
sandbox: it does not see io_uring. Requires Linux 5.6 (user notification, pidfd_getfd).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import ipaddress
import logging
import os
import platform
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from runtime.errors import RefusedError
from runtime.guest.confine import PR_SET_NO_NEW_PRIVS, Filter, end_with_parent, prctl
from runtime.guest.filters import KILL_PROCESS, answering

log = logging.getLogger(__name__)
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

SECCOMP_SET_MODE_FILTER = 1
SECCOMP_FILTER_FLAG_NEW_LISTENER = 8
USER_NOTIF = 0x7FC00000
NOTIF_RECEIVE, NOTIF_SEND, NOTIF_VALID = 0xC0502100, 0xC0182101, 0x40082102
NOTIF_CONTINUE = 1
NOTIF = struct.Struct("=QIIiIQ6Q")
ANSWER = struct.Struct("=QqiI")
PIDFD_GETFD = 438  # on every architecture


@dataclass(frozen=True)
class Machine:
    """System-call numbers of one processor architecture."""

    seccomp: int
    bind: int
    listen: int


MACHINES = {"x86_64": Machine(seccomp=317, bind=49, listen=50), "aarch64": Machine(seccomp=277, bind=200, listen=201)}


def replaced(family: int, host: str, address: IPAddress) -> str:
    """Returns the address to bind when a confined program asks for `host`: its own instead of all. Raises OSError
    (EACCES) for a forbidden one."""
    asked = ipaddress.ip_address(host.partition("%")[0])
    mapped = asked.ipv4_mapped if isinstance(asked, ipaddress.IPv6Address) else None
    meant: IPAddress = mapped or asked
    if meant.is_unspecified:
        meant = address
    elif meant != address and not meant.is_loopback:
        raise OSError(errno.EACCES, f"{host} is not the address given to this program")
    if family == socket.AF_INET6:
        return f"::ffff:{meant}" if meant.version == 4 else str(meant)
    if meant.version == 6:
        raise OSError(errno.EACCES, "this program has only an IPv6 address")
    return str(meant)


class ClusterListener:
    """Program that can listen on one address only, and the thread that binds its sockets. Close it at its end."""

    def __init__(self, address: IPAddress, process: subprocess.Popen[bytes], notifications: int) -> None:
        self.process = process
        self._address = address
        self._machine = MACHINES[platform.machine()]
        self._notifications = notifications
        self._stop_out, self._stop_in = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="listening", daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """Kills the confined program if it still runs, and closes the listener."""
        self.process.kill()
        self.process.wait()
        self.close()

    def close(self) -> None:
        """Ends the thread that binds sockets; from then on no confined process can bind any."""
        os.close(self._stop_in)
        self._thread.join()
        os.close(self._stop_out)
        os.close(self._notifications)

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._notifications, select.POLLIN)
        poll.register(self._stop_out, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if self._stop_out in ready or ready.get(self._notifications, 0) & select.POLLHUP:  # nobody is left
                return
            notice = bytearray(NOTIF.size)
            try:
                fcntl.ioctl(self._notifications, NOTIF_RECEIVE, notice)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR):  # the caller is gone
                    continue
                raise
            number, thread, _flags, call, _audit, _ip, *arguments = NOTIF.unpack(notice)
            refusal, proceed = 0, 0
            try:
                if self._decide(number, thread, call, arguments[0], arguments[1], arguments[2]):
                    proceed = NOTIF_CONTINUE
            except OSError as error:
                refusal = error.errno or errno.EACCES
            except Exception:
                log.exception("a socket could not be inspected and is refused")  # unanswered, its process would hang
                refusal = errno.EACCES
            with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                fcntl.ioctl(self._notifications, NOTIF_SEND, ANSWER.pack(number, 0, -refusal, proceed))

    def _decide(self, number: int, thread: int, call: int, descriptor: int, pointer: int, size: int) -> bool:
        """Decides about a confined process's `bind` or `listen`: binds here and returns False, or returns True if the
        kernel should execute the call. Raises OSError to refuse it."""
        process = _process_of(thread)
        with _their_socket(process, descriptor) as theirs:
            if theirs.family not in (socket.AF_INET, socket.AF_INET6):
                return True
            if call == self._machine.listen:
                if ipaddress.ip_address(theirs.getsockname()[0]).is_unspecified:
                    raise OSError(errno.EACCES, "listening without an address means every address")
                return True
            sockaddr = _their_memory(process, pointer, min(size, 128))
            fcntl.ioctl(self._notifications, NOTIF_VALID, struct.pack("=Q", number))  # the caller still exists
            family, host, rest = _parsed(sockaddr)
            if family != theirs.family:
                raise OSError(errno.EAFNOSUPPORT, "address and socket have different families")
            theirs.bind((replaced(family, host, self._address), *rest))
            return False


def start(
    arguments: Sequence[str],
    address: IPAddress,
    *,
    environ: Mapping[str, str],
    folder: Path,
    output: BinaryIO | int,
    descriptors: Sequence[int] = (),
) -> ClusterListener:
    """Starts a program that can listen only on `address` and loopback, and that dies with the calling thread.

    It inherits `descriptors` under the same numbers. Raises RefusedError if the kernel lacks the seccomp filter that
    this needs.
    """
    if platform.machine() not in MACHINES:
        raise RefusedError(
            f"no filter for listening sockets on {platform.machine()}",
            hint="use hosts with x86-64 or 64-bit ARM processors",
        )
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, "-I", __file__, str(theirs.fileno()), *arguments],
            pass_fds=[theirs.fileno(), *descriptors],
            env=dict(environ),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C at a terminal is for us
        )
        theirs.close()
        ours.settimeout(30)
        try:
            message, descriptors, _, _ = socket.recv_fds(ours, 256, 1)
            if not descriptors:
                raise RefusedError(
                    f"sockets cannot be confined to {address}: {message.decode(errors='replace') or 'no answer'}",
                    hint="use Linux 5.6 or newer with seccomp user notification",
                )
            return ClusterListener(address, process, descriptors[0])
        except BaseException:
            process.kill()
            process.wait()
            raise


def _process_of(thread: int) -> int:
    for line in Path(f"/proc/{thread}/status").read_text().splitlines():
        if line.startswith("Tgid:"):
            return int(line.split()[1])
    raise ProcessLookupError(errno.ESRCH, "no such thread")


def _their_socket(process: int, descriptor: int) -> socket.socket:
    """Returns a duplicate of another process's socket."""
    pidfd = os.pidfd_open(process)
    try:
        copy = _system_call(PIDFD_GETFD, ctypes.c_int(pidfd), ctypes.c_int(descriptor), ctypes.c_uint(0))
    finally:
        os.close(pidfd)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise


def _their_memory(process: int, pointer: int, size: int) -> bytes:
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        return os.pread(memory.fileno(), size, pointer)


def _parsed(sockaddr: bytes) -> tuple[int, str, tuple[int, ...]]:
    """Parses a C socket address into family, host, and the other elements of Python's address. Raises OSError."""
    if len(sockaddr) >= 16 and (family := struct.unpack_from("=H", sockaddr)[0]) == socket.AF_INET:
        (port,) = struct.unpack_from("!H", sockaddr, 2)
        return family, socket.inet_ntop(socket.AF_INET, sockaddr[4:8]), (port,)
    if len(sockaddr) >= 28 and (family := struct.unpack_from("=H", sockaddr)[0]) == socket.AF_INET6:
        (port,) = struct.unpack_from("!H", sockaddr, 2)
        (scope,) = struct.unpack_from("=I", sockaddr, 24)
        return family, socket.inet_ntop(socket.AF_INET6, sockaddr[8:24]), (port, 0, scope)
    raise OSError(errno.EINVAL, "not an internet address")


def _system_call(number: int, *arguments: ctypes.c_int | ctypes.c_uint | ctypes.c_void_p) -> int:
    """Makes a system call for which Python has no function. Raises OSError."""
    result = int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"system call {number}: {os.strerror(error)}")
    return result


def _confine() -> int:
    """Installs a seccomp filter on the calling process, permanently, that reports every `bind` and `listen`. Returns
    the notification descriptor."""
    machine = MACHINES[platform.machine()]
    asked = {machine.bind: USER_NOTIF, machine.listen: USER_NOTIF}
    program = Filter(answering(platform.machine(), asked, foreign=KILL_PROCESS))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    return _system_call(
        machine.seccomp,
        ctypes.c_uint(SECCOMP_SET_MODE_FILTER),
        ctypes.c_uint(SECCOMP_FILTER_FLAG_NEW_LISTENER),
        ctypes.c_void_p(program.address),
    )


def main(arguments: Sequence[str]) -> None:
    """Runs in the child: confines itself, sends the filter's notifications to the parent, executes the program."""
    channel = socket.socket(fileno=int(arguments[0]))
    parent = os.getppid()
    try:
        end_with_parent(signal.SIGKILL)
        if os.getppid() != parent:
            raise ProcessLookupError(errno.ESRCH, "the parent process is gone")
        notifications = _confine()
    except OSError as error:
        channel.sendall(str(error).encode())
        raise SystemExit(1) from error
    socket.send_fds(channel, [b"ok"], [notifications])
    channel.close()
    os.close(notifications)
    os.execv(arguments[1], list(arguments[1:]))  # noqa: S606 - becoming the program is the point


if __name__ == "__main__":
    main(sys.argv[1:])
