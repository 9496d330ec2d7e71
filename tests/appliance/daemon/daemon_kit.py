"""How a real daemon is started, and waited for."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forked_commands import run_forked

from appliance.client.messages import SubmitJob
from appliance.daemon.coordination.core import Core
from appliance.daemon.coordination.threads import Dispatcher
from appliance.records.jobs import Job
from verifiers.registry.spec import Spec

ROOT = Path(__file__).parents[3]
ASSAY = (sys.executable, "-m", "appliance.cli.main")


def clean_environ(data: Path) -> dict[str, str]:
    """This environment without anybody's configuration, and without nights by the clock: the tests run at any hour."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "XDG_C", "XDG_D"))}
    places = {"XDG_CONFIG_HOME": str(data.parent / "config"), "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    return inherited | {"ASSAY_DATA": str(data), "ASSAY_SCHEDULE__ENABLED": "false"} | places


def run(data: Path, *arguments: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    """One command, to its end."""
    result = run_forked(arguments, clean_environ(data) | environ, stdin.encode())
    return subprocess.CompletedProcess(result.args, result.returncode, result.stdout.decode(), result.stderr.decode())


def as_everybody_may_read_it() -> list[str]:
    """A command before which to put another one, so that the program can be read by every user: in a namespace of its
    own, folders that only root may pass through are replaced. Empty where there are none."""
    places = [Path(place) for place in dict.fromkeys((sys.base_prefix, sys.prefix, str(ROOT)))]
    blocked = dict.fromkeys(
        folder for place in places for folder in reversed(place.parents) if not folder.stat().st_mode & stat.S_IXOTH
    )
    if not blocked:
        return []
    script = "set -e; mount -t tmpfs tmpfs /mnt; "
    for number, place in enumerate(places):
        script += f"mkdir /mnt/{number}; mount --rbind {place} /mnt/{number}; "
    script += "".join(f"mount -t tmpfs -o mode=755 tmpfs {folder}; " for folder in blocked)
    for number, place in enumerate(places):
        script += f"mkdir -p {place}; mount --rbind /mnt/{number} {place}; "
    return ["unshare", "--mount", "sh", "-c", script + 'exec "$@"', "sh"]


def until(condition, seconds: float = 120.0) -> None:
    """Waits until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.02)


def submit(core: Core, question: str, spec: Spec, **fields: object) -> Job:
    """Queues a plain question."""
    return core.jobs.submit(SubmitJob(question=question, spec=spec, **fields))


@contextmanager
def dispatched(running: Core) -> Iterator[Dispatcher]:
    """Has it work on what the ledger says is unfinished, as `assay serve` does."""
    failed: list[Exception] = []
    thread = Dispatcher(running, failed.append)
    thread.start()
    try:
        yield thread
    finally:
        thread.close()
    assert not failed


def attempts(data: Path) -> int:
    """How often `child_worker.py` was started there."""
    return len(list(data.glob("attempt-*")))
