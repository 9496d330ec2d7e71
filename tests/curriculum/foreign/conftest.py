"""Sandboxes with a package of the owner's beside an adapter's, in a folder of sets of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from curriculum.adapters.packages import guest_package
from runtime import package_sets
from runtime.backends.packages import find_set
from runtime.package_sets import extend_set, set_named
from runtime.sandbox import Limits
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

LIMITS = Limits(call_seconds=30, memory_mib=512)


@pytest.fixture(scope="module")
def pool(
    request: pytest.FixtureRequest, guest_roots: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sessions]:
    """A module that names a PACKAGE has it beside its ADAPTER; it may have LIMITS of its own."""
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=1)
    with pytest.MonkeyPatch.context() as patch:
        if hasattr(request.module, "PACKAGE"):
            adapter = request.module.ADAPTER
            owned = guest_package(adapter, request.module.PACKAGE)
            sets = tmp_path_factory.mktemp("sets")
            extend_set(adapter.set_name(owned.name), find_set(str(set_named(adapter.name))), owned.files, sets)
            own = own.model_copy(update={"package_sets": sets})
            patch.setattr(package_sets, "sets_folder", lambda: sets)
        with Sessions(RuntimeSettings(own=own, limits=getattr(request.module, "LIMITS", LIMITS))) as sessions:
            yield sessions
