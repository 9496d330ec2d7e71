"""One house of sandboxes for each backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attack_kit import House

from runtime.profile import BackendName


@pytest.fixture(scope="session")
def attack_roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("roots")


@pytest.fixture(scope="session", params=list(BackendName), ids=str)
def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, attack_roots: Path
) -> Iterator[House]:
    found = House(request.param, tmp_path_factory.mktemp("state"), attack_roots)
    yield found
    found.close()
