"""Has verified work of the owner's become tasks before a night begins, and certifies them, in processes of their own.

What always holds: a failure is an event and keeps no night from beginning; nothing is started where there is nothing to
collect, or while a cycle is unfinished.
"""

from __future__ import annotations

import os
import subprocess
import sys

from appliance.daemon.core import Core
from appliance.daemon.own_work import SOURCES
from appliance.own_tasksets import names_in, read_own
from runtime.errors import HintedError

SECONDS = 900.0
"""That all checks may take; what was not checked by then is left for another night."""
MOST_CHARS = 300


def collect_tasks(core: Core) -> None:
    """Runs `assay curriculum collect` against this daemon, and waits for it."""
    if core.cycles.unfinished() is not None:
        return
    try:
        if not core.collected.candidates():
            return
    except (HintedError, OSError) as error:
        core.events.add("curriculum", f"no tasks were made of your work: {str(error)[:MOST_CHARS]}")
        return
    before = _versions(core)
    if _ran(core, "collect"):
        for name, version in _versions(core).items():
            if before.get(name) != version:
                _ran(core, "certify", name)  # what is collected trains only as what it is now


def _versions(core: Core) -> dict[str, int]:
    """Versions of the tasksets that are collected, of those that are there."""
    names = [name for name in names_in(core.data) if name.partition("/")[2] in SOURCES]
    return {name: read_own(core.data, name).version for name in names}


def _ran(core: Core, *arguments: str) -> bool:
    """Runs `assay curriculum` with these; says in an event what it failed with."""
    known = {"ASSAY_DATA": str(core.data), "ASSAY_API__SOCKET": str(core.settings.socket_path)}
    if core.settings.sandbox.broker is not None:
        known["ASSAY_SANDBOX__BROKER"] = str(core.settings.sandbox.broker)
    command = [sys.executable, "-I", "-m", "appliance.cli.main", "curriculum", *arguments]
    try:
        ran = subprocess.run(
            command,
            env=os.environ | known,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        core.events.add("curriculum", f"assay curriculum {' '.join(arguments)}: {type(error).__name__}")
        return False
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip()[:MOST_CHARS]
        core.events.add("curriculum", f"assay curriculum {' '.join(arguments)}: {said}")
    return ran.returncode == 0
