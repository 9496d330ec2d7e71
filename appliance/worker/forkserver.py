"""Forks workers: what all of them load takes seconds, and is loaded once.

    python -I -m appliance.worker.forkserver --socket-fd N

The core sends a request, with the worker's three descriptors: its end of the connection to the ledger, its standard
error, and its settings. It is told the worker's process id, then the wait status; the process stays until the core says
that it is done.

What always holds: this process has no ledger, no model and no thread; each worker is forked from it as it was before
the first, so none has anything of another. Workers die with it, and it dies with the core; after `IDLE_SECONDS` without
work it ends, and its memory is free.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

IDLE_SECONDS = 600.0
_PR_SET_PDEATHSIG = 1
_MOST = 1 << 16


def serve(requests: socket.socket) -> list[str] | None:
    """Forks a worker for each request. Returns its arguments in a worker, and None here when nothing more comes."""
    while select.select([requests], [], [], IDLE_SECONDS)[0]:
        message, descriptors, _, _ = socket.recv_fds(requests, _MOST, 3)
        if not message:
            return None
        request = json.loads(message)
        ledger, errors, settings = descriptors
        os.dup2(errors, 2)
        os.close(errors)
        gc.disable()  # nothing of what is loaded is garbage
        for name in request["libraries"]:
            # Where one is missing, the worker says so, as it would alone.
            with suppress(Exception):
                importlib.import_module(name)
        gc.freeze()  # what is there is shared with the worker, and a collection would copy it
        gc.enable()
        server, worker = os.getpid(), os.fork()
        if worker == 0:
            requests.close()
            os.setpgid(0, 0)
            os.nice(request["nice"])
            _first_to_go()
            _die_with(server)
            for kept in (ledger, settings):
                os.set_inheritable(kept, True)
            places = {"LEDGER": str(ledger), "SETTINGS": f"/proc/self/fd/{settings}"}
            return [places.get(word, word) for word in request["arguments"]]
        os.close(ledger)
        os.close(settings)
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, 2)
        os.close(nobody)
        with suppress(OSError):
            os.setpgid(worker, worker)
        requests.send(json.dumps({"pid": worker}).encode())
        ended = os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        killed = ended.si_code != os.CLD_EXITED
        requests.send(json.dumps({"code": -ended.si_status if killed else ended.si_status}).encode())
        if not requests.recv(_MOST):
            return None
        os.waitpid(worker, 0)
    return None


def _first_to_go() -> None:
    """Where memory runs out, the kernel ends a worker before the core."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def _die_with(parent: int) -> None:
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != parent:
        os._exit(5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket-fd", type=int, required=True)
    # Torch's threads sleep while they wait: spinning ones starve the sandboxes and each other on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    work = serve(socket.socket(fileno=parser.parse_args().socket_fd))
    if work is not None:
        program, *sys.argv[1:] = work
        if program:
            os.execv(program, [program, *sys.argv[1:]])  # noqa: S606 - a list, and no shell
        importlib.import_module("appliance.worker.__main__").run(sys.argv[1:])
