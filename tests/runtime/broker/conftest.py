"""One broker for all tests of a module that only use it, and settings for those that need their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker_kit import BrokerProbe, Settings

from runtime.profile import BackendName
from runtime.settings import BrokerSettings


@pytest.fixture(scope="session")
def make_settings(root_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings with a state folder of their own; guests' roots and golden images are shared."""

    def make(**other: Any) -> BrokerSettings:
        state = tmp_path_factory.mktemp("s")
        usual: dict[str, Any] = {
            "state_dir": state,
            "root_dir": root_dir,
            "snapshot_dir": state / "kept",
            "backends": (BackendName.GVISOR, BackendName.NSJAIL),
            "ready": 2,
        }
        return BrokerSettings(**(usual | other))

    return make


@pytest.fixture(scope="module")
def probe(make_settings: Settings) -> Iterator[BrokerProbe]:
    with BrokerProbe.own(make_settings()) as opened:
        yield opened
