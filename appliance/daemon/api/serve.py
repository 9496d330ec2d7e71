"""`assay serve`: the core, the dispatcher, the schedule and the control API in one foreground process.

Invariants: root's rights are given up before a socket or the ledger is opened; SIGTERM and Ctrl-C stop the daemon
cleanly, a second one immediately; the socket answers only while the ledger is open, and is removed on a clean exit. A
failing dispatcher, or a broker that cannot restart, ends the daemon with that error: a daemon that answers and never
works would be worse.

A heartbeat is sent only after the loop has turned and the ledger was read since the last one; so a hanging loop or
ledger ends in a restart, not in a daemon that only looks alive. Three heartbeats fit into the service manager's
timeout.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import structlog
import uvicorn
from starlette.applications import Starlette

from appliance import __version__
from appliance.audit.kept_heads import head_files
from appliance.config.configuration import Settings
from appliance.daemon.api.app import make_app
from appliance.daemon.coordination.core import Core
from appliance.daemon.coordination.threads import Dispatcher, collect_tasks, schedule_thread
from appliance.daemon.processes.gateway_process import GatewayProcess
from appliance.daemon.processes.listening import OwnerOnlyProtocol, listen
from appliance.daemon.processes.startup import started_broker
from appliance.daemon.processes.wake_thread import WakeThread, close_together
from appliance.inference.http.server import http_config
from appliance.settings import logs
from runtime.errors import RefusedError
from runtime.service_manager import ServiceManager

log = structlog.get_logger("assay")
CLOCK_SECONDS = 60.0
"""Maximum interval between looks at a future deadline, in seconds: the machine's clock may be set."""


class _Server(uvicorn.Server):
    """Uvicorn server that leaves signals to the daemon."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(settings: Settings, *, worker: Sequence[str] = (), paused: bool = False) -> None:
    """Runs the daemon on a data folder until a signal or a client stops it; `paused` pauses nights before it looks for
    one. Raises what opening the folder and the control socket raise, and the error that ended it."""
    logs.configure(settings.log.level, settings.log.format)
    path = settings.socket_path
    manager = ServiceManager.adopt()
    failed: list[Exception] = []
    with (
        started_broker(settings, control=path) as ground,
        Core(ground.settings, worker=worker, refused=ground.refused, own_broker=ground.broker is not None) as core,
        listen(path) as sock,
    ):
        ground.require_policy(core.policy.digest)

        def stop() -> None:
            server.should_exit = True

        def fail(error: Exception) -> None:
            failed.append(error)
            stop()

        def lose_broker(error: Exception) -> None:
            core.lose_broker()
            fail(error)

        def end_overdue() -> float | None:
            """Ends waiting jobs past their deadline, even while the worker does something else; returns the seconds
            until the next check."""
            seconds = core.jobs.end_overdue()
            return None if seconds is None else min(seconds, CLOCK_SECONDS)

        if paused:
            core.nights.book.pause()
        dispatcher = Dispatcher(core, fail)
        deadlines = WakeThread("deadlines", end_overdue, fail)
        retention = WakeThread("retention", core.gateway.expire, fail)
        gateway = GatewayProcess(core.settings, lambda text: core.events.tell("gateway", text))
        core.nights.before = lambda: collect_tasks(core, lambda: clock.closing)
        clock = schedule_thread(core.nights, dispatcher.wake, fail)

        def wake() -> None:
            deadlines.wake()
            clock.wake()
            dispatcher.wake()

        app = make_app(core, wake=wake, next_cycle=lambda: core.nights.next_time, stop=stop)
        server = _Server(_uvicorn(app))
        try:
            clock.start()
            deadlines.start()
            retention.start()
            dispatcher.start()
            if core.settings.gateway.enabled:
                gateway.start()
            core.events.add("daemon", f"started, version {__version__}")
            _warn_of_what_is_missing(core)
            heads = ", ".join(map(str, head_files(core.settings, core.data)))
            log.info("serving", data=str(core.data), socket=str(path), pid=os.getpid(), head=heads)
            _say_when_nights_are(core)
            manager.ready(f"serving {core.data}")
            with ground.watched(core.note_broker, lose_broker):
                asyncio.run(_until_stopped(server, sock, beat(manager, core.ledger.newest_event)))
            manager.stopping()
        finally:
            with contextlib.suppress(OSError):  # read-only disk; the next start removes it
                path.unlink(missing_ok=True)
            close_together(*(one.close for one in (gateway, clock, deadlines, retention, dispatcher)))
        core.events.tell("daemon", "stopped")
    if failed:
        raise failed[0]


def _say_when_nights_are(core: Core) -> None:
    """Logs the start of the next night, so that a machine that starts working by itself has announced it."""
    if core.nights.book.state().paused:
        log.info("nights are paused", hint="`assay schedule resume` ends the pause")
    elif core.settings.schedule.enabled:
        log.info(
            "nights of training begin automatically",
            next=core.nights.next_time,
            hint="`assay schedule show` says when; `assay schedule pause` stops them",
        )


def _warn_of_what_is_missing(core: Core) -> None:
    """Logs a warning if cycles and jobs cannot run for lack of isolation or a usable model; records stay accessible."""
    try:
        core.readiness.require_isolation()
    except RefusedError as error:
        log.warning("no cycle and no job can run", problem=str(error), hint=error.hint)
    if problem := core.cycles.misconfigured():
        log.warning("cycles wait for a valid configuration", problem=problem)


async def _until_stopped(server: _Server, sock: socket.socket, heartbeat: Coroutine[Any, Any, None]) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if not server.should_exit:
            log.info("stopping: running work ends at its next step and continues at the next start")
        server.force_exit = server.should_exit
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    beating = asyncio.create_task(heartbeat)
    try:
        await server.serve(sockets=[sock])
    finally:
        beating.cancel()


def _uvicorn(app: Starlette) -> uvicorn.Config:
    return http_config(app, http=OwnerOnlyProtocol)


SHARE = 3.0


async def beat(manager: ServiceManager, look: Callable[[], object]) -> None:
    """Tells the service manager until cancelled that the daemon is alive; returns immediately without a watchdog.
    `look` reads the ledger in its own thread; if it fails, no heartbeat is sent and it is retried."""
    if manager.seconds is None:
        return
    while True:
        try:
            await asyncio.to_thread(look)
        except Exception as error:  # noqa: BLE001 - any failure is no sign of life, and is said
            log.warning("no heartbeat is sent: the ledger cannot be read", problem=str(error))
        else:
            manager.alive()
        await asyncio.sleep(manager.seconds / SHARE)
