"""Forks workers: what all of them load takes seconds, and is loaded once.

    python -I -m appliance.worker.forkserver --socket-fd N

The core sends a request, with the worker's three descriptors: its end of the connection to the ledger, its standard
error, and its settings. It is told the worker's process id, then the wait status; the process stays until the core says
that it is done. It may ask for a spare, too: another process like this one, with a connection of its own, which says
its process id there and waits until it is asked for a worker.

What always holds: this process has no ledger, no model and no thread; each worker, and each spare, is forked from it as
it was before the first, so none has anything of another. Workers die with it, and it dies with the core, as its spare
does; after `IDLE_SECONDS` without work it ends, and its memory is free.
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
"""That a spare waits for work once the other one has ended."""
ADOPTED_SECONDS = 5.0
SPARE = "assay-spare"
"""Its name among the processes, until it has work."""
_MOST = 1 << 16


def serve(requests: socket.socket, instead_of: int | None = None) -> list[str] | None:
    """Forks a worker for each request. Returns its arguments in a worker, and None here when nothing more comes.

    A spare begins here, too: `instead_of` is a descriptor of the process that it waits for the end of."""
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
        if "spare_of" in request:  # its worker ended just then
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
            os.nice(request["nice"])
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
            if not descriptors:  # the core is done with it
                break
            if spare := _spare(json.loads(message)["spare_of"], descriptors[0], requests, ended):
                return serve(*spare)
        os.close(ended)
        os.waitpid(worker, 0)
    return None


def _load(libraries: list[str]) -> None:
    """Where one is missing, the worker says so, as it would alone."""
    with without_collecting():
        for name in libraries:
            with suppress(Exception):
                importlib.import_module(name)


def _code(worker: int) -> int:
    """How it ended; it is not waited for yet, so its process id is nobody else's."""
    ended = os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _spare(core: int, line: int, *others: socket.socket | int) -> tuple[socket.socket, int] | None:
    """Forks a spare, which the core adopts: what forked it ends. There, gives its connection and a descriptor of this
    process, and closes the others; None here."""
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
        os._exit(5)  # nobody waits for it any more
    return requests, this


def _name(name: str) -> None:
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)


def _first_to_go() -> None:
    """Where memory runs out, the kernel ends a worker before the core."""
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
