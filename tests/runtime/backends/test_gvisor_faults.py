"""What breaks below gVisor is an InfrastructureError within seconds, with a hint, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from box_kit import PROFILE, Bench, Guest
from guest_roots import without_userland

from runtime.backends import gvisor, process_box
from runtime.backends.cgroups import ControlGroup
from runtime.backends.gvisor import GVisor
from runtime.broker.boxes import Handshake
from runtime.errors import InfrastructureError, StartError
from runtime.guest import wire
from runtime.settings import BrokerSettings


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, root_dir: Path) -> Iterator[Bench]:
    found = Bench(BrokerSettings(state_dir=tmp_path_factory.mktemp("faults"), root_dir=root_dir), GVisor)
    yield found
    found.close()


@pytest.fixture(scope="module")
def image(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images") / "image"
    with bench.guest() as guest:
        guest.says("x = 41")
        guest.freeze(folder)
    return folder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_disk_that_is_full_fails_the_image_and_not_the_box(bench: Bench, small_disk: Path, tmp_path: Path) -> None:
    with bench.guest() as guest:
        guest.says("x = 7\nkept = __import__('os').urandom(20 << 20)")
        with pytest.raises(InfrastructureError, match="could not be frozen") as failure:
            guest.freeze(small_disk / "image")
        assert "disk space" in failure.value.hint
        assert guest.says("print(x)") == "7\n"
        guest.freeze(tmp_path / "image")
        assert guest.says("print(x)") == "7\n"
    with bench.guest(tmp_path / "image") as copy:
        assert copy.says("print(x)") == "7\n"


def limit(guest: Guest) -> int:
    (file,) = [
        folder / name
        for folder in guest.groups()
        for name in ("memory.limit_in_bytes", "memory.max")
        if (folder / name).exists()
    ]
    return int(file.read_text()) >> 20


def test_a_box_with_little_memory_left_can_be_frozen_and_keeps_its_limit(bench: Bench, tmp_path: Path) -> None:
    with bench.guest(memory_mib=128) as guest:
        guest.says("import os\nkept = os.urandom(80 << 20)\nx = 3")
        for n in range(3):
            guest.freeze(tmp_path / str(n))
            assert guest.says("print(x)") == "3\n"
        deadline = time.monotonic() + 120
        while limit(guest) != 128 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert limit(guest) == 128
        assert guest.usage().memory_mib < 128
        assert guest.usage().oom_kills == 0
        with pytest.raises(EOFError):
            guest.run("more = [os.urandom(1 << 20) for _ in range(60)]")
        assert guest.usage().oom_kills > 0


def test_a_frozen_box_is_under_its_own_limit_again_before_whoever_waits_for_that_hears_of_it(
    bench: Bench, tmp_path: Path
) -> None:
    with bench.guest(memory_mib=128) as guest:
        for n in range(3):
            guest.freeze(tmp_path / str(n), settled=True)
            assert limit(guest) == 128


def test_a_box_that_cannot_go_back_to_its_limit_is_killed_for_memory_and_is_its_holder_s_to_end(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowering = ControlGroup.limit_memory

    def limit_memory(self: ControlGroup, memory_mib: int) -> None:
        if memory_mib == 128:
            raise InfrastructureError("it is busy")
        lowering(self, memory_mib)

    monkeypatch.setattr(ControlGroup, "limit_memory", limit_memory)
    monkeypatch.setattr(gvisor, "LOWER_SECONDS", 0.0)
    with bench.guest(memory_mib=128) as guest:
        guest.freeze(tmp_path / "image")
        with pytest.raises(EOFError):
            guest.next()
        assert guest.box.replies >= 0
        assert guest.usage().oom_kills == 1
        assert guest.end().oom_kills == 1


DAMAGES = {
    "pages are missing": lambda folder: (folder / "pages.img").unlink(),
    "pages end early": lambda folder: os.truncate(folder / "pages.img", 1 << 20),
    "pages are empty": lambda folder: os.truncate(folder / "pages.img", 0),
    "the state ends early": lambda folder: os.truncate(folder / "checkpoint.img", 10_000),
    "the state is empty": lambda folder: os.truncate(folder / "checkpoint.img", 0),
    "the state is noise": lambda folder: (folder / "checkpoint.img").write_bytes(os.urandom(100_000)),
    "the state is damaged in the middle": lambda folder: overwrite(folder / "checkpoint.img", 50_000),
    "the list of pages is noise": lambda folder: (folder / "pages_meta.img").write_bytes(os.urandom(1_000)),
    "there is nothing": lambda folder: [entry.unlink() for entry in folder.iterdir()],
    "there is no folder": lambda folder: shutil.rmtree(folder),
}


def overwrite(file: Path, where: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(where)
        opened.write(b"\xff" * 4_000)


def start_and_ask(bench: Bench, folder: Path) -> None:
    with bench.guest(folder) as guest:
        guest.says("print(x)")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_image_is_an_error_and_leaves_nothing(bench: Bench, image: Path, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "image"
    shutil.copytree(image, folder)
    DAMAGES[damage](folder)
    started = time.monotonic()
    with pytest.raises((InfrastructureError, EOFError)) as failure:
        start_and_ask(bench, folder)
    assert time.monotonic() - started < 120
    if isinstance(failure.value, InfrastructureError):
        assert "could not be restored" in str(failure.value)
        assert failure.value.hint
    assert (bench.groups(), bench.folders()) == ([], [])


@pytest.mark.parametrize("wait", [0.0, 0.01, 0.02, 0.03])
def test_a_box_that_dies_while_it_is_frozen_is_an_error(bench: Bench, image: Path, tmp_path: Path, wait: float) -> None:
    with bench.guest(image) as guest:
        guest.says("import os\nkept = os.urandom(30 << 20)")
        (tmp_path / "image").mkdir()
        starved: list[object] = []
        event = threading.Event()

        def done(problem: object) -> None:
            starved.append(problem)
            event.set()

        freeze = lambda: bench.backend.checkpoint(guest.box, tmp_path / "image", done=done)  # noqa: E731
        bench.reactor.call(freeze)
        time.sleep(wait)
        guest.kill()
        assert event.wait(120)
        assert len(starved) == 1
        assert starved[0] is None or isinstance(starved[0], InfrastructureError)


def test_a_box_that_is_ended_while_it_is_frozen_is_answered_both_times(
    bench: Bench, image: Path, tmp_path: Path
) -> None:
    guest = bench.start(image)
    (tmp_path / "image").mkdir()
    starved: list[object] = []
    freeze = lambda: bench.backend.checkpoint(guest.box, tmp_path / "image", done=starved.append)  # noqa: E731
    bench.reactor.call(freeze)
    guest.end()
    deadline = time.monotonic() + 120
    while not starved and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(starved) == 1
    assert isinstance(starved[0], InfrastructureError)
    assert (bench.groups(), bench.folders()) == ([], [])


def test_a_runsc_that_hangs_is_killed(tmp_path: Path, root_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gvisor, "START_SECONDS", 0.5)
    hanging = tmp_path / "runsc"
    hanging.write_text("#!/bin/sh\nsleep 61 & sleep 60\n")
    hanging.chmod(0o755)
    bench = Bench(BrokerSettings(state_dir=tmp_path / "state", root_dir=root_dir, runsc=str(hanging)), GVisor)
    try:
        with pytest.raises(InfrastructureError, match="no end after"):
            bench.start()
        assert (bench.groups(), bench.folders()) == ([], [])
    finally:
        bench.close()


def test_a_runsc_that_is_slow_is_awaited_as_long_as_it_computes(
    tmp_path: Path, root_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy machine, where it computes or waits for a CPU; a guest that starts slowly is no other case."""
    monkeypatch.setattr(gvisor, "START_SECONDS", 0.25)
    monkeypatch.setattr(process_box, "INTERVALS", 400)
    slow = tmp_path / "runsc"
    computes = "awk 'BEGIN { for (i = 0; i < 8000000; i++) n += i }'"
    slow.write_text(f'#!/bin/sh\ncase "$*" in *" run "*) {computes} ;; esac\nexec {gvisor.find_runsc()} "$@"\n')
    slow.chmod(0o755)
    bench = Bench(BrokerSettings(state_dir=tmp_path / "state", root_dir=root_dir, runsc=str(slow)), GVisor)
    try:
        begun = time.monotonic()
        with bench.guest() as guest:
            assert time.monotonic() - begun > 0.25
            assert guest.says("print(1)") == "1\n"
    finally:
        bench.close()


