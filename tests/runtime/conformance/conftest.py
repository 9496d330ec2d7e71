"""One pool for each backend, with the limits that the suite is written for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.conformance import LIMITS
from runtime.profile import BackendName
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

KeptPool = Callable[[str, RuntimeSettings], Sessions]


def settings_for(backend: BackendName, state: Path, root_dir: Path) -> RuntimeSettings:
    own = BrokerSettings(state_dir=state, root_dir=root_dir, backends=(backend,), ready=1)
    return RuntimeSettings(own=own, backend=backend, limits=LIMITS, shared_workers=1)


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("states")


@pytest.fixture(scope="module")
def gvisor(root_dir: Path, states: Path, kept_pool: KeptPool) -> Sessions:
    return kept_pool("gvisor", settings_for(BackendName.GVISOR, states / "gvisor", root_dir))


@pytest.fixture(scope="module")
def nsjail(root_dir: Path, states: Path, kept_pool: KeptPool) -> Sessions:
    return kept_pool("nsjail", settings_for(BackendName.NSJAIL, states / "nsjail", root_dir))
