"""Checks of `assay doctor` for the cluster of sandboxes, engines and learners.

Invariants: hosts are listed as the cluster lists them, within a deadline; nothing is started on any. A machine outside
a cluster that places nothing there has no line.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from appliance.cli.machine.doctor_checks import DoctorCheck, failed, ok, warning
from appliance.config.places import cluster_settings
from runtime.cluster import HostLine, hosts
from runtime.errors import SandboxError
from runtime.extra_packages import install_command
from runtime.settings import ClusterSettings

if TYPE_CHECKING:
    from appliance.config.configuration import Settings

SECONDS = 30.0
"""Timeout of the cluster's answer, in seconds."""


def cluster(settings: Settings) -> Iterator[DoctorCheck]:
    """Yields the doctor's checks of the cluster. Unsatisfiable `[placement]` settings are reported by the check of the
    model."""
    placed = settings.placement
    if idle := placed.without_effect:
        yield warning("placement", idle, "set it to cluster, or remove the GPUs")
    found = cluster_settings(settings, settings.data)
    if found is None:
        return
    here = [name for name in ("engines", "learners") if getattr(placed, name) == "cluster"]
    yield members(found, " and ".join(["sandboxes", *here]))


def members(settings: ClusterSettings, what: str) -> DoctorCheck:
    """Checks the cluster's hosts, which run `what`; fails if none answers."""
    if importlib.util.find_spec("ray") is None:
        return failed("cluster", "Ray is not installed", f"{install_command('ray')}, the same version on every host")
    try:
        listed = hosts(settings.model_copy(update={"connect_seconds": SECONDS}))
    except SandboxError as error:
        advice = f"{error.hint.rstrip('.')}; run `assay cluster start`, check the token, or remove cluster.address"
        return failed("cluster", str(error), advice)
    return line(listed, settings.address, what)


def line(listed: Sequence[HostLine], address: str, what: str) -> DoctorCheck:
    """Reports the present and former hosts of a cluster; fails if none is available."""
    there = [one.name for one in listed if one.alive and not one.draining]
    gone = sorted({one.name for one in listed if not one.alive}.difference(there))
    if not there:
        return failed("cluster", f"{address} has no available host", "add one with `assay cluster join`")
    figure = f"at {address}: {', '.join(there)}"
    if gone:
        return warning("cluster", f"{figure}; gone: {', '.join(gone)}", f"{what} run on the remaining ones")
    return ok("cluster", figure, f"{what} run there")
