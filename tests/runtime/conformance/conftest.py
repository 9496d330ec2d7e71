"""One pool for each backend, with the limits that the suite is written for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.conformance.check import LIMITS
from runtime.profile import BackendName
from runtime.sessions.pool import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings


def settings_for(backend: BackendName, folder: Path, root_dir: Path) -> RuntimeSettings:
    own = BrokerSettings(state_dir=folder / "state", root_dir=root_dir, backends=(backend,), ready=1)
    return RuntimeSettings(own=own, backend=backend, limits=LIMITS, shared_workers=1)


@pytest.fixture(scope="module")
def gvisor(root_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    with Sessions(settings_for(BackendName.GVISOR, tmp_path_factory.mktemp("gvisor"), root_dir)) as pool:
        yield pool


@pytest.fixture(scope="module")
def nsjail(root_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    with Sessions(settings_for(BackendName.NSJAIL, tmp_path_factory.mktemp("nsjail"), root_dir)) as pool:
        yield pool
