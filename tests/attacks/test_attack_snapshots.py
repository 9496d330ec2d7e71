"""Row 52 of the catalogue and what else can be done to snapshots: asked for by the guest, in a loop, in the middle of
something, and tampered with on disk."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attack_kit import LIMITS, OK, PATIENCE, AttackBench

from runtime.errors import BadRequestError, InfrastructureError, LimitError, RefusedError, SandboxError
from runtime.profile import BackendName
from runtime.sandbox import SnapshotId
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

BUSY = {
    "threads that spin": """import threading
def spin():
    while True: pass
for _ in range(4): threading.Thread(target=spin, daemon=True).start()
""",
    "processes that spin": """import os
for _ in range(8):
    if not os.fork():
        os.setsid()
        while True: pass
""",
    "processes that fork": """import os
if not os.fork():
    while True:
        try:
            if not os.fork(): os._exit(0)
        except OSError: pass
""",
    "memory to the brim": "kept = [bytearray(1 << 20) for _ in range(30)]\nfor part in kept: part[::4096] = bytes(256)",
    "files being written": """import threading
def write():
    while True:
        with open('/work/x', 'wb') as file: file.write(bytes(1 << 20))
threading.Thread(target=write, daemon=True).start()
""",
    "pipes that are full": """import os
kept = [os.pipe() for _ in range(20)]
for _, end in kept:
    os.set_blocking(end, False)
    os.write(end, bytes(1 << 16))
""",
    "descriptors in flight": """import array, socket
kept = [socket.socketpair() for _ in range(20)]
for one, _ in kept:
    one.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [one.fileno()]))])
""",
    "stopped processes": """import os
for _ in range(4):
    pid = os.fork()
    if not pid:
        while True: pass
    os.kill(pid, 19)
""",
    "the dead": "import os\nfor _ in range(8):\n    if not os.fork(): os._exit(0)",
    "deleted files": """import os
kept = [open(f'/work/{n}', 'w+b') for n in range(20)]
for n in range(20): os.unlink(f'/work/{n}')
""",
    "signals that never stop": """import signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
""",
}


@pytest.mark.parametrize("bench", [BackendName.NSJAIL], indirect=True, ids=str)
def test_a_backend_without_snapshots_says_so(bench: AttackBench) -> None:
    with pytest.raises(RefusedError):
        bench.neighbour.snapshot()


@pytest.mark.parametrize("bench", [BackendName.GVISOR], indirect=True, ids=str)
@pytest.mark.parametrize("busy", BUSY)
def test_a_snapshot_in_the_middle_of_anything_is_taken_or_refused_in_time(bench: AttackBench, busy: str) -> None:
    with bench.beside_a_neighbour(), bench.sandbox() as box:
        assert bench.call(box, BUSY[busy] + "\nmark = 7").status is OK
        started = time.monotonic()
        try:
            taken = box.snapshot()
        except SandboxError:
            assert time.monotonic() - started < PATIENCE
            return
        assert time.monotonic() - started < PATIENCE
        assert bench.call(box, "print(mark)").output == "7\n"
        box.restore(taken)
        assert bench.call(box, "print(mark)").output == "7\n"


def test_a_guest_cannot_ask_for_one(bench: AttackBench) -> None:
    paths = [
        f"/proc/gvisor/{name}" for name in ("checkpoint", "fscheckpoint", "snapshot", "enable", "kernel_is_gvisor")
    ]
    code = f"""import os
made = []
for path in {[*paths, "/proc/self/checkpoint", "/sys/kernel/checkpoint"]}:
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY | os.O_CREAT):
        try: os.write(os.open(path, flags), b'1'); made.append(path)
        except OSError: pass
