"""A real core and its real API in this process, on a folder of a test's own; only the worker is left out."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from appliance.config import Settings
from appliance.daemon.api import make_app
from appliance.daemon.core import Core
from appliance.daemon.listening import listen


class Appliance:
    """`core` writes, the API answers on `socket`; `stop` and `start` as a person would."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.socket = data / "run" / "assay.sock"
        self._open = contextlib.ExitStack()

    def start(self) -> None:
        self.core = self._open.enter_context(Core(Settings(data=self.data)))
        sock = self._open.enter_context(listen(self.socket))
        app = make_app(self.core, wake=lambda: None, next_cycle=lambda: None, stop=lambda: None)
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, access_log=False))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[sock])))
        thread.start()

        def stop() -> None:
            server.should_exit = True
            thread.join()
            self.socket.unlink(missing_ok=True)

        self._open.callback(stop)

    def stop(self) -> None:
        self._open.close()


@pytest.fixture
def appliance() -> Iterator[Appliance]:
    """Not started. The path is short: a Unix socket's must stay below 100 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="assay-tui-"))
    made = Appliance(folder / "data")
    yield made
    made.stop()
    shutil.rmtree(folder)
