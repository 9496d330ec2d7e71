"""One broker for all tests of the sandbox commands that use a running one; one checker for those of `assay check`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from check_commands import Checked
from sandbox_commands import broker_for


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Its data folder."""
    data = tmp_path_factory.mktemp("served")
    with broker_for(data):
        yield data


@pytest.fixture(scope="session")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checked]:
    """`assay check` in this process, at one checker that stays warm."""
    with Checked(tmp_path_factory.mktemp("checked")) as checked:
        yield checked


@pytest.fixture(scope="session")
def check_data(checked: Checked) -> Path:
    """A data folder for commands in processes of their own: what a broker of theirs needs is there."""
    return checked.data