print(made)"""
    with bench.sandbox() as box:
        assert bench.call(box, code).output == "[]\n"
        assert box.usage.snapshots == 0


def test_asking_for_them_in_a_loop_comes_to_an_end(bench: AttackBench) -> None:
    if bench.backend is BackendName.NSJAIL:
        return
    with bench.sandbox(snapshots=3) as box:
        taken = []
        for number in range(3):
            bench.call(box, f"x = {number}")
            taken.append(box.snapshot())
        with pytest.raises(LimitError):
            box.snapshot()
        assert bench.call(box, "print(x)").output == "2\n"
        assert len(set(taken)) == 3


def test_a_name_of_no_snapshot_is_no_snapshot(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        for name in ("", "x", "0" * 63, "0" * 64, "../" * 20, "\0", "A" * 64, "f" * 65):
            for action in (box.restore, lambda name: box.fork(name, 2), bench.pool.forget):
                with pytest.raises((BadRequestError, RefusedError)):
                    action(SnapshotId(name))
            assert bench.call(box, "print(1)").output == "1\n"


def flip(image: Path) -> None:
    with (image / "pages.img").open("r+b") as file:
        file.seek(4096 * 100 + 7)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))


def cut(image: Path) -> None:
    os.truncate(image / "pages.img", 4096)


def lengthen(image: Path) -> None:
    with (image / "checkpoint.img").open("ab") as file:
        file.write(b"x")


def link(image: Path) -> None:
    (image / "pages.img").rename(image.parent / "elsewhere")
    (image / "pages.img").symlink_to(image.parent / "elsewhere")


def second_name(image: Path) -> None:
    os.link(image / "pages.img", image.parent / "again")


def pipe(image: Path) -> None:
    (image / "pages.img").unlink()
    os.mkfifo(image / "pages.img")


def remove(image: Path) -> None:
    (image / "pages_meta.img").unlink()


def add(image: Path) -> None:
    (image / "more.img").write_bytes(b"x")


def open_to_others(image: Path) -> None:
    (image / "pages.img").chmod(0o666)


def no_manifest(image: Path) -> None:
    (image.parent / "manifest.json").unlink()


def other_manifest(image: Path) -> None:
    path = image.parent / "manifest.json"
    path.write_text(path.read_text().replace('"tmp_mib":8', '"tmp_mib":9'))


def linked_folder(image: Path) -> None:
    image.rename(image.parent / "kept")
    image.symlink_to(image.parent / "kept")


TAMPERED: list[Callable[[Path], None]] = [
    flip, cut, lengthen, link, second_name, pipe, remove, add, open_to_others, no_manifest, other_manifest,
    linked_folder,
]  # fmt: skip


@contextlib.contextmanager
def pool(state: Path, roots: Path, folder: Path) -> Iterator[Sessions]:
    own = BrokerSettings(state_dir=state, root_dir=roots, snapshot_dir=folder, ready=0)
    with Sessions(RuntimeSettings(own=own, limits=LIMITS)) as found:
        yield found


def test_what_was_tampered_with_on_disk_is_never_used(tmp_path: Path, attack_roots: Path) -> None:
    """Durable snapshots, each changed in another way before the next broker meets it; one stays as it was."""
    store = tmp_path / "store"
    with pool(tmp_path / "state", attack_roots, store) as sessions:
        box = sessions.sandbox(LIMITS.model_copy(update={"snapshots": 99}))
        taken = {}
        for number, tamper in enumerate([*TAMPERED, None]):
            box.run(f"mark = {number}")
            taken[box.snapshot(durable=True)] = tamper
        box.close()
    for key, tamper in taken.items():
        if tamper is not None:
            tamper(store / "durable" / key / "image")
    with pool(tmp_path / "state", attack_roots, store) as sessions:
        for key, tamper in taken.items():
            if tamper is not None:
                with pytest.raises((BadRequestError, RefusedError, InfrastructureError)):
                    sessions.sandbox(snapshot=key)
        box = sessions.sandbox(snapshot=key)
        assert box.run("print(mark)").output == f"{len(TAMPERED)}\n"
        box.close()


def test_snapshots_that_changed_places_are_never_used(tmp_path: Path, attack_roots: Path) -> None:
    store = tmp_path / "store"
    with pool(tmp_path / "state", attack_roots, store) as sessions:
        box = sessions.sandbox()
        one = box.snapshot(durable=True)
        box.run("x = 1")
        other = box.snapshot(durable=True)
        box.close()
    places = [store / "durable" / key for key in (one, other)]
    places[0].rename(store / "durable/x")
    places[1].rename(places[0])
    (store / "durable/x").rename(places[1])
    with pool(tmp_path / "state", attack_roots, store) as sessions:
        for key in (one, other):
            with pytest.raises((BadRequestError, RefusedError, InfrastructureError)):
                sessions.sandbox(snapshot=key)


def test_a_store_that_others_may_write_to_is_refused(tmp_path: Path, attack_roots: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    store.chmod(0o777)
    with pytest.raises(RefusedError), pool(tmp_path / "state", attack_roots, store):
        pass


def test_many_at_once_ask_for_the_same_one(bench: AttackBench) -> None:
    if bench.backend is BackendName.NSJAIL:
        return
    with bench.sandbox() as box:
        bench.call(box, "mark = 7")
        taken = box.snapshot()
        answers: list[str] = []

        def use() -> None:
            other = bench.pool.sandbox(snapshot=taken)
            answers.append(other.run("print(mark)").output)
            other.close()

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == ["7\n"] * 4
