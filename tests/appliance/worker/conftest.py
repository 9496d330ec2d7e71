"""Equipment for short nights from the fixture model: real verifier, real ledger, and real sandboxes of one broker, as a
worker has them of the daemon's."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import guest_roots as building
import pytest
import torch
from short_nights import SHORT

from appliance.config import Settings
from appliance.daemon.broker_process import BrokerProcess, command
from appliance.ledger.sqlite import SqliteLedger
from appliance.places import broker_socket, load_policy, runtime_settings
from appliance.worker.context import WorkContext
from runtime.settings import RuntimeSettings


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger(tmp_path / "ledger.sqlite3") as opened:
        yield opened


@pytest.fixture(scope="session")
def runtime(guest_roots: Path) -> Iterator[RuntimeSettings]:
    """A broker that runs. Its folder's path is short: a Unix socket's must stay below 100 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="assay-w-"))
    building.lend(guest_roots, folder / "run")
    settings = Settings.load({"data": str(folder)}, environ={"HOME": str(folder)}, etc_dir=folder)
    made, socket = runtime_settings(settings, folder), broker_socket(settings, folder)
    broker = BrokerProcess(made.own, socket, command(socket, 0))
    assert broker.start() == ""
    yield made.model_copy(update={"broker": socket})
    broker.close()
    shutil.rmtree(folder)


@pytest.fixture
def context(tmp_path: Path, ledger: SqliteLedger, runtime: RuntimeSettings) -> Iterator[WorkContext]:
    with WorkContext(tmp_path, ledger, runtime, SHORT.agent, load_policy(tmp_path)) as opened:
        yield opened
