"""One broker for all tests of the sandbox commands that use a running one; one checker for those of `assay check`.

The checker is closed before a test of another module that has no use for it: sandboxes that nobody uses take some
hundredths of a processor all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import guest_roots as building
import pytest
from check_commands import Checked
from sandbox_commands import broker_for


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory, guest_roots: Path) -> Iterator[Path]:
    """Its data folder."""
    data = tmp_path_factory.mktemp("served")
    building.lend(guest_roots, data / "run")
    with broker_for(data):
        yield data


CHECKED: list[Checked] = []
"""The one that is open. A fixture of a module would start one anew for each module."""


@pytest.fixture
def checked(tmp_path_factory: pytest.TempPathFactory, guest_roots: Path) -> Checked:
    """`assay check` in this process, at one checker that stays warm."""
    if not CHECKED:
        data = tmp_path_factory.mktemp("checked")
        building.lend(guest_roots, data / "run")
        CHECKED.append(Checked(data))
    return CHECKED[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    if nextitem is None or (nextitem.path != item.path and "checked" not in getattr(nextitem, "fixturenames", ())):
        while CHECKED:
            CHECKED.pop().close()


@pytest.fixture
def check_data(checked: Checked) -> Path:
    """A data folder for commands in processes of their own: what a broker of theirs needs is there."""
    return checked.data
