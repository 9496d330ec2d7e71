"""A data folder that takes no writes any more under a daemon that runs: work waits, says why, and nothing is lost.

A plain `mount -o remount,ro` is refused by the kernel while the daemon has its ledger open. What does turn up is a file
system that the kernel itself takes from use after an error (`errors=remount-ro`), here an ext4 of the test's own, and
a mount that is laid over the folder and taken away again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from daemon_kit import run, until

from appliance.client import ApiClient, DaemonNotRunning
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import CycleState
from benchmarks.kills import FIXTURE, SMALL, count_cycle, environment

ASKED = (
    "submit",
    "--question",
    "Which whole number x has 7x + 3 = 45?",
    "--check",
    "7*x + 3 == 45",
    "--domain",
    "integer",
)


if TYPE_CHECKING:
    from conftest import Daemon

CHILD = Path(__file__).parents[1] / "child_worker.py"
STUCK = (
    "from appliance.config.configuration import Settings\nfrom appliance.daemon.api.serve import serve\n"
    f"serve(Settings.load({{}}), worker={[sys.executable, str(CHILD), 'hang-once']!r})\n"
)
"""A daemon whose first worker does nothing and never ends."""


class Disk:
    """A file with an ext4 that becomes read-only at an error, for daemons that mount it in a namespace of their own."""

    def __init__(self, folder: Path) -> None:
        self.image = folder / "disk"
        with self.image.open("wb") as made:
            made.truncate(16 << 30)  # a few MB of it are written; the policy asks for more room than that
        subprocess.run(["mkfs.ext4", "-q", "-F", "-J", "size=8", self.image], check=True)
        found = subprocess.run(["losetup", "--find", "--show", self.image], capture_output=True, text=True, check=True)
        self.device = Path(found.stdout.strip())
        self.trigger = Path("/sys/fs/ext4", self.device.name, "trigger_fs_error")

    def fail(self) -> None:
        """Has the kernel meet an error there: what is on disk is on disk, and nothing more is written."""
        os.sync()
        descriptor = os.open(self.trigger, os.O_WRONLY)
        os.write(descriptor, b"1")
        os.close(descriptor)

    def mend(self) -> None:
        """As a person does it, while nothing has it mounted."""
        assert subprocess.run(["e2fsck", "-p", self.device], capture_output=True, check=False).returncode in (0, 1)

    def close(self) -> None:
        subprocess.run(["losetup", "--detach", self.device], check=True)


def mounting(what: str) -> list[str]:
    """A command before which to put another one, which then has that mount and nobody else."""
    return ["unshare", "--mount", "sh", "-c", f'set -e; {what}; exec "$@"', "sh"]


APART = (
    "import ctypes, subprocess\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "assert libc.unshare(0x20000) == 0 == libc.mount(b'none', b'/', None, 0x44000, None), ctypes.get_errno()\n"
    "subprocess.run(['sh', '-ec', {what!r}], check=True)\n"
)
"""Has a program of a forked command in a mount namespace of its own (CLONE_NEWNS; MS_REC and MS_PRIVATE) first."""
SERVES = "from appliance.cli.main import main\nmain()\n"


@pytest.fixture
def disk(data: Path) -> Iterator[Disk]:
    if os.geteuid() != 0 or not (shutil.which("mkfs.ext4") and shutil.which("losetup")):
        pytest.skip("no file system can be made here")
    data.mkdir(mode=0o700)
    try:
        made = Disk(data.parent)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system of a test's own can be made here")
    try:
        tried = [*mounting(f"mount {made.device} {data}"), "test", "-w", made.trigger]
        if subprocess.run(tried, check=False).returncode != 0:
            pytest.skip("no file system of a test's own can be mounted here, or told to fail")
        yield made
    finally:
        made.close()


class Inside:
    """A daemon in a namespace of its own, as seen from outside."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon, self.pid = daemon, daemon.process.pid
        self.data = Path(f"/proc/{self.pid}/root{daemon.data}")
        self.api = ApiClient(self.data / "run" / "assay.sock", timeout_seconds=120.0)
        until(self._answers, 150.0)

    def _answers(self) -> bool:
        assert self.daemon.process.poll() is None, self.daemon.end()
        with suppress(DaemonNotRunning):
            return self.api.status().pid == self.pid
        return False

    def assay(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(self.daemon.data, *arguments, ASSAY_API__SOCKET=str(self.data / "run" / "assay.sock"))


def night() -> dict[str, str]:
    """The settings of a short one."""
    found = environment(Path("unused"), FIXTURE, SMALL)
    return {name: value for name, value in found.items() if name.startswith(("ASSAY_MODEL", "ASSAY_RECIPE"))}


@pytest.fixture
def begin(start: Callable[..., Daemon], disk: Disk, data: Path) -> Callable[..., Inside]:
    def begun(program: str = "", **environ: str) -> Inside:
        apart = APART.format(what=f"mount -o errors=remount-ro {disk.device} {data}")
        return Inside(start(apart + (program or SERVES), bare=not program, **environ))

    return begun


@pytest.fixture
def broker(standing: Daemon) -> dict[str, str]:
    return {"ASSAY_SANDBOX__BROKER": str(standing.data / "run" / "broker.sock")}


def test_an_idle_daemon_whose_disk_became_read_only_says_so_and_goes_on_after_it_was_mended(
    begin: Callable[..., Inside], start: Callable[..., Daemon], disk: Disk, broker: dict[str, str], data: Path
) -> None:
    inside = begin(**broker)
    assert inside.assay(*ASKED, "--wait").returncode == 0
    disk.fail()
    found = inside.assay("status")
    assert (found.returncode, "read-only" in found.stdout) == (0, True), found
    refused = inside.assay(*ASKED)
    assert (refused.returncode, "read-only" in refused.stderr) == (5, True), refused
    assert inside.assay("jobs", "ls").returncode == 0
    assert inside.daemon.process.poll() is None
    said = inside.daemon.end()
    assert "Traceback" not in said
    assert "read-only" in said
    assert inside.daemon.process.returncode == 0
    refused = start(APART.format(what=f"mount -o ro {disk.device} {data}") + SERVES, bare=True, **broker)
    said = refused.process.communicate(timeout=120)[0].decode()
    assert (refused.process.returncode, "Read-only file system" in said, "Traceback" in said) == (5, True, False), said
    disk.mend()
    inside = begin(**broker)
    assert [job.state.value for job in inside.api.jobs()] == ["solved"]
    assert inside.assay(*ASKED, "--wait").returncode == 0
    assert "Traceback" not in inside.daemon.end()


@pytest.mark.parametrize("real", [False, pytest.param(True, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_a_night_whose_disk_became_read_only_pauses_and_goes_on_from_the_last_record(
    begin: Callable[..., Inside], disk: Disk, broker: dict[str, str], data: Path, tmp_path: Path, real: bool
) -> None:
    program, environ = ("", broker | night()) if real else (STUCK, {})
    inside = begin(program, **environ)
    cycle = inside.api.start_cycle()
    at_work = (lambda: "step" in inside.api.status().step_metrics) if real else (inside.data / "attempt-0").exists
    until(at_work, 300.0)
    disk.fail()
    until(lambda: inside.api.status().worker.state == "idle", 120.0)
    found = inside.api.status()
    assert "read-only" in found.worker.waits_for
    assert found.cycle is not None
    assert found.cycle.state is CycleState.RUNNING
    assert "Traceback" not in inside.daemon.end()
    disk.mend()
    inside = begin(program, **environ)
    until(lambda: inside.api.cycle(cycle.id).cycle.state.ended, 600.0)
    assert "Traceback" not in inside.daemon.end()
    copied = tmp_path / "copy"
    subprocess.run([*mounting(f"mount {disk.device} {data}"), "cp", "-a", data, copied], check=True)
    with SqliteLedger(copied / "ledger.sqlite3") as ledger:
        done = ledger.cycle(cycle.id)
        assert done is not None
        assert (done.state, count_cycle(ledger, done, SMALL) if real else []) == (CycleState.DONE, [])
        assert ledger.leases.deaths(f"cycle {cycle.id}") == 0


def test_work_pauses_while_a_read_only_mount_lies_over_the_folder_and_goes_on_when_it_is_gone(
    start: Callable[..., Daemon], data: Path
) -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        pytest.skip("nothing can be mounted here")
    inside = Inside(start(APART.format(what="true") + STUCK))

    def mounted(line: str) -> None:
        subprocess.run(["nsenter", "--mount", "--target", str(inside.pid), "sh", "-ec", line], check=True)

    cycle = inside.api.start_cycle()
    until((inside.data / "attempt-0").exists)  # it has begun, and the next one knows that it is not the first
    mounted(f"mount --bind {data} {data}; mount -o remount,bind,ro {data}")
    until(lambda: inside.api.status().worker.state == "idle", 120.0)
    found = inside.api.status()
    assert "read-only" in found.worker.waits_for
    assert (found.worker.failures, inside.api.cycle(cycle.id).cycle.state) == (0, CycleState.RUNNING)
    mounted(f"umount {data}")
    until(lambda: inside.api.cycle(cycle.id).cycle.state is CycleState.DONE, 120.0)
    assert "Traceback" not in inside.daemon.end()
