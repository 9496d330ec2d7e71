"""Sandboxes with a package of the owner's beside an adapter's, in a folder of sets of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from owned_packages import sessions_with

from runtime.sandbox import Limits
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

LIMITS = Limits(call_seconds=30, memory_mib=512)


@pytest.fixture(scope="module")
def pool(
    request: pytest.FixtureRequest, guest_roots: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sessions]:
    """A module that names a PACKAGE has it beside its ADAPTER; it may have LIMITS of its own."""
    limits = getattr(request.module, "LIMITS", LIMITS)
    if hasattr(request.module, "PACKAGE"):
        module = request.module
        with sessions_with(module.ADAPTER, [module.PACKAGE], guest_roots, tmp_path_factory, limits) as sessions:
            yield sessions
        return
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=1)
    with Sessions(RuntimeSettings(own=own, limits=limits)) as sessions:
        yield sessions
