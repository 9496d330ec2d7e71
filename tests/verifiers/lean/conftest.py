"""A real Lean for the tests of a worker process: made once, its boxes started once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lean_kit import Local
from lean_stand_in import stand_in

from runtime.profile import BackendName
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.boxes.box import ToolBoxes
from verifiers.lean.toolchain import Toolchain, find, program
from verifiers.lean.verifier import LeanVerifier


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    found = find(stand_in())
    assert found is not None
    return found


@pytest.fixture(scope="package")
def boxes(toolchain: Toolchain, guest_roots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolBoxes]:
    own = BrokerSettings(
        state_dir=tmp_path_factory.mktemp("state"),
        root_dir=guest_roots,
        backends=(BackendName.NSJAIL,),
        programs=(program(toolchain),),
    )
    with ToolBoxes(RuntimeSettings(own=own), BackendName.NSJAIL) as made:
        yield made


@pytest.fixture(scope="package")
def lean(boxes: ToolBoxes, toolchain: Toolchain) -> Iterator[LeanVerifier]:
    found = LeanVerifier(boxes, toolchain, memory_mib=2560, most=1)
    yield found
    found.close()


@pytest.fixture(scope="package")
def local(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    found = Local(toolchain, tmp_path_factory.mktemp("steps"))
    yield found
    found.kill()
