"""Equipment for short nights from the fixture model: real sandboxes, real verifier, real ledger."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from short_nights import SHORT

from appliance.config import Settings
from appliance.ledger.sqlite import SqliteLedger
from appliance.places import load_policy, runtime_settings
from appliance.worker.equipment import Equipment


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger(tmp_path / "ledger.sqlite3") as opened:
        yield opened


@pytest.fixture
def equipment(tmp_path: Path, ledger: SqliteLedger) -> Iterator[Equipment]:
    settings = Settings.load({"data": str(tmp_path)}, environ={"HOME": str(tmp_path)}, etc_dir=tmp_path)
    runtime = runtime_settings(settings, tmp_path)
    with Equipment(tmp_path, ledger, runtime, SHORT.agent, load_policy(tmp_path)) as opened:
        yield opened
