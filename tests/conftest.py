"""What every test runs under: the same on a terminal, in a background job and on a machine without anybody."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import guest_roots as building
import hypothesis
import pytest

# A shell starts background jobs with SIGINT ignored, and programs inherit that: tests that send it would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What several folders of tests make up in the same way.
sys.path.append(str(Path(__file__).parent / "fixtures"))
import property_budget

# Torch's threads sleep while they wait, as in the product's own worker. Read by the
# OpenMP library when torch is first loaded; several test processes share the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Heads of audit logs are kept outside the data folder: those of the tests, where they are thrown away.
if "XDG_STATE_HOME" not in os.environ:
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="assay-state-")
    atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# As in the product's own processes: at Python's own 700 a tenth of a test's time goes by, a fifth of a screen's.
gc.set_threshold(20_000, 20, 50)

property_budget.register()
hypothesis.settings.load_profile("quick")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What it imports and makes stays to the end: none of it is looked through for garbage, while it is made or in the
    tests that follow."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


class FolderFixtures:
    """Ends what a folder's tests share (`scope="package"`) before a test outside of it. Where folders are no packages,
    pytest keeps it to the end, and each sandbox that nobody uses takes a hundredth of a processor or two."""

    def __init__(self) -> None:
        self._shared: dict[pytest.FixtureDef[Any], Any] = {}
        """With the request that it was made for."""

    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any], request: Any) -> None:
        if fixturedef.scope == "package":
            self._shared[fixturedef] = request

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        yield
        for fixturedef, request in list(self._shared.items()):
            if nextitem is not None and not nextitem.nodeid.startswith(f"{fixturedef.baseid}/"):
                del self._shared[fixturedef]
                fixturedef.finish(request)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FolderFixtures())


@pytest.fixture(scope="session")
def guest_roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one guest root in it, for brokers that need none of their own; other kinds may come beside it."""
    return building.built(tmp_path_factory)


@pytest.fixture(scope="session")
def full_roots(guest_roots: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same folder, with a root that has a userland, too."""
    assert building.built(tmp_path_factory, programs=True) == guest_roots
    return guest_roots
