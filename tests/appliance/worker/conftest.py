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
from recorded_nights import RecordedNight
from short_nights import SHORT

from appliance.config.configuration import Settings
from appliance.config.places import broker_socket, runtime_settings
from appliance.daemon.processes.broker_process import BrokerProcess, command
from appliance.ledger.sqlite import SqliteLedger
from appliance.settings.policy_files import load_policy
from appliance.worker.evaluation import measurements
from appliance.worker.setup import context as worker_context
from appliance.worker.setup.context import WorkContext
from runtime.settings import RuntimeSettings
from verifiers.checker import Checker
from verifiers.selftest.run import SelfTest, run_selftest
from verifiers.workers.service import VerifierService

_DECIDED_FROM_TEXT = {"answer", "exact"}
"""Kinds whose verifiers no test here changes."""


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


_STANDING: dict[Path | None, Checker] = {}
"""By the broker's socket: one that stays open."""


class WarmChecker(Checker):
    """Has texts decided by workers that are warm from the test before, which takes a second of a processor to make."""

    def service(self) -> VerifierService:
        standing = _STANDING.get(self._known_settings().broker)
        return super().service() if standing is None else standing.service()


@pytest.fixture(scope="package", autouse=True)
def warm_checkers() -> Iterator[None]:
    """For every context of these tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(worker_context, "Checker", WarmChecker)
        yield


@pytest.fixture(autouse=True)
def one_self_test(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Of what reads texts: the first night of this run makes it, and the others have what it found. `test_cycle.py`
    looks at a night that makes its own."""
    folder = building.shared(tmp_path_factory)

    def once(checker: Any, *, only: Collection[str], **how: Any) -> SelfTest:
        if not set(only) <= _DECIDED_FROM_TEXT:
            return run_selftest(checker, only=only, **how)
        kept = folder / f"selftest-{'-'.join(sorted(only))}.json"
        with building.alone(folder / "selftest.lock"):
            if not kept.exists():
                kept.write_text(run_selftest(checker, only=only, **how).model_dump_json())
        return SelfTest.model_validate_json(kept.read_text())

    monkeypatch.setattr(measurements, "run_selftest", once)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger(tmp_path / "ledger.sqlite3") as opened:
        yield opened


@pytest.fixture(scope="package")
def runtime(guest_roots: Path) -> Iterator[RuntimeSettings]:
    """A broker that runs. Its folder's path is short: a Unix socket's must stay below 100 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="assay-w-"))
    building.lend(guest_roots, folder / "run")
    settings = Settings.load({"data": str(folder), "sandbox.ready": 1}, environ={"HOME": str(folder)}, etc_dir=folder)
    made, socket = runtime_settings(settings, folder), broker_socket(settings, folder)
    broker = BrokerProcess(made.own, socket, command(socket, 0))
    assert broker.start() == ""
    found = made.model_copy(update={"broker": socket})
    with Checker(found) as _STANDING[socket]:
        yield found
    del _STANDING[socket]
    broker.close()
    shutil.rmtree(folder)


@pytest.fixture(scope="package")
def recorded_night(runtime: RuntimeSettings, tmp_path_factory: pytest.TempPathFactory) -> RecordedNight:
    return RecordedNight(tmp_path_factory, runtime)


@pytest.fixture
def context(tmp_path: Path, ledger: SqliteLedger, runtime: RuntimeSettings) -> Iterator[WorkContext]:
    with WorkContext(tmp_path, ledger, runtime, SHORT.agent, load_policy(tmp_path)) as opened:
        yield opened
