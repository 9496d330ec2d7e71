"""Sandbox backends gVisor and nsjail: start, limit, freeze and remove boxes.

Only the broker starts boxes; other packages only ask which backends work here. No sessions, queues or protocols live
here. Start with `backend.py`, the interface, then `gvisor.py` or `nsjail.py`.
"""

import os
from typing import NamedTuple

from runtime.backends.cgroups import find_parents, located
from runtime.backends.host import require_root
from runtime.backends.lease import Owner
from runtime.backends.locate import (
    find_nsenter,
    find_nsjail,
    find_runsc,
    nsjail_version,
    require_user_namespaces,
    runsc_version,
)
from runtime.backends.seccomp_policy import policy
from runtime.errors import SandboxError
from runtime.profile import BackendName
from runtime.settings import BrokerSettings

__all__ = ["BackendReport", "describe"]
SHARED_KERNEL = (
    "nsjail works, but its guests share this machine's kernel: a kernel flaw is a way out. Use it for tools that you "
    "trust, and for model code only if gVisor is unavailable and you accept the risk. It takes no snapshots."
)


class BackendReport(NamedTuple):
    works: bool
    version: str = ""
    problem: str = ""
    hint: str = ""


def describe(backend: BackendName, settings: BrokerSettings) -> BackendReport:
    """Reports if a sandbox backend works on this machine, without starting a sandbox; missing parts raise nothing."""
    version = hint = ""
    try:
        match backend:
            case BackendName.GVISOR:
                version = runsc_version(find_runsc(settings.runsc))
            case BackendName.NSJAIL:
                version, hint = nsjail_version(find_nsjail(settings.nsjail), settings.nsjail), SHARED_KERNEL
                find_nsenter()
                require_user_namespaces()
                policy("sandbox", os.uname().machine)
        require_root()
        find_parents(located(), f"assay-doctor.{Owner.current()}.trial")
    except SandboxError as error:
        return BackendReport(works=False, version=version, problem=str(error), hint=error.hint)
    return BackendReport(works=True, version=version, hint=hint)
