"""When a broker is killed, nothing of its boxes runs on: its keeper sees to it, and a sweep removes the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from box_kit import groups_of

from runtime.backends.cgroups import ControlGroup, find_parents, located, members
from runtime.backends.host import Keeper
from runtime.backends.lease import Owner, working_folder
from runtime.backends.reaper import spawn
from runtime.backends.sweep import sweep

REPOSITORY = Path(__file__).parents[3]
OWNER = """import subprocess, sys, time
sys.path.insert(0, "tests/runtime/backends")
from pathlib import Path
from box_kit import Bench
from runtime.backends.gvisor import GVisor
from runtime.guest.wire import Op
from runtime.settings import BrokerSettings
bench = Bench(BrokerSettings(state_dir=Path(sys.argv[1]), root_dir=Path(sys.argv[2])), GVisor)
HOW
print('ready', bench.host._keeper._process.pid, flush=True)
END
"""
THREE = """guests = [bench.start() for _ in range(2)]
assert guests[0].says('x = 5') == ''
guests[0].freeze(bench.host.folder / 'image')
guests.append(bench.start(bench.host.folder / 'image'))
assert guests[2].says('print(x)') == '5\\n'
guests[1].send(Op.RUN, b'''import os, signal
for n in range(3):
    if os.fork() == 0:
        os.setsid()
        while True: pass
while True: pass''')
client = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    pass_fds=[guest.box.requests for guest in guests])
time.sleep(0.2)
"""
"""A client holds the boxes' pipes, so no guest ends because its pipe does."""
STARTING = """from box_kit import PROFILE
for n in range(4): bench.reactor.call(lambda: bench.backend.start(PROFILE, None, lambda box: None))
time.sleep(float(sys.argv[3]))
"""


def running(state: Path) -> set[int]:
    """All that is in this state folder's groups, or names it and was started by its owner."""
    found = {pid for folder in groups_of(state) for pid in members(folder)}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if (
                any(os.fsencode(working_folder(state)) in argument for argument in arguments)
                and b"-c" not in arguments[:2]
            ):
                found.add(int(entry.name))
    return found


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def left(state: Path) -> list[Path]:
    """Files in the state folder, or in the short one that stands for it."""
    working = working_folder(state)
    return [entry for folder in {state, working} if folder.is_dir() for entry in folder.iterdir()]


def own(state: Path, root_dir: Path, how: str, end: str, *more: str) -> tuple[int, int]:
    """A process that owns boxes, and how it ended: its exit status, and the number of its keeper."""
    owner = subprocess.run(
        [sys.executable, "-c", OWNER.replace("HOW", how).replace("END", end), str(state), str(root_dir), *more],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert owner.stdout.startswith("ready"), owner.stderr
    return owner.returncode, int(owner.stdout.split()[1])


def assert_all_end(state: Path, keeper: int) -> None:
    deadline = time.monotonic() + 120
    while running(state) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running(state) == set()
    while alive(keeper) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(keeper)


@pytest.mark.parametrize(
    ("end", "code"),
    [("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL), ("raise KeyError('a crash')", 1), ("os._exit(5)", 5)],
)
def test_nothing_of_a_killed_owner_runs_on_and_a_sweep_removes_the_rest(
    root_dir: Path, tmp_path: Path, end: str, code: int
) -> None:
    state = tmp_path / "state"
    returned, keeper = own(state, root_dir, THREE, "import os; " + end)
    assert returned == code
    assert_all_end(state, keeper)
    report = sweep(state)
    assert (report.owners, report.processes, report.folders) == (1, 0, 3)
    assert groups_of(state) == []
    assert not left(state)
    assert sweep(state).owners == 0


@pytest.mark.parametrize("after", ["0.0", "0.01", "0.04", "0.08"])
def test_an_owner_killed_while_its_boxes_start_leaves_nothing_running(
    root_dir: Path, tmp_path: Path, after: str
) -> None:
    state = tmp_path / "state"
    _, keeper = own(state, root_dir, STARTING, "import os; os.kill(os.getpid(), 9)", after)
    assert_all_end(state, keeper)
    sweep(state)
    assert groups_of(state) == []
    assert not left(state)


def test_a_keeper_goes_home_with_an_orderly_close(root_dir: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    returned, keeper = own(state, root_dir, THREE, "bench.close()")
    assert returned == 0
    assert not alive(keeper)
    assert groups_of(state) == []
    assert not left(state)


def test_a_keeper_that_was_killed_too_leaves_it_to_the_sweep(root_dir: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    end = "import os; os.kill(bench.host._keeper._process.pid, 9); os.kill(os.getpid(), 9)"
    own(state, root_dir, THREE, end)
    assert running(state)
    report = sweep(state)
    assert (report.owners, report.folders) == (1, 3)
    assert report.processes >= 6
    assert running(state) == set()
    assert groups_of(state) == []
    assert not left(state)


def test_without_its_keeper_an_owner_starts_nothing_more(root_dir: Path, tmp_path: Path) -> None:
    end = (
        "import os\nfrom runtime.backends import host as keeper\nfrom runtime.errors import InfrastructureError\n"
        "keeper.PAUSE_SECONDS = 3600\n"
        "os.kill(bench.host._keeper._process.pid, 9)\nwhile bench.host._keeper.alive: time.sleep(0.01)\n"
        "try: bench.start()\nexcept InfrastructureError: bench.close()\nelse: os._exit(7)"
    )
    state = tmp_path / "state"
    returned, _ = own(state, root_dir, "", end)
    assert returned == 0
    assert not left(state)


def test_another_keeper_takes_the_place_of_one_that_was_killed(root_dir: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    end = (
        "import os\nfirst = bench.host._keeper._process.pid\nos.kill(first, 9)\n"
        "while bench.host._keeper._process.pid == first or not bench.host._keeper.alive: time.sleep(0.01)\n"
        "bench.start()\nprint(bench.host._keeper._process.pid, flush=True)\nos.kill(os.getpid(), 9)"
    )
    owner = subprocess.run(
        [sys.executable, "-c", OWNER.replace("HOW", THREE).replace("END", end), str(state), str(root_dir)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert owner.returncode == -signal.SIGKILL
    assert "the keeper of sandboxes had ended and was started again" in owner.stderr
    assert_all_end(state, int(owner.stdout.split()[2]))
    assert sweep(state).folders == 4
    assert groups_of(state) == []


def test_a_keeper_kills_in_its_own_groups_only() -> None:
    mine, other = f"assay-keep.{Owner.current()}.", f"assay-other.{Owner.current()}."
    parents = find_parents(located(), f"{mine}trial")
    groups = [ControlGroup(parents, f"{prefix}1", memory_mib=64, pids=16, cpus=1.0) for prefix in (mine, other)]
    nothing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    keeper = Keeper(folder / mine for folder in sorted(set(parents.folders.values())))
    try:
        asleep = [spawn(["/bin/sleep", "60"], entrances=group.entrances, **nothing) for group in groups]
        keeper._closing.set()  # nobody takes its place here
        first = keeper._process
        assert first.stdin is not None
        first.stdin.close()
        assert asleep[0].wait(timeout=120) == -signal.SIGKILL
        assert asleep[1].poll() is None
        assert first.wait(timeout=120) == 0
    finally:
        for group in groups:
            group.remove()
        asleep[1].wait(timeout=120)
