"""Assembles a broker, serves until a signal or the end of its one connection, and takes it down.

Invariants: unless killed by SIGKILL, its sandboxes are gone before the process is; after SIGKILL the keeper kills them
and the next start sweeps. The main thread only waits for signals. Clients waiting at a service manager's socket get the
reason why a broker could not start.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from runtime.backends.backend import Backend
from runtime.backends.gvisor import GVisor
from runtime.backends.host import SandboxHost
from runtime.backends.locate import find_nsjail, find_runsc, nsjail_version, runsc_version
from runtime.backends.nsjail import NsJail
from runtime.backends.sweep import sweep
from runtime.broker import content
from runtime.broker.base_images import BaseImages
from runtime.broker.listening import BrokerListener
from runtime.broker.messages import PACKET_BYTES, REQUEST, RequestFailed, pack
from runtime.broker.server import Server
from runtime.broker.store import Store
from runtime.errors import InfrastructureError, RefusedError, SandboxError
from runtime.profile import BackendName
from runtime.reactor import Reactor
from runtime.service_manager import ServiceManager, held_sockets
from runtime.settings import BrokerSettings
from runtime.shutdown import Shutdown

log = logging.getLogger("runtime.broker")
UNUSABLE = 2
FAILED = 1
REPORT_SECONDS = 2.0


class JsonLines(logging.Formatter):
    """JSON log formatter, one line per event, with the keys of the daemon's log."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        facts = {"event": record.getMessage(), "level": record.levelname.lower(), "logger": record.name}
        if record.exc_info:
            facts["exception"] = self.formatException(record.exc_info)
        return json.dumps(facts | {"timestamp": time}, sort_keys=True)


class _SocketPlace(NamedTuple):
    """Path on which a broker listens, its allowed users, and the service manager's socket, if any."""

    path: Path
    allowed: frozenset[int]
    held: socket.socket | None = None


def run(settings: str, listen: str | None, connection: int | None, allowed: list[int], form: str = "console") -> int:
    """Runs the broker process and returns its exit status. `form` is the log format: `console` or `json`."""
    level = logging.INFO if connection is None else logging.ERROR  # a private broker reports errors to its client
    logging.basicConfig(level=level, format="broker: %(message)s", stream=sys.stderr)
    if form == "json":
        logging.getLogger().handlers[0].setFormatter(JsonLines())
    try:
        text = sys.stdin.read() if settings == "-" else Path(settings).read_text()
        broker_settings = BrokerSettings.model_validate_json(text)
    except (OSError, ValidationError) as error:
        log.error("invalid settings: %s", error)
        return UNUSABLE
    stop = Shutdown()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    only = socket.socket(fileno=connection) if connection is not None else None
    os.umask(0o022)
    held: tuple[socket.socket, ...] = ()
    try:
        held = held_sockets() if listen is not None else ()
        place = _SocketPlace(Path(listen), frozenset(allowed), *held[:1]) if listen is not None else None
        _serve(broker_settings, only, stop, place)
    except (SandboxError, OSError) as error:
        if not isinstance(error, SandboxError):
            error = InfrastructureError(f"the broker cannot run here: {error}")
        if only is None or not _report(only, error):
            log.error("%s%s", error, f" ({error.hint})" if error.hint else "")
        for connected in _waiting(held):
            _report(connected, error)
        return FAILED
    return 0


def _waiting(held: Sequence[socket.socket]) -> Iterator[socket.socket]:
    """Yields connections waiting at the service manager's socket for a broker."""
    for one in held[:1]:
        with contextlib.suppress(OSError):  # there are no more, or it was taken down with the listener
            one.setblocking(False)
            while True:
                yield one.accept()[0]


def _report(only: socket.socket, error: SandboxError) -> bool:
    """Answers the client's first requests with an error until it hangs up; True if one was delivered."""
    reported = False
    with only, contextlib.suppress(OSError, ValidationError):
        only.settimeout(REPORT_SECONDS)
        while data := only.recv(PACKET_BYTES):
            only.send(pack(RequestFailed.of(error, request=REQUEST.validate_json(data).request)))
            reported = True
    return reported


def _serve(settings: BrokerSettings, only: socket.socket | None, stop: Shutdown, place: _SocketPlace | None) -> None:
    """Runs the broker until shutdown. Every part already built is taken down even if a later one fails. Order: backends
    on the reactor's thread, then the reactor, background work, and last the folders."""
    reactor = Reactor()
    with ExitStack() as parts:
        parts.callback(reactor.stop)
        sweep(settings.state_dir)
        host = SandboxHost(settings.state_dir, reactor)
        folders: list[Store] = []
        parts.callback(_close, reactor, host, folders)
        store = Store(
            settings.snapshot_dir or settings.root_dir / "snapshots",
            host.owner,
            host.background,
            most_mib=settings.snapshots_mib,
            free_mib=settings.free_mib,
        )
        folders.append(store)
        base_images = BaseImages(settings.root_dir / "images", host.owner, host.background)
        for folder in (store.folder, base_images.folder):
            if content.is_in_memory(folder, Path("/proc/self/mountinfo").read_text()):
                log.warning("%s is in memory, which images would fill up: choose a folder on disk", folder)
        backends, versions, refused = _backends(settings, reactor, host, parts)
        listener = BrokerListener(reactor, *place) if place is not None else None

        def begin() -> Server:
            server = Server(
                settings,
                reactor,
                backends,
                versions,
                base_images,
                store,
                host.background,
                refused=refused,
                alone=stop.set if only is not None else lambda: None,
            )
            if only is not None:
                server.connect(only)
            if listener is not None:
                listener.listen(server.connect, server.turn_away)
            return server

        server = reactor.result(begin)
        manager = ServiceManager.adopt()
        manager.ready(f"serving with {', '.join(versions)}")
        log.info("serving with %s", ", ".join(f"{name} {version}" for name, version in versions.items()))
        stop.wait()
        manager.stopping()
        if listener is not None:
            reactor.result(listener.close)
        reactor.result(server.close)


def _close(reactor: Reactor, host: SandboxHost, folders: list[Store]) -> None:
    reactor.stop()
    host.close()
    for store in folders:
        store.close()


def _backends(
    settings: BrokerSettings, reactor: Reactor, host: SandboxHost, parts: ExitStack
) -> tuple[dict[BackendName, Backend], dict[str, str], dict[BackendName, SandboxError]]:
    """Starts the allowed sandbox backends; returns the working ones, their versions, and errors of the others. Raises
    RefusedError if none works."""
    backends: dict[BackendName, Backend] = {}
    versions: dict[str, str] = {}
    refused: dict[BackendName, SandboxError] = {}
    for name in settings.backends:
        try:
            match name:
                case BackendName.GVISOR:
                    version = runsc_version(find_runsc(settings.runsc))
                    backends[name] = GVisor(settings, reactor, host)
                case BackendName.NSJAIL:
                    version = nsjail_version(find_nsjail(settings.nsjail), settings.nsjail)
                    backends[name] = NsJail(settings, reactor, host)
        except SandboxError as error:
            log.warning("%s cannot be used: %s", name, error)
            refused[name] = error
        else:
            versions[name] = version
            parts.callback(reactor.result, backends[name].close)
    if not backends:
        raise next(iter(refused.values()), RefusedError("no backend is allowed", hint="Name one in the policy."))
    return backends, versions, refused
