"""Boxes under gVisor: they answer, freeze, come back from images as often as wanted, hold their limits, and go."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from box_kit import PROFILE, Bench, Guest, children, groups_of

from runtime.backends.gvisor import GVisor, host_tasks
from runtime.guest import wire
from runtime.profile import Mode
from runtime.settings import BrokerSettings


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, root_dir: Path) -> Iterator[Bench]:
    found = Bench(BrokerSettings(state_dir=tmp_path_factory.mktemp("boxes"), root_dir=root_dir), GVisor)
    yield found
    found.close()


@pytest.fixture(scope="module")
def image(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a guest in which x is 41 and /work/kept holds one line."""
    folder = tmp_path_factory.mktemp("images") / "image"
    with bench.guest() as guest:
        guest.says("x = 41\nopen('/work/kept', 'w').write('a line')")
        guest.freeze(folder)
    return folder


@pytest.mark.parametrize("mode", ["shared", "process", "sandbox"])
def test_every_kind_of_worker_answers_freezes_and_comes_back(bench: Bench, tmp_path: Path, mode: Mode) -> None:
    ahead = 1 if mode == "process" else 0
    with bench.guest(mode=mode, ahead=ahead) as guest:
        assert guest.says("x = 41") == ""
        guest.freeze(tmp_path / "image")
        assert guest.says("x += 1\nprint(x)") == "42\n"
        with bench.guest(tmp_path / "image", mode=mode, ahead=ahead) as copy:
            assert copy.says("print(x)") == "41\n"
        assert guest.says("print(x)") == "42\n"


def test_an_image_outlives_its_box(bench: Bench, tmp_path: Path) -> None:
    with bench.guest() as guest:
        guest.says("x = 7")
        guest.freeze(tmp_path / "image")
    with bench.guest(tmp_path / "image") as copy:
        assert copy.says("print(x)") == "7\n"


def test_copies_of_one_image_have_its_memory_and_files_and_none_of_each_other(bench: Bench, image: Path) -> None:
    with bench.guest(image) as one, bench.guest(image) as other:
        assert one.says("x += 1\nprint(x, open('/work/kept').read())") == "42 a line\n"
        one.says("open('/work/kept', 'w').write('mine')")
        assert other.says("print(x, open('/work/kept').read())") == "41 a line\n"


def test_copies_of_one_image_get_different_bytes_from_the_kernel(bench: Bench, image: Path) -> None:
    seen = set()
    for _ in range(2):
        with bench.guest(image) as copy:
            seen.add(copy.says("import os\nprint(os.urandom(16).hex())"))
            seen.add(copy.says("print(open('/dev/urandom', 'rb').read(16).hex())"))
    assert len(seen) == 4


def test_images_of_copies_can_be_restored_in_turn(bench: Bench, image: Path, tmp_path: Path) -> None:
    folder = image
    for generation in range(1, 4):
        with bench.guest(folder) as guest:
            assert guest.says("x += 1\nprint(x)") == f"{41 + generation}\n"
            folder = tmp_path / str(generation)
            guest.freeze(folder)


def test_a_restored_box_has_the_limits_of_its_groups_from_its_first_moment(bench: Bench, image: Path) -> None:
    with bench.guest(image) as copy:
        group = {folder.parent.name: folder for folder in copy.groups()}
        if "memory" in group:
            assert (group["memory"] / "memory.limit_in_bytes").read_text() == f"{128 << 20}\n"
            assert (group["cpu"] / "cpu.cfs_quota_us").read_text() == "100000\n"
            assert (group["pids"] / "pids.max").read_text() == f"{host_tasks(64)}\n"
        inside = copy.processes()
        assert len(inside) >= 2
        with pytest.raises(EOFError):
            copy.run("import os\nos.fork()\nkept = []\nwhile True: kept.append(os.urandom(1 << 20))")
        assert copy.usage().oom_kills > 0


def test_usage_counts_what_the_guest_used(bench: Bench, image: Path) -> None:
    with bench.guest(image) as guest:
        before, started = guest.usage(), time.monotonic()
        while guest.usage().cpu_seconds - before.cpu_seconds < 0.3:  # a guest counts what others had as its own
            assert time.monotonic() - started < 120
            guest.says("import time\nend = time.process_time() + 0.1\nwhile time.process_time() < end: pass")
        guest.says("kept = os.urandom(40 << 20) if (os := __import__('os')) else 0")
        after = guest.usage()
        assert after.cpu_seconds - before.cpu_seconds < 2.0 + time.monotonic() - started
        assert after.memory_mib - before.memory_mib > 30
        assert after.peak_memory_mib >= after.memory_mib - 1
        assert (after.oom_kills, after.pids_denied) == (0, 0)
        last = guest.end()
        assert last.cpu_seconds >= after.cpu_seconds
        assert last.peak_memory_mib >= after.peak_memory_mib


