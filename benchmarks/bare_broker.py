"""A broker that isolates nothing, to compare with: it starts the guest's own worker as a plain process of this host.

Only the benchmarks' own snippets ever run there. It speaks the real protocol, so the client in front of it is the real
one, and what differs is the sandbox alone.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime.broker import messages
from runtime.broker import messages as m
from runtime.guest import wire
from runtime.profile import Profile

REPOSITORY = Path(__file__).resolve().parents[1]
PYTHON = "/usr/bin/python3"


def start_worker(profile: Profile) -> subprocess.Popen[bytes]:
    """The worker of that mode, its frames on standard input and output."""
    script = REPOSITORY / "runtime/guest/worker.py"
    limits = profile.model_copy(update={"process_memory_mib": 4096}).worker_limits()
    arguments = [script.name, profile.mode, limits]
    code = f"import runpy, sys; sys.path.insert(0, {str(REPOSITORY)!r}); sys.argv = {arguments!r}; "
    code += f"runpy.run_path({str(script)!r}, run_name='__main__')"
    return subprocess.Popen([PYTHON, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


@contextmanager
def bare_broker(path: Path) -> Iterator[None]:
    """Listens there until the block ends."""
    workers: list[subprocess.Popen[bytes]] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen(4)

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=_talk, args=(connection, workers), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for worker in workers:
                worker.kill()
                worker.wait()


def _talk(connection: socket.socket, workers: list[subprocess.Popen[bytes]]) -> None:
    with connection:
        while data := connection.recv(m.PACKET_BYTES):
            request = m.REQUEST.validate_json(data)
            if isinstance(request, m.ClientHello):
                greeting = m.BrokerWelcome(
                    request=request.request, protocol=m.PROTOCOL, pid=0, backends={"gvisor": "none"}
                )
                messages.send(connection, messages.pack(greeting))
            elif isinstance(request, m.Launch) and isinstance(request.wanted, Profile):
                worker = start_worker(request.wanted)
                workers.append(worker)
                assert worker.stdin is not None
                assert worker.stdout is not None
                worker.stdout.read(wire.REPLY.size)  # READY
                name = f"bare-{len(workers)}"
                launched = m.Launched(request=request.request, box=name, profile=request.wanted)
                ends = (worker.stdin.fileno(), worker.stdout.fileno())
                messages.send(connection, messages.pack(launched), ends)
            else:
                print(f"the bare broker does not do {request.kind}", file=sys.stderr)
                messages.send(connection, messages.pack(m.Done(request=request.request)))
