"""One pool of sandboxes and one verifier for all tests of programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.sandbox import Limits
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.programs.verifier import ProgramVerifier


@pytest.fixture(scope="package")
def sessions(guest_roots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=1)
    with Sessions(RuntimeSettings(own=own, limits=Limits(), shared_workers=1)) as pool:
        yield pool


@pytest.fixture(scope="package")
def verifier(sessions: Sessions) -> Iterator[ProgramVerifier]:
    found = ProgramVerifier(sessions)
    yield found
    found.close()