def test_a_guest_gets_as_many_processes_as_were_promised_and_an_error_for_the_next(bench: Bench) -> None:
    forking = (
        "import os, time\ncount = 0\n"
        "try:\n"
        "    while count < 50:\n"
        "        if os.fork() == 0: time.sleep(60)\n"
        "        count += 1\n"
        "except BlockingIOError: print(count)"
    )
    with bench.guest(pids=16, memory_mib=512) as guest:
        assert 10 <= int(guest.says(forking)) <= 16
        assert guest.usage().pids_denied == 0


def test_a_box_in_which_one_process_was_killed_for_memory_ends_whole(bench: Bench, image: Path) -> None:
    hoarding = (
        "import os\n"
        "if os.fork() == 0:\n"
        "    kept = [os.urandom(1 << 20) for _ in range(400)]\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "while True: pass"
    )
    with bench.guest(image) as guest:
        with pytest.raises(EOFError):
            guest.ask(wire.Op.RUN, hoarding.encode(), seconds=120)
        assert guest.end().oom_kills >= 1


def test_an_end_kills_what_ignores_signals_and_what_has_left_its_session(bench: Bench, image: Path) -> None:
    guest = bench.start(image)
    guest.says(
        "import os, signal\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        for number in range(1, 32):\n"
        "            try: signal.signal(number, signal.SIG_IGN)\n"
        "            except OSError: pass\n"
        "        while True: pass"
    )
    inside, started = guest.processes(), time.monotonic()
    assert inside
    guest.end()
    assert time.monotonic() - started < 120
    assert guest.groups() == []
    assert not any(Path(f"/proc/{pid}").exists() for pid in inside)
    assert guest.box.id not in bench.folders()
    guest.end()


def test_a_box_that_dies_closes_its_pipe_and_can_still_be_ended(bench: Bench, image: Path) -> None:
    guest = bench.start(image)
    guest.kill()
    with pytest.raises(EOFError):
        guest.next(seconds=120)
    assert guest.end().cpu_seconds > 0


def open_things() -> tuple[int, int]:
    return len(list(Path("/proc/self/fd").iterdir())), len(children())


def test_many_boxes_at_once_come_and_go_and_leave_nothing(bench: Bench, image: Path) -> None:
    def use() -> None:
        guests: list[Guest] = []
        starters = [threading.Thread(target=lambda: guests.append(bench.start(image))) for _ in range(6)]
        for thread in starters:
            thread.start()
        for thread in starters:
            thread.join()
        assert [guest.says("print(x)") for guest in guests] == ["41\n"] * 6
        for guest in guests:
            guest.end()

    def grown() -> str:
        """What is more after a use than before it, for a minute; empty where nothing is."""
        before = open_things()
        use()
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            after = open_things()
            if all(now <= then for now, then in zip(after, before, strict=True)):
                return ""
            time.sleep(0.05)
        return f"{after}, and {before} before"

    use()
    time.sleep(0.6)
    found = [grown()]
    while found[-1] and len(found) < 3:  # what the process begins once is no leak; what each use leaves is
        found.append(grown())
    assert not found[-1], found
    assert (bench.groups(), bench.folders()) == ([], [])


def test_close_ends_boxes_that_run_and_boxes_that_start(tmp_path: Path, root_dir: Path, image: Path) -> None:
    before = children()
    bench = Bench(BrokerSettings(state_dir=tmp_path / "state", root_dir=root_dir), GVisor)
    guest = bench.start()
    assert guest.says("print(1)") == "1\n"
    ends: list[object] = []
    bench.reactor.call(lambda: bench.backend.start(guest.box.profile, image, ends.append))
    started = time.monotonic()
    bench.close()
    assert time.monotonic() - started < 120
    assert len(ends) == 1
    assert groups_of(tmp_path / "state") == []
    assert list((tmp_path / "state").iterdir()) == []
    assert children().keys() <= before.keys()


def test_what_an_image_depends_on_changes_with_the_profile_and_nothing_else(bench: Bench) -> None:
    parts = bench.backend.image_parts(PROFILE)
    assert parts == bench.backend.image_parts(PROFILE.model_copy())
    assert parts != bench.backend.image_parts(PROFILE.model_copy(update={"tmp_mib": 9}))
    assert not any(str(bench.settings.root_dir) in part for part in parts)
    assert len(parts[1]) == 64


def test_a_set_of_strings_has_the_same_order_in_every_guest(bench: Bench) -> None:
    order = "print(list({'a', 'set', 'of', 'some', 'words', 'whose', 'order', 'is', 'their', 'hash'}))"
    with bench.guest() as one, bench.guest(mode="shared") as other, bench.guest(mode="process", ahead=1) as third:
        assert one.says(order) == other.says(order) == third.says(order)