def test_a_guest_that_starts_slowly_is_awaited_as_long_as_it_computes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_box, "INTERVALS", 1_000)
    box = bench.ask(lambda done: bench.backend.start(bench.profile, None, done))
    guest = Guest(bench, box, fresh=False)
    try:
        assert bench.ask(lambda done: Handshake(bench.reactor, box, None, 0.05, done)) is None
    finally:
        guest.end()


def test_a_stopped_guest_is_given_up_and_that_is_an_error_of_its_start(bench: Bench) -> None:
    with bench.guest() as guest:
        for pid in guest.processes():
            os.kill(pid, signal.SIGSTOP)
        problem = bench.ask(lambda done: Handshake(bench.reactor, guest.box, wire.Op.PING, 0.3, done))
        assert isinstance(problem, StartError)
        assert "neither computes nor waits for a CPU" in str(problem)


def test_a_runsc_that_goes_missing_is_said_so(tmp_path: Path, root_dir: Path) -> None:
    program = tmp_path / "runsc"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    bench = Bench(BrokerSettings(state_dir=tmp_path / "state", root_dir=root_dir, runsc=str(program)), GVisor)
    try:
        program.unlink()
        with pytest.raises(InfrastructureError, match="runsc"):
            bench.start()
        assert (bench.groups(), bench.folders()) == ([], [])
    finally:
        bench.close()


