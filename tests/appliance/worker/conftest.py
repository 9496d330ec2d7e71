"""Equipment for short nights from the fixture model: real verifier, real ledger, and real sandboxes of one broker, as a
worker has them of the daemon's."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import guest_roots as building
import pytest
import torch
from short_nights import SHORT

from appliance.config import Settings
from appliance.daemon.broker_process import BrokerProcess, command
from appliance.ledger.sqlite import SqliteLedger
from appliance.places import broker_socket, runtime_settings
from appliance.policy_files import load_policy
from appliance.worker import measurements
from appliance.worker.context import WorkContext
from runtime.settings import RuntimeSettings
from verifiers.selftest import SelfTest, run_selftest

_SELF_TESTS: dict[tuple[str, ...], SelfTest] = {}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def one_self_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what reads texts, which no test here changes: the first night of this process makes it, and the others have
    what it found. `test_cycle.py` looks at a night that makes its own."""

    def once(checker: Any, *, only: Collection[str], **how: Any) -> SelfTest:
        kinds = tuple(sorted(only))
        if kinds not in _SELF_TESTS or kinds != ("answer",):
            _SELF_TESTS[kinds] = run_selftest(checker, only=only, **how)
        return _SELF_TESTS[kinds]

    monkeypatch.setattr(measurements, "run_selftest", once)


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
