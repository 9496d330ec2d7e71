"""Paths in a data folder, and the settings that brokers and their clients get from the configuration.

Invariants: a broker's own files never lie where another user can replace them, so not in a data folder that belongs, or
will belong, to another user.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from policies.contract.rules import ResourceRules
from policies.errors import PolicyError
from policies.permissions import backend_for, backends_of
from runtime.profile import BackendName
from runtime.sandbox import Limits
from runtime.settings import BrokerSettings, ClusterSettings, RuntimeSettings

if TYPE_CHECKING:
    from appliance.config.configuration import Settings
    from policies.policy import Policy

APART = Path("/var/lib/assay-broker")
"""Parent folder of brokers whose daemon runs as another user."""


def broker_folder(settings: Settings, data: Path) -> Path:
    """Returns the folder with the files of the daemon's own sandbox broker; only its socket is for others."""
    if settings.sandbox.folder is not None:
        return settings.sandbox.folder
    if settings.service.user is None and not _is_another_s(data):
        return data / "run"
    return APART / hashlib.sha256(bytes(data)).hexdigest()[:12]


def _is_another_s(data: Path) -> bool:
    try:
        return data.stat().st_uid != os.geteuid()
    except OSError:
        return False  # it is not there yet, and will be ours


def broker_socket(settings: Settings, data: Path) -> Path:
    """Returns the path of the sandbox broker's socket: the configured one, or the daemon's own."""
    return settings.sandbox.broker or broker_folder(settings, data) / "broker.sock"


def broker_settings(settings: Settings, data: Path, policy: Policy) -> BrokerSettings:
    """Builds the settings of the daemon's own sandbox broker, from configuration and policy."""
    from verifiers.tools import programs

    sandbox, folder = settings.sandbox, broker_folder(settings, data)
    return BrokerSettings(
        state_dir=folder / "boxes",
        root_dir=folder / "guest-roots",
        snapshot_dir=folder / "snapshots",
        runsc=str(sandbox.runsc) if sandbox.runsc else None,
        nsjail=str(sandbox.nsjail) if sandbox.nsjail else None,
        python=str(sandbox.python) if sandbox.python else None,
        packages=sandbox.packages,
        backends=tuple(map(BackendName, backends_of(policy))),
        programs=programs(),
        ready=sandbox.ready,
        boxes=sandbox.boxes,
        snapshots_mib=sandbox.snapshots_mib,
    )


def cluster_folder(settings: Settings, data: Path) -> Path:
    """Returns the folder of this machine's state in the cluster."""
    return settings.cluster.folder or data / "cluster"


def cluster_token(settings: Settings, data: Path) -> Path:
    """Returns the path of the file with the cluster's secret."""
    return settings.cluster.token or data / "cluster-token"


def cluster_settings(settings: Settings, data: Path) -> ClusterSettings | None:
    """Returns the settings to reach the cluster that sandboxes run on; None to run them on this machine."""
    cluster = settings.cluster
    if cluster.address is None:
        return None
    return ClusterSettings(address=cluster.address, interface=cluster.interface, token=cluster_token(settings, data))


BOUNDED = {"memory_mib": "max_memory_mib", "cpus": "max_cpus", "call_seconds": "max_call_seconds", "pids": "max_pids"}
"""Maps each bounded sandbox limit to its bound in the policy's `[resources]`."""


def most_of(rules: ResourceRules) -> dict[str, float]:
    """Returns the policy's maximum of each bounded sandbox limit."""
    return {limit: getattr(rules, rule) for limit, rule in BOUNDED.items()}


def require_within(sandbox: Limits, rules: ResourceRules, asked: Mapping[str, str] = MappingProxyType({})) -> None:
    """Raises PolicyError if a sandbox limit exceeds the policy's bound. `asked` maps limits to the command-line options
    they come from; the others come from the configuration."""
    for limit, most in most_of(rules).items():
        wanted, rule = getattr(sandbox, limit), BOUNDED[limit]
        if wanted > most:
            named = f"{asked[limit]}: {limit}" if limit in asked else f"sandbox.{limit}"
            lower = f"ask for less with {asked[limit]}" if limit in asked else f"lower {named} in the configuration"
            raise PolicyError(
                f"{named} = {wanted:g} is more than the policy allows: resources.{rule} = {most:g}",
                hint=f"{lower}, or raise {rule} in the policy",
            )


def runtime_settings(settings: Settings, data: Path, policy: Policy | None = None) -> RuntimeSettings:
    """Returns the settings for running model-written code under `policy`, or the one in force. Raises PolicyError, also
    for limits beyond the policy's."""
    from appliance.settings.policy_files import load_policy

    policy = policy or load_policy(data)
    require_within(settings.sandbox, policy.resources)
    return RuntimeSettings(
        broker=settings.sandbox.broker,
        own=broker_settings(settings, data, policy),
        backend=BackendName(backend_for(policy, "model_code")),
        limits=settings.sandbox.limits(),
        process_children=settings.sandbox.process_children,
    )