def test_a_root_that_somebody_removed_is_built_again(tmp_path: Path, root_dir: Path) -> None:
    for root in without_userland(root_dir):  # linked: to build it once is enough
        shutil.copytree(root, tmp_path / "roots" / root.name, symlinks=True, copy_function=os.link)
    bench = Bench(BrokerSettings(state_dir=tmp_path / "state", root_dir=tmp_path / "roots"), GVisor)
    try:
        shutil.rmtree(tmp_path / "roots")
        with bench.guest() as guest:
            assert guest.says("print(1)") == "1\n"
    finally:
        bench.close()


def test_what_runsc_says_is_kept_in_part_only(tmp_path: Path, root_dir: Path) -> None:
    noisy = tmp_path / "runsc"
    noisy.write_text("#!/bin/sh\nyes noise | head -c 60000 >&2\necho the end >&2\nexit 3\n")
    noisy.chmod(0o755)
    bench = Bench(BrokerSettings(state_dir=tmp_path / "state", root_dir=root_dir, runsc=str(noisy)), GVisor)
    try:
        with pytest.raises(InfrastructureError) as failure:
            bench.start()
        assert len(str(failure.value)) < 1_000
    finally:
        bench.close()


def test_without_descriptors_nothing_is_left_half_made(bench: Bench) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = len(list(Path("/proc/self/fd").iterdir()))
    highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    starved: list[object] = []
    event = threading.Event()

    def starve() -> None:
        handles = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 3, hard))
        try:
            while True:
                try:
                    handles.append(os.open("/dev/null", os.O_RDONLY))
                except OSError:
                    break
            for descriptor in handles[:4]:
                os.close(descriptor)
            bench.backend.start(PROFILE, None, lambda problem: (starved.append(problem), event.set()))
        finally:
            for descriptor in handles[4:]:
                os.close(descriptor)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    bench.reactor.call(starve)
    assert event.wait(120)
    bench.ask(lambda done: done(None))  # until it has closed its own again
    assert isinstance(starved[0], InfrastructureError)
    assert starved[0].hint
    assert (bench.groups(), bench.folders()) == ([], [])
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
