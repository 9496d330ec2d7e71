"""One pool of sandboxes and one verifier for all contest verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.sandbox import Limits
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.programs.verifier import ProgramVerifier


@pytest.fixture(scope="package")
def verifier(guest_roots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProgramVerifier]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=1)
    with Sessions(RuntimeSettings(own=own, limits=Limits(), shared_workers=1)) as pool:
        found = ProgramVerifier(pool)
        yield found
        found.close()
