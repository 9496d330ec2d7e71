"""Whether code that a model wrote can be run in isolation now. What always holds: nothing is changed, and there is no
other way than the one that the policy names. The core asks before it starts a worker, the worker before each job.
"""

from __future__ import annotations

from pathlib import Path

from appliance.config.configuration import Settings
from appliance.config.places import runtime_settings
from policies.policy import Policy
from runtime.backends import describe
from runtime.broker import ask
from runtime.errors import RefusedError, SandboxError
from runtime.profile import BackendName


class BrokerAwayError(RefusedError):
    """No broker answers now. One that somebody starts again may do so later."""


def require_isolation(settings: Settings, policy: Policy | None = None) -> str:
    """Name and version of what the policy lets run model code. Raises RefusedError where it cannot be had: there is no
    other way; BrokerAwayError where nobody answers for the broker. Asks the broker where one is configured; otherwise
    looks whether one of ours could work."""
    runtime = runtime_settings(settings, settings.data, policy)
    if runtime.broker is not None:
        return _of_broker(runtime.broker, runtime.backend)
    found = describe(runtime.backend, runtime.own)
    if not found.works:
        raise RefusedError(f"model code cannot be run safely: {found.problem}", hint=found.hint)
    return f"{runtime.backend.value} {found.version}"


def is_served(socket: Path) -> bool:
    """Whether a broker that we may use answers there."""
    try:
        ask(socket)
    except SandboxError:
        return False
    return True


def _of_broker(socket: Path, backend: BackendName) -> str:
    try:
        backends = ask(socket).backends
    except SandboxError as error:
        raise BrokerAwayError(f"model code cannot be run: {error}", hint=error.hint) from error
    if backend.value not in backends:
        raise RefusedError(
            f"model code cannot be run: the broker at {socket} has no {backend.value}, as the policy wants it",
            hint="`assay doctor`, as the broker's user, says why; sandbox.model_code in the policy names the backend",
        )
    return f"{backend.value} {backends[backend.value]}"
