"""The nsjail backend: every kind of worker answers in it, holds its limits, and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from box_kit import find_groups
from jail_kit import PROFILE, Jails

from runtime.backends import describe, host
from runtime.backends.lease import working_folder
from runtime.backends.locate import find_nsjail
from runtime.backends.sweep import sweep
from runtime.errors import InfrastructureError, RefusedError, SandboxError
from runtime.guest import wire
from runtime.guest.wire import Op, ReplyKind
from runtime.profile import BackendName, Mode
from runtime.settings import BrokerSettings

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, root_dir: Path) -> BrokerSettings:
    return BrokerSettings(state_dir=tmp_path_factory.mktemp("jails"), root_dir=root_dir)


@pytest.fixture(scope="module")
def jails(settings: BrokerSettings) -> Iterator[Jails]:
    found = Jails(settings)
    yield found
    found.close()


@pytest.mark.parametrize("mode", ["shared", "process", "sandbox"])
def test_every_kind_of_worker_answers_and_remembers(jails: Jails, mode: Mode) -> None:
    with jails.guest(mode=mode, ahead=1 if mode == "process" else 0) as guest:
        assert guest.says("x = 41") == ""
        assert guest.says("print(x + 1)") == "42\n"
        assert guest.run("1 / 0").kind == ReplyKind.EXCEPTION
        assert guest.says("print(x)") == "41\n"


def test_the_process_tier_has_its_own_filter_inside_this_one(jails: Jails) -> None:
    with jails.guest(mode="process", ahead=2) as guest:
        assert guest.run("import os\nos.listdir('/')").kind == ReplyKind.DENIED


def test_files_and_programs_are_served(jails: Jails) -> None:
    with jails.guest() as guest:
        assert guest.ask(Op.WRITE, wire.write_body("/work/a", b"hello", parents=False)).kind == ReplyKind.OK
        assert guest.ask(Op.READ, wire.read_body("/work/a", offset=0, max_bytes=100)).output == b"hello"
        asked = wire.exec_body(["/usr/bin/python3", "-c", "print(6 * 7)"], b"", seconds=5.0, output_bytes=100)
        assert guest.ask(Op.EXEC, asked).output == b"42\n"


def test_every_guest_has_a_user_of_its_own(jails: Jails) -> None:
    def users(count: int) -> set[str]:
        if not count:
            return set()
        with jails.guest(mode="shared") as guest:
            status = (guest.first() / "status").read_text()
            found = next(line.split()[1:] for line in status.splitlines() if line.startswith("Uid:"))
            assert len(set(found)) == 1
            return {found[0]} | users(count - 1)

    found = users(4)
    assert len(found) == 4
    assert all(int(user) >= 1_900_000_000 for user in found)


def test_memory_of_all_processes_together_is_limited(jails: Jails) -> None:
    code = "import os\nfor _ in range(3): os.fork()\nkept = []\nwhile True: kept.append(b'x' * (1 << 20))"
    with jails.guest() as guest:
        guest.send(Op.RUN, code.encode())
        deadline = time.monotonic() + 120
        while not guest.usage().oom_kills and time.monotonic() < deadline:
            time.sleep(0.01)
        usage = guest.usage()
        assert usage.oom_kills > 0
        assert usage.peak_memory_mib <= PROFILE.memory_mib


BOMB = """import os, threading, time
threading.stack_size(1 << 16)
while True:
    try: {0}
    except (OSError, RuntimeError): pass
"""


@pytest.mark.parametrize("step", ["os.fork()", "threading.Thread(target=time.sleep, args=(99,)).start()"])
def test_a_bomb_of_processes_or_threads_is_held_and_ended_at_once(jails: Jails, step: str) -> None:
    with jails.guest() as guest:
        guest.send(Op.RUN, BOMB.format(step).encode())
        deadline = time.monotonic() + 120
        tasks = next(folder for folder in guest.groups() if "pids" in str(folder) or (folder / "pids.max").exists())
        seen = 0
        while seen < PROFILE.pids - 1 and time.monotonic() < deadline:
            seen = int((tasks / "pids.current").read_text())
        assert PROFILE.pids - 1 <= seen <= PROFILE.pids
        started = time.monotonic()
        guest.end()
        assert time.monotonic() - started < 120
        assert guest.groups() == []


FULL = """import os
file = open('/{0}/fill', 'wb', 0)
try:
    while True: file.write(bytes(1 << 20))
