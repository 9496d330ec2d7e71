"""A checker with real sandboxes, and a Lean, for whoever proves proposals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lean_stand_in import lean_toolchain

from curriculum.proposing.execution import Executor
from curriculum.proposing.kind import Provers
from runtime.profile import BackendName
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.checker import Checker
from verifiers.tools import programs


@pytest.fixture(scope="module")
def checker(guest_roots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    with lean_toolchain() as lean:
        own = BrokerSettings(
            state_dir=tmp_path_factory.mktemp("state"),
            root_dir=guest_roots,
            backends=(BackendName.GVISOR, BackendName.NSJAIL),
            ready=1,
            programs=programs(lean),
        )
        with Checker(RuntimeSettings(own=own), lean=lean) as made:
            yield made


@pytest.fixture(scope="module")
def provers(checker: Checker) -> Provers:
    return Provers(Executor(checker.sessions(), "tests"), checker, "proposed:tests@0")
