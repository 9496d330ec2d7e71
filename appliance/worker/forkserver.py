"""Fork server for workers: loads the slow libraries once and forks each worker.

  python -I -m appliance.worker.forkserver --socket-fd N

The core sends a request with the worker's three descriptors: its end of the ledger connection, its standard error, and
its settings. The server replies with the worker's process id, later with its wait status; the zombie stays until the
core releases it. The core may also request a spare: a second fork server with its own connection, which reports its
process id there and waits for work.

Invariants: this process has no ledger, model or thread; every worker and spare is forked from its initial state, so
none inherits anything from another. Workers die with this process; it and its spare die with the core. After
`IDLE_SECONDS` without work the process exits and frees its memory.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import select
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from appliance.system.ending import end_with
from appliance.system.loading import without_collecting

IDLE_SECONDS = 600.0
SPARE_SECONDS = 60.0
"""Seconds that a spare waits for work after the first fork server ended."""
ADOPTED_SECONDS = 5.0
SPARE = "assay-spare"
"""Process name of a spare until it gets work."""
_MOST = 1 << 16


def serve(requests: socket.socket, instead_of: int | None = None) -> list[str] | None:
    """Runs the fork server: forks a worker for each request. Returns the worker's arguments in a worker, None in the
    server when requests end. In a spare, `instead_of` is a pidfd of the server that it replaces."""
    seconds = IDLE_SECONDS
    if instead_of is not None:
        select.select([requests.fileno(), instead_of], [], [])
        os.close(instead_of)
        seconds = SPARE_SECONDS
    while select.select([requests], [], [], seconds)[0]:
        seconds = IDLE_SECONDS
        message, descriptors, _, _ = socket.recv_fds(requests, _MOST, 3)
        if not message:
            return None
        if instead_of is not None:
            _name(Path(sys.executable).name)
        request = json.loads(message)
        if "spare_of" in request:  # the worker ended just before
            if spare := _spare(request["spare_of"], descriptors[0], requests):
                return serve(*spare)
            continue
        ledger, errors, settings = descriptors
        os.dup2(errors, 2)
        os.close(errors)
        _load(request["libraries"])
        server, worker = os.getpid(), os.fork()
        if worker == 0:
            requests.close()
            os.setpgid(0, 0)
            _first_to_go()
            end_with(server)
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
        ended = os.pidfd_open(worker)
        watched = [ended, requests.fileno()]
        while True:
            if ended in select.select(watched, [], [])[0]:
                watched.remove(ended)
                requests.send(json.dumps({"code": _code(worker)}).encode())
                continue
            message, descriptors, _, _ = socket.recv_fds(requests, _MOST, 1)
            if not message:
                return None
            if not descriptors:  # the core released the worker
                break
            if spare := _spare(json.loads(message)["spare_of"], descriptors[0], requests, ended):
                return serve(*spare)
        os.close(ended)
        os.waitpid(worker, 0)
    return None


def _load(libraries: list[str]) -> None:
    """Imports the libraries into the fork server ahead of need; ignores failures, which the worker reports on its own
    import."""
    with without_collecting():
        for name in libraries:
            with suppress(Exception):
                importlib.import_module(name)


def _code(worker: int) -> int:
    """Returns the worker's exit code without reaping it, so its process id is not reused."""
    ended = os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _spare(core: int, line: int, *others: socket.socket | int) -> tuple[socket.socket, int] | None:
    """Forks a spare fork server, which the core adopts through a dying intermediate process. In the spare, returns its
    connection and a pidfd of this process, and closes `others`; returns None here."""
    this = os.pidfd_open(os.getpid())
    between = os.fork()
    if between != 0:
        os.waitpid(between, 0)
        os.close(line)
        os.close(this)
        return None
    between = os.getpid()
    if os.fork() != 0:
        os._exit(0)
    for other in others:
        os.close(other if isinstance(other, int) else other.detach())
    os.setpgid(0, 0)
    _name(SPARE)
    latest = time.monotonic() + ADOPTED_SECONDS
    while os.getppid() == between and time.monotonic() < latest:
        time.sleep(0.001)
    end_with(core)
    requests = socket.socket(fileno=line)
    try:
        requests.send(json.dumps({"pid": os.getpid()}).encode())
    except OSError:
        os._exit(5)  # the core is gone
    return requests, this


def _name(name: str) -> None:
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)


def _first_to_go() -> None:
    """Makes the kernel's OOM killer choose a worker before the core."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


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
