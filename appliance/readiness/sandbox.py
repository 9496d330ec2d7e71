"""Checks whether model-written code can run in isolation now.

Invariants: nothing is changed, and there is no fallback from the backend that the policy names. The core asks before
starting a worker, the worker before each job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from appliance.config.configuration import Settings
from appliance.config.places import runtime_settings
from appliance.curriculum.own_files import names_in
from appliance.settings.config_layers import ConfigError
from curriculum.registry import BUILT_IN
from policies.policy import Policy
from runtime.backends import describe
from runtime.broker import ask
from runtime.errors import RefusedError, SandboxError
from runtime.profile import BackendName


class BrokerAwayError(RefusedError):
    """The sandbox broker does not answer now; it may after a restart, or when the machine is less busy."""


def require_isolation(settings: Settings, policy: Policy | None = None) -> str:
    """Returns name and version of the sandbox backend that the policy names for model code. Raises RefusedError if
    unavailable, BrokerAwayError if the configured broker does not answer. Without a configured broker, tests the
    backend directly."""
    runtime = runtime_settings(settings, settings.data, policy)
    if runtime.broker is not None:
        return _of_broker(runtime.broker, runtime.backend)
    found = describe(runtime.backend, runtime.own)
    if not found.works:
        raise RefusedError(f"model code cannot be run safely: {found.problem}", hint=found.hint)
    return f"{runtime.backend.value} {found.version}"


def is_served(socket: Path) -> bool:
    """True if a sandbox broker that we may use answers on the socket."""
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
            f"model code cannot be run: the broker at {socket} lacks {backend.value}, which the policy requires",
            hint="run `assay doctor` as the broker's user; sandboxes.model_code in the policy names the backend",
        )
    return f"{backend.value} {backends[backend.value]}"


def require_tasksets(data: Path, names: Iterable[str], where: str = "recipe.tasksets names") -> None:
    """Raises ConfigError for a taskset name that is neither built in nor the owner's, with the nearest match."""
    own = names_in(data)
    unknown = [name for name in dict.fromkeys(names) if name not in own and name not in BUILT_IN.tasksets]
    if not unknown:
        return
    near = get_close_matches(unknown[0], [*own, *BUILT_IN.tasksets], n=1)
    listed = ", ".join(map(repr, unknown))
    raise ConfigError(
        f"{where} unknown tasksets: {listed}",
        hint=(f"did you mean {near[0]}? " if near else "") + "`assay curriculum ls` lists all",
    )


def named_in(plan: Mapping[str, Any]) -> list[str]:
    """Lists the tasksets named in a cycle's plan, in its recipe and its stages' recipes."""
    recipes = [plan.get("recipe", {}), *(stage.get("recipe", {}) for stage in plan.get("stages", ()))]
    return [name for recipe in recipes for name in recipe.get("tasksets", ())]
