"""Starts a private broker: a child process that serves one connection and ends with it.

Invariants: the child serves only its parent's socket, which nobody else can reach; it ends when that socket is closed,
even if the parent was killed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import subprocess
import sys

from runtime.errors import InfrastructureError
from runtime.settings import BrokerSettings

log = logging.getLogger(__name__)
END_SECONDS = 15.0


def start(settings: BrokerSettings) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Starts a private broker; returns our end of the connection, and the process for `wait_for`.

    Returns immediately; problems with the machine or the settings are reported on the connection. Raises
    InfrastructureError if no process can be started.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-m", "runtime.broker", "--settings", "-", "--connection", str(theirs.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,  # ^C is for us: the broker ends with us
        )
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(settings.model_dump_json().encode())
    except OSError as error:
        ours.close()
        raise InfrastructureError(f"no broker could be started: {error}") from error
    finally:
        theirs.close()
    return ours, process


def wait_for(process: subprocess.Popen[bytes], seconds: float = END_SECONDS) -> None:
    """Waits until the broker has ended, after its connection was closed.

    A broker that does not end in time is killed; its keeper kills its sandboxes, and the next start sweeps them.
    """
    if process.poll() is None and not _has_ended(process.pid, seconds):
        log.warning("broker %d did not end within %g s and is killed", process.pid, seconds)
        process.kill()
    process.wait()


def _has_ended(pid: int, seconds: float) -> bool:
    """Waits at most `seconds` for a child's end, without the 50 ms polling of `Popen.wait`; True if it ended."""
    with contextlib.closing(os.fdopen(os.pidfd_open(pid), "rb", buffering=0)) as ended:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
