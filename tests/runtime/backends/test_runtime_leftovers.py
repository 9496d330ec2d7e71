"""After a sandbox there is nothing: no process, no cgroup, no mount, no file; whoever ended it, and however."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from box_kit import groups_of

from runtime.backends.cgroups import ControlGroup, located
from runtime.backends.lease import Owner, state_mark, working_folder
from runtime.backends.reaper import spawn
from runtime.backends.sweep import SweepReport, sweep
from runtime.errors import BadRequestError, InfrastructureError
from runtime.sandbox import Limits, Sandbox, Tier
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

REPOSITORY = Path(__file__).parents[3]
CALLER = """import os, sys
from pathlib import Path
from runtime.sessions.pool import Sessions
from runtime.sandbox import Tier
from runtime.settings import BrokerSettings, RuntimeSettings
own = BrokerSettings(state_dir=Path(sys.argv[1]), root_dir=Path(sys.argv[2]), ready=1)
pool = Sessions(RuntimeSettings(own=own, shared_workers=1))
sessions = [pool.open(tier=tier) for tier in Tier]
for session in sessions:
    assert session.run('print(1)').output == '1\\n'
solo = pool.sandbox()
sessions[-1].start('import os, time\\nos.fork()\\nos.setsid()\\ntime.sleep(60)')
print('ready', flush=True)
END
"""


def processes(state_dir: Path) -> list[str]:
    """Command lines that name this state folder, of processes that are not zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(working_folder(state_dir)) in line and b"-c" not in line.split(b"\0"):
                found.append(line.replace(b"\0", b" ").decode())
    return found


def entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