except OSError as error: print(error.errno, os.path.getsize('/{0}/fill') >> 20)
"""
MANY = """import os
try:
    for n in range(1 << 20): os.close(os.open(f'/work/{n}', os.O_CREAT))
except OSError as error: print(error.errno, n > 10_000)
"""
DUPLICATES = """import os
try:
    while True: os.dup(1)
except OSError as error: print(error.errno)
"""


def test_disk_descriptors_and_file_sizes_are_limited(jails: Jails) -> None:
    with jails.guest(tmp_mib=64) as guest:
        assert guest.says(FULL.format("work")) == "28 4\n"
        assert guest.says(FULL.format("tmp")) == "27 32\n"
        assert guest.says("import os; os.unlink('/work/fill')" + "\n" + MANY) == "28 True\n"
        assert guest.says(DUPLICATES) == "24\n"


def test_processor_time_is_shared_out_and_counted(jails: Jails) -> None:
    with jails.guest(cpus=0.2) as guest:
        before, started = guest.usage().cpu_seconds, time.monotonic()
        guest.says("import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass")
        used, passed = guest.usage().cpu_seconds - before, time.monotonic() - started
        assert 0.15 < used < 0.2 * passed + 0.1


def test_the_end_leaves_nothing(jails: Jails) -> None:
    def around() -> tuple[object, ...]:
        run_user = sorted(Path("/run/user").iterdir()) if Path("/run/user").is_dir() else None
        ours = (str(jails.settings.state_dir), "nsjail", "/run/guest")  # others of a run have mounts of their own
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        return (
            [line for line in mounts if any(path in line for path in ours)],
            sorted(Path("/tmp").glob("nsjail*")),
            run_user,
        )

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with jails.guest():
        pass
    before, held = around(), descriptors()
    with jails.guest() as guest:
        guest.says(
            "import os\nfor _ in range(3):\n    if not os.fork():\n        os.setsid()\n        while True: pass"
        )
        processes = guest.processes()
        assert len(processes) >= 5
        usage = guest.end()
        assert usage.cpu_seconds > 0
        assert usage.peak_memory_mib > 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes)
    assert guest.groups() == []
    assert not (jails.host.folder / guest.box.id).exists()
    deadline = time.monotonic() + 120  # a neighbour's jail, and what other threads here open, may come and go meanwhile
    while (around() != before or descriptors() > held) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert around() == before
    assert descriptors() <= held


def test_the_death_of_the_worker_is_seen_at_once(jails: Jails) -> None:
    with jails.guest() as guest:
        os.kill(int(guest.first().name), signal.SIGKILL)
        with pytest.raises(EOFError):
            guest.next()


def test_the_guest_dies_with_the_nsjail_that_holds_it(jails: Jails) -> None:
    with jails.guest() as guest:
        guest.send(Op.RUN, b"import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))\nwhile True: pass")
        first = guest.first()
        nsjail = int((first / "stat").read_text().rpartition(")")[2].split()[1])
        assert b"nsjail" in Path(f"/proc/{nsjail}/cmdline").read_bytes()
        os.kill(nsjail, signal.SIGKILL)
        with pytest.raises(EOFError):
            guest.next()


def test_there_are_no_snapshots_and_it_says_so(jails: Jails, tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as refusal:
        jails.backend.image_parts(PROFILE)
    assert "gVisor" in refusal.value.hint
    with jails.guest() as guest:
        answer = jails.ask(lambda done: jails.backend.checkpoint(guest.box, tmp_path, done=done))
        assert isinstance(answer, RefusedError)
        assert guest.says("print(1)") == "1\n"
    assert isinstance(jails.ask(lambda done: jails.backend.start(PROFILE, tmp_path, done)), RefusedError)


def test_a_jail_that_does_not_come_up_says_why_and_leaves_nothing(jails: Jails) -> None:
    complaints = []
    for _ in range(3):  # on a full machine one may die before it has written anything
        box = jails.ask(lambda done: jails.backend.start(PROFILE.model_copy(update={"pids": 1}), None, done))
        if isinstance(box, InfrastructureError):  # it was gone before it was handed over
            complaints.append(str(box))
            continue
        os.set_blocking(box.replies, True)
        assert os.read(box.replies, 100) == b""
        deadline = time.monotonic() + 10
        while not (output := box.complaint()) and time.monotonic() < deadline:
            time.sleep(0.01)
        complaints.append(output)
        jails.ask(lambda done, box=box: jails.backend.end(box, done))
        assert not find_groups("assay-", f".{box.id}")
    assert any("clone" in output for output in complaints), complaints


def test_what_is_missing_is_said_before_anything_runs(settings: BrokerSettings, tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as refusal:
        find_nsjail(str(tmp_path / "nsjail"))
    assert "install" in refusal.value.hint
    elsewhere = describe(BackendName.NSJAIL, settings.model_copy(update={"nsjail": "/bin/true"}))
    assert not elsewhere.works
    assert elsewhere.problem
    here = describe(BackendName.NSJAIL, settings)
    assert here.works, here.problem
    assert here.version
    assert "this machine's kernel" in here.hint


def test_a_closed_backend_refuses(settings: BrokerSettings, tmp_path: Path) -> None:
    jails = Jails(settings.model_copy(update={"state_dir": tmp_path / "state"}))
    with jails.guest() as guest:
        jails.ask(lambda done: done(jails.backend.close()))
        assert guest.groups() == []
        assert isinstance(jails.ask(lambda done: jails.backend.start(PROFILE, None, done)), SandboxError)
    jails.close()
    assert not list((tmp_path / "state").iterdir())


CALLER = """import sys, time
from pathlib import Path
sys.path[:0] = [sys.argv[3]]
from jail_kit import Jails
from runtime.guest.wire import Op
from runtime.settings import BrokerSettings
jails = Jails(BrokerSettings(state_dir=Path(sys.argv[1]), root_dir=Path(sys.argv[2])))
with jails.guest(mode="shared"), jails.guest() as guest:
    guest.says("import os, signal\\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))\\nif not os.fork():\\n"
        "    os.setsid()\\n    while True: pass")
    guest.send(Op.RUN, b"while True: pass")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_no_guest_outlives_a_killed_broker(tmp_path: Path, root_dir: Path) -> None:
    state = tmp_path / "state"
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, str(state), str(root_dir), str(Path(__file__).parent)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
    )
    assert caller.stdout is not None
    assert caller.stdout.readline() == b"ready\n"
    owner = next(entry for entry in working_folder(state).iterdir() if entry.is_dir()).name
    groups = [group for group in find_groups("assay-") if f".{owner}." in group.name]
    assert groups
    caller.kill()
    caller.wait()
    caller.stdout.close()

    def inside() -> list[str]:
        return [line for group in groups if group.exists() for line in (group / "cgroup.procs").read_text().split()]

    deadline = time.monotonic() + 120
    while inside() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert inside() == []
    assert sweep(state).owners == 1
    assert not any(group.exists() for group in groups)


def test_a_broker_without_a_keeper_starts_nothing(
    settings: BrokerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "PAUSE_SECONDS", 3600.0)
    jails = Jails(settings.model_copy(update={"state_dir": tmp_path / "state"}))
    os.kill(jails.host._keeper._process.pid, signal.SIGKILL)
    while jails.host._keeper.alive:
        time.sleep(0.01)
    with pytest.raises(InfrastructureError), jails.guest():
        pass
    jails.close()
