"""Chooses backend and broker for a sandbox command.

Invariants: a person's code gets the policy's isolation for model code, never less. A running broker of the data folder
is used; a private one, which needs root, is started only if none listens, or if the daemon's own stops meanwhile.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from appliance.cli.shell.options import read_settings
from appliance.config import places
from appliance.errors import AssayError, ExitCode, UsageError
from policies.errors import PolicyError
from policies.permissions import backend_for, backends_of
from runtime.profile import BackendName
from runtime.settings import RuntimeSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from appliance.config.configuration import Settings
    from policies.contract.rules import ResourceRules
    from runtime.sandbox import Limits
    from runtime.sessions import Sessions

KEY = "[sandboxes] model_code in the policy"
PATIENT_SECONDS = 30.0
"""Time limit of an owner's call, in seconds: data sets and solutions may take longer than a model's call."""


class BrokerTarget(NamedTuple):
    settings: RuntimeSettings
    """Settings with the chosen backend."""
    allowed: tuple[BackendName, ...]
    """Backends that the policy uses."""
    resources: ResourceRules
    """Bounds of the policy."""

    def require_within(self, limits: Limits, asked: Mapping[str, str]) -> None:
        """Raises AssayError (4) for sandbox limits beyond the policy's bounds; `asked` maps limits to options."""
        try:
            places.require_within(limits, self.resources, asked)
        except PolicyError as error:
            raise AssayError(str(error), error.hint, ExitCode.REFUSED) from error


def broker_path() -> Path:
    settings = read_settings()
    return places.broker_socket(settings, settings.data)


def listening(path: Path) -> bool:
    """True if a broker listens on the socket at `path`. Raises AssayError if this user may not use it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        probe.settimeout(5.0)
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            return False
        except PermissionError as error:
            raise AssayError(
                f"{path}: permission denied for this user",
                "run this as the daemon's user, or as root",
                ExitCode.REFUSED,
            ) from error
        except OSError as error:
            raise UsageError(
                f"no broker answers at {path}: {error}", "name a shorter path, or another data folder"
            ) from error
    return True


def find(*, ready: int | None = 0) -> BrokerTarget:
    """Returns the settings for a running broker, or for a private one that keeps at most `ready` sandboxes ahead (None:
    as configured). Raises AssayError without a broker and without root."""
    return for_settings(read_settings(), ready=ready)


def for_settings(settings: Settings, *, ready: int | None = 0) -> BrokerTarget:
    """Returns settings for a running broker or a private one, as `find` does, from a configuration already read."""
    from appliance.settings.policy_files import load_policy

    policy = load_policy(settings.data)
    runtime = places.runtime_settings(settings, settings.data, policy)
    path = places.broker_socket(settings, settings.data)
    if listening(path):
        replaces = settings.sandbox.broker is None and os.geteuid() == 0
        runtime = runtime.model_copy(update={"broker": path, "replaces": replaces})
    elif settings.sandbox.broker is not None:
        raise no_broker(path)
    elif os.geteuid() != 0:
        raise AssayError(
            f"no broker is running for {settings.data}, and only root can start one",
            "start the daemon (`assay serve`), name its data folder with --data, or run this as root",
            ExitCode.NOT_RUNNING,
        )
    elif ready is not None:
        own = runtime.own.model_copy(update={"ready": min(ready, runtime.own.ready)})
        runtime = runtime.model_copy(update={"own": own})
    return BrokerTarget(runtime, tuple(map(BackendName, backends_of(policy))), policy.resources)


def for_code(backend: str | None) -> BrokerTarget:
    """Returns broker settings for a person's code: the policy's backend for model code, or gVisor if requested and in
    use. Raises AssayError (4) for any other backend."""
    from appliance.settings.policy_files import load_policy

    wanted = backend_named(backend) if backend is not None else None
    settings = read_settings()
    ruled = BackendName(backend_for(load_policy(settings.data), "model_code"))
    target = find()
    chosen = wanted or ruled
    if chosen is not ruled and not (chosen is BackendName.GVISOR and chosen in target.allowed):
        raise AssayError(
            f"the policy runs this code under {ruled}, not {chosen}",
            f'omit --backend, or let the owner set model_code = "{chosen}" in [sandboxes] of the policy',
            ExitCode.REFUSED,
        )
    return target._replace(settings=target.settings.model_copy(update={"backend": chosen}))


def backend_named(name: str) -> BackendName:
    try:
        return BackendName(name)
    except ValueError as error:
        known = ", ".join(BackendName)
        raise typer.BadParameter(f"unknown backend {name!r}; use one of {known}", param_hint="--backend") from error


def no_broker(path: Path) -> AssayError:
    return AssayError(
        f"no broker is running at {path}",
        "start the daemon (`assay serve`), or name the data folder of a running one with --data",
        ExitCode.NOT_RUNNING,
    )


def sessions(settings: RuntimeSettings) -> Sessions:
    """Opens a pool of sandboxes; close it."""
    from runtime.sessions import Sessions

    return Sessions(settings)


def patient_sessions() -> Sessions:
    """Opens a pool of sandboxes for foreign code, isolated as a person's code but with more time; close it."""
    settings = for_code(None).settings
    limits = settings.limits.model_copy(
        update={"call_seconds": PATIENT_SECONDS, "memory_mib": max(512, settings.limits.memory_mib)}
    )
    return sessions(settings.model_copy(update={"limits": limits}))
