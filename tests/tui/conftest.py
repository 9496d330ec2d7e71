"""A real core and its real API in this process, on a folder of a test's own; only the worker is left out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from textual import app as textual_app
from textual import pilot as textual_pilot
from textual._context import active_app
from tui_records import PASSPHRASE

from appliance.client import person_keys
from appliance.client.person_keys import keys_folder, make_key, unlock
from appliance.client.signing import admission
from appliance.config.configuration import Settings
from appliance.daemon.api.app import make_app
from appliance.daemon.coordination.core import Core
from appliance.daemon.processes.listening import listen


def unused_port() -> int:
    """Where no gateway of this machine's own listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Appliance:
    """`core` writes, the API answers on `socket`; `stop` and `start` as a person would."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.socket = data / "run" / "assay.sock"
        self._open = contextlib.ExitStack()

    def start(self) -> None:
        settings = Settings.model_validate({"data": self.data, "gateway": {"port": unused_port()}})
        self.core = self._open.enter_context(Core(settings))
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


async def _dealt_with(*_: object) -> None:
    """Returns when what was sent to the app was dealt with, and what came of it, and the screen is drawn."""
    app = active_app.get()
    pilot = textual_pilot.Pilot(app)
    calm = 0
    while calm < 2 and app.is_running and await pilot._wait_for_screen():
        screen = app.screen
        drawn = not (screen._callbacks or screen._layout_required or screen._dirty_widgets)
        busy = any(one.message_queue_size for one in (app, *screen.walk_children(with_self=True)))
        busy = busy or any(not one.is_finished for one in app.workers if not one._thread_worker)
        calm = calm + 1 if drawn and not busy else 0
        screen._on_timer_update()


@pytest.fixture(autouse=True)
def _wait_no_longer_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each key, Textual waits a second for a process that rests. One that reads its daemon twenty times a second
    never does."""
    for module in (textual_app, textual_pilot):
        monkeypatch.setattr(module, "wait_for_idle", _dealt_with)


@pytest.fixture
def ada(appliance: Appliance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The appliance runs, and ada has a key that it knows and that is soon unlocked."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(person_keys, "KDF_ROUNDS", 1)
    appliance.start()
    key = make_key(keys_folder(os.environ), "ada", PASSPHRASE)
    appliance.core.trust.change_key(admission("ada", unlock(key, PASSPHRASE)))
