"""One broker for all tests of the sandbox commands that use a running one; one checker for those of `assay check`."""

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


@pytest.fixture(scope="package")
def checked(tmp_path_factory: pytest.TempPathFactory, guest_roots: Path) -> Iterator[Checked]:
    """`assay check` in this process, at one checker that stays warm."""
    data = tmp_path_factory.mktemp("checked")
    building.lend(guest_roots, data / "run")
    with Checked(data) as checked:
        yield checked


@pytest.fixture(scope="package")
def check_data(checked: Checked) -> Path:
    """A data folder for commands in processes of their own: what a broker of theirs needs is there."""
    return checked.data
