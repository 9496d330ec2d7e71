"""One guest root for the whole run, and one pool of sessions for each test process; both are made to be shared.

A pool is closed before a test of another module that has no use for it: a sandbox that nobody uses takes two hundredths
of a processor all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.sandbox import Limits
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

LIMITS = Limits(call_seconds=60.0, memory_mib=128, pids=64, output_bytes=4_096, tmp_mib=8, work_mib=4)
SLICE_SECONDS = 1.0
"""What takes a millisecond is to stay among others on a full machine, too."""
POOLS: dict[str, Sessions] = {}
"""By the fixture that gives them. A fixture of a module would start one anew for each module."""


@pytest.fixture(scope="session")
def root_dir(guest_roots: Path) -> Path:
    return guest_roots


@pytest.fixture(scope="session")
def settings(root_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> RuntimeSettings:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=root_dir, ready=1)
    return RuntimeSettings(own=own, limits=LIMITS, shared_workers=1, slice_seconds=SLICE_SECONDS)


@pytest.fixture(scope="module")
def kept_pool() -> Callable[[str, RuntimeSettings], Sessions]:
    """Gives the pool of a fixture of that name, and starts it where it is not there yet."""

    def pool_of(fixture: str, settings: RuntimeSettings) -> Sessions:
        if fixture not in POOLS:
            POOLS[fixture] = Sessions(settings)
        return POOLS[fixture]

    return pool_of


@pytest.fixture(scope="module")
def pool(settings: RuntimeSettings, kept_pool: Callable[[str, RuntimeSettings], Sessions]) -> Sessions:
    return kept_pool("pool", settings)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    for fixture in list(POOLS):
        if nextitem is None or (nextitem.path != item.path and fixture not in getattr(nextitem, "fixturenames", ())):
            POOLS.pop(fixture).close()
