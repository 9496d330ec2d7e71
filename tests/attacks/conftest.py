"""One bench of sandboxes for each backend and test process, whatever the order of the tests, until another folder's
tests follow: a sandbox that nobody uses takes some hundredths of a processor all the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from attack_kit import AttackBench

from runtime.profile import BackendName

TESTS = Path(__file__).parents[1]
KITS = ("appliance/daemon", "appliance/daemon/governance", "appliance/ledger", "policies")
sys.path += [str(TESTS / folder) for folder in KITS]


@pytest.fixture(scope="session")
def attack_roots(guest_roots: Path) -> Path:
    return guest_roots


BENCHES: dict[BackendName, AttackBench] = {}
"""A fixture with parameters would build them anew each time that these change."""


@pytest.fixture(params=list(BackendName), ids=str)
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, attack_roots: Path) -> AttackBench:
    if request.param not in BENCHES:
        BENCHES[request.param] = AttackBench(request.param, tmp_path_factory.mktemp("state"), attack_roots)
    return BENCHES[request.param]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    if nextitem is None or nextitem.path.parent != item.path.parent:
        while BENCHES:
            BENCHES.popitem()[1].close()
