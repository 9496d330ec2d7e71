"""One guest root for the whole run and one pool of sessions for each module; both are made to be shared.

A pool does not outlive its module: a sandbox that nobody uses takes two hundredths of a processor all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.sandbox import Limits
from runtime.sessions.pool import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

LIMITS = Limits(call_seconds=10.0, memory_mib=128, pids=64, output_bytes=4_096, tmp_mib=8, work_mib=4)


@pytest.fixture(scope="session")
def root_dir(guest_roots: Path) -> Path:
    return guest_roots


@pytest.fixture(scope="session")
def settings(root_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> RuntimeSettings:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=root_dir)
    return RuntimeSettings(own=own, limits=LIMITS, shared_workers=1)


@pytest.fixture(scope="module")
def pool(settings: RuntimeSettings) -> Iterator[Sessions]:
    with Sessions(settings) as sessions:
        yield sessions
