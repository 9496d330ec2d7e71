"""Trees that user code made to trip whoever lists, reads or writes in them, in a real sandbox."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from box_kit import Bench, Guest

from runtime.backends.gvisor import GVisor
from runtime.guest import wire
from runtime.guest.wire import Op, ReplyKind
from runtime.settings import BrokerSettings


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory, root_dir: Path) -> Iterator[Guest]:
    bench = Bench(BrokerSettings(state_dir=tmp_path_factory.mktemp("trees"), root_dir=root_dir), GVisor)
    try:
        with bench.guest(tmp_mib=32, memory_mib=256) as found:
            found.says("import os, shutil, stat\nos.chdir('/work')")
            yield found
    finally:
        bench.close()


EMPTY = """
for name in os.listdir('/work'):
    path = '/work/' + name
    shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
"""


@pytest.fixture(autouse=True)
def _empty(guest: Guest) -> None:
    guest.says(EMPTY)


def listing(guest: Guest, path: str = "/work", entries: int = 1_000) -> dict[bytes, tuple[str, int]]:
    reply = guest.ask(Op.LIST, wire.list_body(path, entries=entries))
    assert reply.kind == ReplyKind.OK, reply
    found, code_range = {}, 0
    while code_range < len(reply.output):
        kind, size, length = wire.ENTRY.unpack_from(reply.output, code_range)
        code_range += wire.ENTRY.size
        found[reply.output[code_range : code_range + length]] = (kind.decode(), size)
        code_range += length
    return found


def refusal(guest: Guest, op: Op, body: bytes) -> str:
    reply = guest.ask(op, body)
    assert reply.kind == ReplyKind.REFUSED, reply
    return reply.report.decode()


def test_everything_is_named_and_only_plain_files_are_files(guest: Guest) -> None:
    guest.says(
        "os.makedirs('/work/d/e')\nopen('/work/d/e/f', 'w').write('12345')\nos.symlink('/work/d', '/work/link')\n"
        "os.symlink('/nowhere', '/work/dangling')\nos.mkfifo('/work/fifo')\nopen('/work/one', 'w').close()\n"
        "os.link('/work/one', '/work/two')\nos.mkdir('/work/shut')\nos.chmod('/work/shut', 0)"
    )
    assert listing(guest) == {
        b"d": ("d", 0), b"d/e": ("d", 0), b"d/e/f": ("f", 5), b"link": ("o", 0), b"dangling": ("o", 0),
        b"fifo": ("o", 0), b"one": ("o", 0), b"two": ("o", 0), b"shut": ("o", 0),
    }  # fmt: skip
    guest.says("os.chmod('/work/shut', 0o700)")


def test_folders_come_before_what_is_in_them(guest: Guest) -> None:
    guest.says("os.makedirs('/work/b/a/c')\nopen('/work/b/a/x', 'w').close()\nopen('/work/a', 'w').close()")
    seen: list[bytes] = []
    for path in listing(guest):
        above, _, _ = path.rpartition(b"/")
        assert not above or above in seen
        seen.append(path)


def test_names_of_any_bytes_come_through_and_can_be_read(guest: Guest) -> None:
    names = [b"new\nline", b"\xff\xfe", b" ", b"-rf", b"\x1b[31m", "ü".encode(), b"a" * 255]
    guest.says(f"for name in {names!r}: open(b'/work/' + name, 'wb').write(name)")
    assert listing(guest) == {name: ("f", len(name)) for name in names}
    for name in names:
        reply = guest.ask(Op.READ, wire.read_body("/work/" + os.fsdecode(name), offset=0, max_bytes=300))
        assert (reply.kind, reply.output) == (ReplyKind.OK, name)


def test_a_folder_of_very_many_names_is_refused_before_it_is_read_to_its_end(guest: Guest) -> None:
    guest.says("for n in range(5_000): os.mknod(f'/work/{n}')")
    start = time.monotonic()
    assert refusal(guest, Op.LIST, wire.list_body("/work", entries=100)) == "more than 100 names"
    assert time.monotonic() - start < 30
    assert len(listing(guest, entries=5_000)) == 5_000
    assert refusal(guest, Op.LIST, wire.list_body("/work", entries=4_999)) == "more than 4999 names"


def test_many_long_paths_are_refused_before_they_fill_the_pipe(guest: Guest) -> None:
    guest.says("for n in range(4_500): os.mknod(f'/work/{n:0250}')")
    assert refusal(guest, Op.LIST, wire.list_body("/work", entries=100_000)).startswith("more than ")


def test_folders_deeper_than_can_be_held_open_are_refused(guest: Guest) -> None:
    guest.says("for n in range(300):\n    os.mkdir('d')\n    os.chdir('d')\nos.chdir('/work')")
    assert refusal(guest, Op.LIST, wire.list_body("/work", entries=1_000)).startswith("more than ")
    assert guest.ask(Op.PING).kind == ReplyKind.READY
    guest.says("while True:\n    try: os.chdir('d')\n    except OSError: break\n"
               "for n in range(300):\n    os.chdir('..')\n    os.rmdir('d')")  # fmt: skip


@pytest.mark.parametrize(
    ("trap", "path"),
    [
        ("os.mkfifo('/work/trap')", "/work/trap"),
        ("open('/work/x', 'w').close(); os.link('/work/x', '/work/trap')", "/work/trap"),
        ("os.symlink('/etc/passwd', '/work/trap')", "/work/trap"),
        ("os.symlink('/etc', '/work/trap')", "/work/trap/passwd"),
        ("os.mkdir('/work/trap')", "/work/trap"),
        ("import socket; socket.socket(socket.AF_UNIX).bind('/work/trap')", "/work/trap"),
    ],
)
def test_a_trap_is_neither_read_nor_written_through(guest: Guest, trap: str, path: str) -> None:
    guest.says(trap)
    start = time.monotonic()
    refusal(guest, Op.READ, wire.read_body(path, offset=0, max_bytes=100))
    refusal(guest, Op.WRITE, wire.write_body(path, b"x", parents=True))
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/etc", "/work/../etc/passwd", "work/x", "/work//x", "/", "", "/work/.", "/proc/self/mem"]
)
def test_a_path_that_is_no_plain_one_below_its_folders_is_refused(guest: Guest, path: str) -> None:
    assert "plain names" in refusal(guest, Op.READ, wire.read_body(path, offset=0, max_bytes=1))
    assert "plain names" in refusal(guest, Op.WRITE, wire.write_body(path, b"", parents=True))


def test_a_folder_is_said_to_be_one(guest: Guest) -> None:
    guest.says("os.mkdir('/work/d')")
    for path in ("/work", "/work/d", "/tmp"):
        assert refusal(guest, Op.READ, wire.read_body(path, offset=0, max_bytes=1)) == "Is a directory"
        assert refusal(guest, Op.WRITE, wire.write_body(path, b"", parents=True)) == "Is a directory"


def test_what_was_sent_ahead_is_used_once_and_only_whole(guest: Guest) -> None:
    def stage(offset: int, piece: bytes) -> int:
        return guest.ask(Op.STAGE, wire.stage_body(offset, piece)).kind

    def written(last: bytes, staged: int) -> bytes:
        if guest.ask(Op.WRITE, wire.write_body("/work/f", last, staged=staged)).kind != ReplyKind.OK:
            return b"refused"
        return guest.ask(Op.READ, wire.read_body("/work/f", offset=0, max_bytes=100)).output

    assert stage(0, b"lost") == stage(0, b"one ") == stage(4, b"two ") == ReplyKind.OK
    assert stage(99, b"a gap") == ReplyKind.REFUSED
    assert written(b"three", 8) == b"one two three"
    assert written(b"again", 8) == b"refused"
    assert stage(0, b"for nobody") == ReplyKind.OK
    assert written(b"plain", 0) == b"plain"
    assert written(b"late", 10) == b"refused"


def test_a_sparse_file_is_read_in_parts_as_small_as_they_are_asked_for(guest: Guest) -> None:
    guest.says("with open('/tmp/sparse', 'wb') as file: file.truncate(30 << 20)")
    reply = guest.ask(Op.READ, wire.read_body("/tmp/sparse", offset=20 << 20, max_bytes=100))
    assert reply.output == bytes(100)
    reply = guest.ask(Op.READ, wire.read_body("/tmp/sparse", offset=1 << 40, max_bytes=100))
    assert (reply.kind, reply.output) == (ReplyKind.OK, b"")
    reply = guest.run("with open('/tmp/huge', 'wb') as file: file.truncate(1 << 40)")
    assert reply.kind == ReplyKind.EXCEPTION
    assert b'"limit": "disk"' in reply.report
    guest.says("os.unlink('/tmp/sparse')")


def test_a_file_is_read_from_where_it_was_asked_and_no_further(guest: Guest) -> None:
    guest.ask(Op.WRITE, wire.write_body("/work/deep/er/file", b"0123456789", parents=True))
    for offset, size, wanted in ((0, 100, b"0123456789"), (3, 4, b"3456"), (8, 100, b"89"), (10, 5, b""), (0, 0, b"")):
        assert guest.ask(Op.READ, wire.read_body("/work/deep/er/file", offset=offset, max_bytes=size)).output == wanted
    assert "No such file" in refusal(guest, Op.WRITE, wire.write_body("/work/no/such", b"x"))


def test_a_write_without_room_leaves_what_was_there_and_nothing_else(guest: Guest) -> None:
    guest.ask(Op.WRITE, wire.write_body("/work/kept", b"before"))
    full = guest.run("with open('/work/fill', 'wb', 0) as file:\n    while True: file.write(bytes(4096))")
    assert b'"limit": "disk"' in full.report
    assert refusal(guest, Op.WRITE, wire.write_body("/work/kept", bytes(30_000))) == "No space left on device"
    assert guest.says("print(sorted(os.listdir('/work')), open('/work/kept').read())") == "['fill', 'kept'] before\n"
