"""`assay serve`: the core, the dispatcher, the clock and the control API in one foreground process.

What always holds: root's rights are given up before a socket or the ledger is opened; SIGTERM and Ctrl-C stop it
cleanly, a second one at once; the socket is answered only after the ledger is open, and is gone when the process has
ended well. A dispatcher that fails, or a broker that will not come back, ends the daemon with that error: a daemon that
answers and never works would be worse.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Iterator, Sequence

import structlog
import uvicorn
from starlette.applications import Starlette

from appliance import __version__, logs
from appliance.config import Settings
from appliance.daemon.api import make_app
from appliance.daemon.core import Core
from appliance.daemon.dispatcher import Dispatcher
from appliance.daemon.listening import OwnerOnlyProtocol, listen
from appliance.daemon.schedule import ScheduleClock
from appliance.daemon.startup import started_broker
from appliance.daemon.wake_thread import WakeThread
from runtime.errors import RefusedError

log = structlog.get_logger("assay")
CLOCK_SECONDS = 60.0
"""Between two looks at a deadline that is ahead: the machine's clock may be set."""


class _Server(uvicorn.Server):
    """Leaves signals to us."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(settings: Settings, *, worker: Sequence[str] = ()) -> None:
    """Runs until a signal or a client ends it. Raises what the core and the socket raise when they cannot start."""
    logs.configure(settings.log.level, settings.log.format)
    path = settings.socket_path
    failed: list[Exception] = []
    with (
        started_broker(settings) as ground,
        Core(ground.settings, worker=worker, refused=ground.refused, own_broker=ground.broker is not None) as core,
        listen(path) as sock,
    ):
        ground.require_policy(core.policy.digest)

        def stop() -> None:
            server.should_exit = True

        def fail(error: Exception) -> None:
            failed.append(error)
            stop()

        def due() -> None:
            core.cycles.start_due()
            dispatcher.wake()

        def end_overdue() -> float | None:
            """Ends waiting jobs whose deadline has passed, also while the worker does something else."""
            seconds = core.jobs.end_overdue()
            return None if seconds is None else min(seconds, CLOCK_SECONDS)

        def wake() -> None:
            deadlines.wake()
            dispatcher.wake()

        dispatcher = Dispatcher(core, fail)
        deadlines = WakeThread("deadlines", end_overdue, fail)
        clock = ScheduleClock(settings.schedule, due)
        app = make_app(core, wake=wake, next_cycle=lambda: clock.next_time, stop=stop)
        server = _Server(_uvicorn(app))
        try:
            clock.start()
            deadlines.start()
            dispatcher.start()
            core.events.add("daemon", f"started, version {__version__}")
            _warn_of_what_is_missing(core)
            log.info("serving", data=str(core.data), socket=str(path), pid=os.getpid())
            with ground.watched(core.note_broker, fail):
                asyncio.run(_until_stopped(server, sock))
            log.info("stopping")
        finally:
            path.unlink(missing_ok=True)
            clock.close()
            deadlines.close()
            dispatcher.close()
        core.events.add("daemon", "stopped")
    if failed:
        raise failed[0]


def _warn_of_what_is_missing(core: Core) -> None:
    """What is on record can be looked at and decided on without isolation or a model; nothing can be run."""
    try:
        core.readiness.require_isolation()
    except RefusedError as error:
        log.warning("no cycle and no job will be run", problem=str(error), hint=error.hint)
    if problem := core.cycles.misconfigured():
        log.warning("cycles wait for a configuration that can be used", problem=problem)


async def _until_stopped(server: _Server, sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    await server.serve(sockets=[sock])


def _uvicorn(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=OwnerOnlyProtocol,
        loop="asyncio",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=65_536,
    )
