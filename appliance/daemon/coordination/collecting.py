"""Turns verified work of the owner into certified tasks before a night begins, in child processes.

Invariants: a failure is an event and never prevents a night; nothing is started without candidates, or while a cycle is
unfinished.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from tempfile import TemporaryFile

from appliance.curriculum.own.files import names_in
from appliance.curriculum.own.tasksets import read_own
from appliance.daemon.coordination.core import Core
from appliance.daemon.processes.wake_thread import WORK_SECONDS
from appliance.daemon.service.own_work import SOURCES
from common.errors import HintedError

SECONDS = 900.0
"""Time limit for all checks, in seconds; the rest is left for another night."""
MOST_CHARS = 300
READ_BYTES = 64 << 10
LOOK_SECONDS = 0.1


def collect_tasks(core: Core, closing: Callable[[], bool] = lambda: False) -> None:
    """Makes and certifies tasks of the owner's verified work, with `assay curriculum collect` and `certify` as child
    processes. Once `closing` returns True they are terminated, and the rest is left for another night."""
    if core.cycles.unfinished() is not None:
        return
    try:
        if not core.collected.candidates():
            return
    except (HintedError, OSError) as error:
        core.events.add("curriculum", f"your verified work could not become tasks: {str(error)[:MOST_CHARS]}")
        return
    before = _versions(core)
    if _ran(core, closing, "collect"):
        for name, version in _versions(core).items():
            if before.get(name) != version:
                _ran(core, closing, "certify", name)  # only the certified version is trained on


def _versions(core: Core) -> dict[str, int]:
    """Returns the version of each existing taskset collected from the owner's work, by name."""
    names = [name for name in names_in(core.data) if name.partition("/")[2] in SOURCES]
    return {name: read_own(core.data, name).version for name in names}


def _ran(core: Core, closing: Callable[[], bool], *arguments: str) -> bool:
    """Runs `assay curriculum` with these arguments and returns True if it succeeded; reports a failure as an event."""
    known = {"ASSAY_DATA": str(core.data), "ASSAY_API__SOCKET": str(core.settings.socket_path)}
    if core.settings.sandbox.broker is not None:
        known["ASSAY_SANDBOX__BROKER"] = str(core.settings.sandbox.broker)
    command = [sys.executable, "-I", "-m", "appliance.cli.main", "curriculum", *arguments]
    with TemporaryFile() as errors:
        try:
            code = run_until(command, os.environ | known, errors.fileno(), closing)
        except (OSError, subprocess.TimeoutExpired) as error:
            core.events.add("curriculum", f"assay curriculum {' '.join(arguments)}: {type(error).__name__}")
            return False
        if code and not closing():
            errors.seek(0)
            said = errors.read(READ_BYTES).decode(errors="replace").strip()[:MOST_CHARS]
            core.events.add("curriculum", f"assay curriculum {' '.join(arguments)}: {said}")
    return code == 0


def run_until(
    command: Sequence[str],
    environ: Mapping[str, str],
    errors: int,
    closing: Callable[[], bool],
    seconds: float = SECONDS,
) -> int:
    """Runs a command to its end and returns its exit code. Terminates it once `closing` returns True, and kills it
    after its grace. Raises TimeoutExpired after `seconds`, OSError."""
    deadline = time.monotonic() + seconds
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
    ) as process:
        try:
            while not closing() and time.monotonic() < deadline:
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(LOOK_SECONDS)
            if not closing():
                raise subprocess.TimeoutExpired(command, seconds)
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                return process.wait(WORK_SECONDS)
            return -signal.SIGKILL
        finally:
            process.kill()