def assert_nothing_is_left(state_dir: Path) -> None:
    deadline = time.monotonic() + 120
    working = working_folder(state_dir)
    while (processes(state_dir) or groups_of(state_dir) or entries(working)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes(state_dir) == []
    assert groups_of(state_dir) == []
    assert entries(working) == []
    assert not working.exists() or working == state_dir
    assert str(state_dir) not in Path("/proc/self/mountinfo").read_text()


def assert_nothing_is_swept(state_dir: Path) -> None:
    """But empty groups of other dead owners, which any sweep of the machine removes, and other tests leave."""
    assert sweep(state_dir).model_copy(update={"cgroups": 0}) == SweepReport()


def test_close_leaves_nothing(root_dir: Path, tmp_path: Path) -> None:
    own = BrokerSettings(state_dir=tmp_path, root_dir=root_dir, ready=1)
    with Sessions(RuntimeSettings(own=own)) as pool:
        for tier in Tier:
            session = pool.open(tier=tier)
            assert session.run("print(1)").output == "1\n"
        sandbox, abandoned = pool.sandbox(), pool.sandbox()
        assert processes(tmp_path)
        assert groups_of(tmp_path)
        sandbox.close()
        assert not [line for line in processes(tmp_path) if f" {sandbox.id} " in line + " "]
        started = time.monotonic()
    assert time.monotonic() - started < 120
    assert_nothing_is_left(tmp_path)
    pool.close()
    for late in (lambda: pool.open(), lambda: pool.sandbox(), lambda: session.run("1"), lambda: abandoned.run("1")):
        with pytest.raises(BadRequestError):
            late()
    abandoned.close()
    session.close()


@pytest.mark.parametrize(
    ("end", "code"),
    [("raise KeyError('a crash')", 1), ("os.kill(os.getpid(), 9)", -signal.SIGKILL), ("os._exit(5)", 5)],
)
def test_nothing_outlives_its_caller(root_dir: Path, tmp_path: Path, end: str, code: int) -> None:
    state = tmp_path / "state"
    caller = subprocess.run(
        [sys.executable, "-c", CALLER.replace("END", end), str(state), str(root_dir)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (caller.returncode, caller.stdout) == (code, "ready\n"), caller.stderr
    assert_nothing_is_left(state)
    assert_nothing_is_swept(state)


def run_until_it_fails(sandbox: Sandbox) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:  # the keeper takes a moment
        sandbox.run("print(2)")
        time.sleep(0.01)


def test_when_the_broker_is_killed_its_client_is_told_and_a_sweep_removes_the_rest(
    root_dir: Path, tmp_path: Path
) -> None:
    settings = BrokerSettings(state_dir=tmp_path / "state", root_dir=root_dir, ready=1)
    with Sessions(RuntimeSettings(own=settings)) as pool:
        with pool.sandbox() as sandbox:
            assert sandbox.run("print(1)").output == "1\n"
            (owner,) = [Owner.parse(entry.name) for entry in working_folder(settings.state_dir).iterdir()]
            assert owner is not None
            os.kill(owner.pid, signal.SIGKILL)
            with pytest.raises(InfrastructureError):
                run_until_it_fails(sandbox)
        deadline = time.monotonic() + 120
        while processes(settings.state_dir) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert processes(settings.state_dir) == []
        report = sweep(settings.state_dir)
        assert report.owners == 1
        assert report.folders >= 1
        assert_nothing_is_left(settings.state_dir)
        assert_nothing_is_swept(settings.state_dir)
        assert pool.open().run("print(3)").output == "3\n"
    assert_nothing_is_left(settings.state_dir)


def test_killed_before_its_sandboxes_are_up_it_leaves_no_process_either(root_dir: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    code = CALLER.partition("sessions =")[0] + "pool.open()\nprint('ready', flush=True)\nimport time\ntime.sleep(60)"
    caller = subprocess.Popen(
        [sys.executable, "-c", code, str(state), str(root_dir)], cwd=REPOSITORY, stdout=subprocess.PIPE
    )
    assert caller.stdout is not None
    assert caller.stdout.readline() == b"ready\n"
    time.sleep(0.05)
    caller.kill()
    caller.wait()
    caller.stdout.close()
    time.sleep(0.3)
    sweep(state)
    assert_nothing_is_left(state)


def test_an_owner_killed_before_it_wrote_where_its_groups_are_is_swept_too(tmp_path: Path) -> None:
    dead = Owner(2**22 + 1, 1, "abcdef")
    (working_folder(tmp_path) / str(dead)).mkdir(parents=True)
    parents = located()[0]
    group = ControlGroup(parents, f"assay-{state_mark(tmp_path)}.{dead}.trial", memory_mib=64, pids=16, cpus=1.0)
    nothing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    asleep = spawn(["/bin/sleep", "600"], entrances=group.entrances, **nothing)  # an empty one is anybody's to sweep
    while not group.members():
        assert asleep.poll() is None
    assert groups_of(tmp_path)
    report = sweep(tmp_path)
    assert (report.owners, report.processes, report.cgroups >= 1) == (1, 1, True)
    assert asleep.wait(timeout=120) == -signal.SIGKILL
    assert not any(folder.exists() for folder in group.folders)
    assert_nothing_is_left(tmp_path)


def test_empty_groups_are_swept_also_when_their_owner_s_folder_is_gone(tmp_path: Path) -> None:
    here = located()
    parent = next(iter(here[0].folders.values()))
    dead, living = Owner(2**22 - 1, 1, "0a0b0c"), Owner.current()
    groups = [parent / f"assay-01234567.{owner}.{owner.token}-1" for owner in (dead, living)]
    for group in groups:
        group.mkdir()
    try:
        sweep(tmp_path / "never made")
        assert not groups[0].exists()
        assert groups[1].exists()
    finally:
        for group in groups:
            if group.exists():
                group.rmdir()


def test_a_sweep_never_touches_a_live_owner(pool: Sessions) -> None:
    with pool.open() as session:
        session.run("x = 1")
        report = sweep(pool.settings.own.state_dir)
        assert (report.owners, report.processes) == (0, 0)
        assert session.run("print(x)").output == "1\n"


def test_a_later_process_with_the_same_number_is_not_the_owner() -> None:
    mine = Owner.current()
    assert mine.alive()
    assert Owner.parse(str(mine)) == mine
    assert not mine._replace(ticks=mine.ticks - 1).alive()
    assert not Owner(2**22 + 1, 1, "abcdef").alive()
    assert Owner.parse("lock") is None


def test_a_path_too_long_for_a_socket_works_and_leaves_nothing(root_dir: Path, tmp_path: Path) -> None:
    state = tmp_path / ("deep" * 30) / "state"
    own = BrokerSettings(state_dir=state, root_dir=root_dir, ready=1)
    with Sessions(RuntimeSettings(own=own, limits=Limits(memory_mib=64))) as pool:
        assert pool.open().run("print(1)").output == "1\n"
        short = working_folder(state)
        assert len(str(short)) < 40
    assert not short.exists()
    assert not list(Path("/run").glob("runsc-*"))
    assert_nothing_is_left(state)
