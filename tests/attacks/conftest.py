"""One house of sandboxes for each backend and test process, whatever the order of the tests, until another folder's
tests follow: a sandbox that nobody uses takes two hundredths of a processor all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attack_kit import House

from runtime.profile import BackendName


@pytest.fixture(scope="session")
def attack_roots(guest_roots: Path) -> Path:
    return guest_roots


HOUSES: dict[BackendName, House] = {}
"""A fixture with parameters would build them anew each time that these change."""


@pytest.fixture(params=list(BackendName), ids=str)
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, attack_roots: Path) -> House:
    if request.param not in HOUSES:
        HOUSES[request.param] = House(request.param, tmp_path_factory.mktemp("state"), attack_roots)
    return HOUSES[request.param]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    if nextitem is None or nextitem.path.parent != item.path.parent:
        while HOUSES:
            HOUSES.popitem()[1].close()
