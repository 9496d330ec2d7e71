"""Sandboxes for inspect_ai, as its provider opens them, one pool for each backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.profile import BackendName
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings


@pytest.fixture(scope="module", params=list(BackendName), ids=str)
def pool(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, full_roots: Path
) -> Iterator[Sessions]:
    own = BrokerSettings(
        state_dir=tmp_path_factory.mktemp("state"), root_dir=full_roots, ready=0, backends=(request.param,)
    )
    with Sessions(RuntimeSettings(own=own, backend=request.param)) as found:
        yield found
