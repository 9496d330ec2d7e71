"""inspect_ai's own check of a sandbox provider, as it stands, under each backend."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace

import anyio
import pytest
from inspect_ai.util import SandboxUserUnsupportedError
from inspect_ai.util._sandbox import self_check

from appliance.interop.inspect_ai import LIMITS, AssaySandboxEnvironment
from runtime.profile import BackendName
from runtime.sandbox import Sandbox
from runtime.sessions import Sessions

Check = Callable[[AssaySandboxEnvironment], Awaitable[None]]
ONE_USER = "test_exec_as_user"
"""Under nsjail a guest has one user of the host and no capability: nobody there can become another."""


@pytest.fixture(scope="module")
def box(pool: Sessions) -> Iterator[Sandbox]:
    with pool.sandbox(LIMITS, userland=True) as found:
        yield found


@pytest.mark.parametrize("name", self_check.__all__)
async def test_the_provider_passes(name: str, box: Sandbox, pool: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    # What a timeout kills is gone when its error is raised: no five seconds are needed.
    monkeypatch.setattr(self_check, "anyio", SimpleNamespace(sleep=lambda _seconds: anyio.sleep(0.1)))
    check: Check = getattr(self_check, name)
    if name == ONE_USER and pool.settings.backend is BackendName.NSJAIL:
        with pytest.raises(SandboxUserUnsupportedError, match="one user"):
            await check(AssaySandboxEnvironment(box))
    else:
        await check(AssaySandboxEnvironment(box))
