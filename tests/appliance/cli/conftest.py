"""One broker for all tests of the sandbox commands that use a running one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_commands import broker_for


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Its data folder."""
    data = tmp_path_factory.mktemp("served")
    with broker_for(data):
        yield data
