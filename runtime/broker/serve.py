"""Builds a broker's parts in order, serves until a signal or the end of its one connection, and takes them down.

What always holds: whatever ends it short of SIGKILL, its sandboxes are gone before the process is; after SIGKILL the
keeper kills them and the next start sweeps. The main thread only waits for signals.
"""

from __future__ import annotations

import logging
import resource
import signal
import socket
import sys
import threading
from concurrent.futures import Future
from pathlib import Path

from pydantic import ValidationError

from runtime.backends.backend import Backend
from runtime.backends.gvisor_detached import GVisor
from runtime.backends.gvisor_find import find_runsc, runsc_version
from runtime.backends.site import Site
from runtime.backends.sweep import sweep
from runtime.broker.failures import failed
from runtime.broker.listening import Listener
from runtime.broker.packets import pack
from runtime.broker.server import Server
from runtime.errors import RefusedError, SandboxError
from runtime.profile import BackendName
from runtime.reactor import Reactor
from runtime.settings import BrokerSettings

log = logging.getLogger("runtime.broker")
UNUSABLE = 2
FAILED = 1


def run(settings: str, listen: str | None, connection: int | None, allowed: list[int]) -> int:
    """The exit status."""
    logging.basicConfig(level=logging.INFO, format="broker: %(message)s", stream=sys.stderr)
    try:
        text = sys.stdin.read() if settings == "-" else Path(settings).read_text()
        given = BrokerSettings.model_validate_json(text)
    except (OSError, ValidationError) as error:
        log.error("the settings cannot be used: %s", error)
        return UNUSABLE
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    only = socket.socket(fileno=connection) if connection is not None else None
    try:
        _serve(given, only, stop, Path(listen) if listen is not None else None, allowed)
    except SandboxError as error:
        log.error("%s%s", error, f" ({error.hint})" if error.hint else "")
        if only is not None:
            only.setblocking(False)
            only.send(pack(failed(1, error)))
        return FAILED
    return 0


def _serve(
    settings: BrokerSettings, only: socket.socket | None, stop: threading.Event, path: Path | None, allowed: list[int]
) -> None:
    sweep(settings.state_dir)
    reactor = Reactor()
    site = Site(settings.state_dir, reactor)
    backends: dict[BackendName, Backend] = {}
    versions: dict[str, str] = {}
    for name in settings.backends:
        if name is BackendName.GVISOR:
            backends[name] = GVisor(settings, reactor, site)
            versions[name] = runsc_version(find_runsc(settings.runsc))
    if not backends:
        raise RefusedError("no backend may be used")
    started: Future[Server] = Future()

    def begin() -> None:
        server = Server(settings, reactor, backends, versions, alone=stop.set if only is not None else lambda: None)
        started.set_result(server)
        if only is not None:
            server.connect(only)

    reactor.call(begin)
    server = started.result()
    listener = Listener(reactor, path, allowed, server.connect) if path is not None else None
    if listener is not None:
        reactor.call(listener.listen)
    stop.wait()
    if listener is not None:
        reactor.call(listener.close)
    reactor.call(server.close)
    for backend in backends.values():
        backend.close()
    site.close()
    reactor.stop()
