"""Rows 53 and 54 of the catalogue: names and kinds of files that would lead the host astray."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from attack_kit import OK, AttackBench

from runtime.errors import BadRequestError, LimitError, SandboxError
from runtime.sandbox import FileKind

TRAPS = {
    "a link to a file": "os.symlink('/etc/passwd', '/work/trap')",
    "a link to itself": "os.symlink('trap', '/work/trap')",
    "a link to nothing": "os.symlink('/work/none', '/work/trap')",
    "a link upwards": "os.symlink('../../../../etc/passwd', '/work/trap')",
    "a second name": "open('/work/other', 'w').write('x'); os.link('/work/other', '/work/trap')",
    "a named pipe": "os.mkfifo('/work/trap')",
    "a folder": "os.mkdir('/work/trap')",
}
CLEARED = """import os
for entry in list(os.scandir('/work')):
    os.rmdir(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)"""


def test_a_trap_in_the_place_of_a_file_is_refused(bench: AttackBench, tmp_path: Path) -> None:
    with bench.sandbox() as box:
        for trap, code in TRAPS.items():
            assert bench.call(box, f"import os\n{code}").status is OK, trap
            started = time.monotonic()
            with pytest.raises(BadRequestError):
                box.read("/work/trap")
            with pytest.raises(BadRequestError):
                box.write("/work/trap", b"host")
            kinds = {entry.path: entry.kind for entry in box.list("/work")}
            if trap == "a folder":
                assert kinds["/work/trap"] is FileKind.FOLDER
            else:
                assert kinds["/work/trap"] is FileKind.OTHER, trap
                with pytest.raises(BadRequestError):
                    box.download("/work", tmp_path / "down")
                assert not (tmp_path / "down").exists()
            assert time.monotonic() - started < 240
            assert bench.call(box, "print(1)").output == "1\n"
            assert bench.call(box, CLEARED).status is OK, trap


def test_a_link_in_the_middle_of_a_path_is_followed_by_nothing(bench: AttackBench, tmp_path: Path) -> None:
    with bench.sandbox() as box:
        bench.call(box, "import os\nos.symlink('/etc', '/work/etc'); os.symlink('/tmp', '/work/there')")
        for path in ("/work/etc/passwd", "/work/there/x"):
            with pytest.raises(BadRequestError):
                box.read(path)
            with pytest.raises(BadRequestError):
                box.write(path, b"host")
        with pytest.raises(BadRequestError):
            box.list("/work/etc")
        with pytest.raises(BadRequestError):
            box.download("/work/there", tmp_path / "down")
        (tmp_path / "up").mkdir()
        (tmp_path / "up/passwd").write_bytes(b"host")
        with pytest.raises(SandboxError):
            box.upload(tmp_path / "up", "/work/etc")
        assert bench.call(box, "import os\nprint(os.listdir('/tmp'), 'host' in open('/etc/passwd').read())").output == (
            "[] False\n"
        )


PATHS = (
    "/etc/passwd", "/work/../etc/passwd", "/work/./a", "/work//a", "work/../a", "/work", "/", "", "/work/\0", "/tmp/..",
    "/work/" + "a" * 256, "/work/" + "a/" * 3_000 + "a", "/workx/a", "/proc/self/environ", "/work/a/../../etc/passwd",
    "a/./x", "/work/\ud800", "..", ".", "a" * 256, "a/" * 64 + "a",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
def test_a_path_that_is_no_plain_one_is_asked_of_nobody(bench: AttackBench, path: str) -> None:
    for action in (bench.neighbour.read, lambda path: bench.neighbour.write(path, b"")):
        with pytest.raises(BadRequestError):
            action(path)


NAMES = (
    "\n", "a\nb", "\x1b[2J", "\x7f", "\u202egnp.exe", " ", "-rf", "..a", "...", "a" * 255, "\udcff\udcfe", "\t",
    "\u2028", "CON", "a:b", "*", "$(reboot)", "`x`", "\\", "%s", "{0}",
)  # fmt: skip


def test_an_odd_name_is_copied_as_it_is_or_refused(bench: AttackBench, tmp_path: Path) -> None:
    with bench.sandbox() as box:
        for number, name in enumerate(NAMES):
            made = bench.call(box, f"import os\nname = os.fsencode({name!r})\nopen(name, 'w').write('x')")
            if made.status is not OK:
                continue
            listed = [entry.path for entry in box.list("/work")]
            assert len(listed) == 1
            listed[0].encode()
            target = tmp_path / str(number)
            try:
                assert box.download("/work", target) == 1
            except BadRequestError:
                assert not target.exists()
            else:
                assert os.listdir(target) == [name]  # noqa: PTH208
            assert bench.call(box, "os.unlink(name)").status is OK
        assert {entry.name for entry in tmp_path.iterdir()} <= {str(number) for number in range(len(NAMES))}


def test_a_downloaded_tree_has_nothing_but_plain_files_of_plain_rights(bench: AttackBench, tmp_path: Path) -> None:
    code = """import os
os.makedirs('/work/a/b'); open('/work/a/b/c', 'w').write('x')
os.chmod('/work/a/b/c', 0o6777); os.chmod('/work/a', 0o1777)
try: os.setxattr('/work/a/b/c', 'user.x', b'y')
except OSError: pass"""
    with bench.sandbox() as box:
        assert bench.call(box, code).status is OK
        assert box.download("/work", tmp_path / "down") == 1
    for path in (tmp_path / "down").rglob("*"):
        mode = path.lstat().st_mode
        assert stat.S_ISDIR(mode) or stat.S_ISREG(mode)
        assert not mode & 0o7000
        assert path.lstat().st_uid == os.getuid()


def test_what_is_too_much_is_refused_before_it_fills_the_host(bench: AttackBench, tmp_path: Path) -> None:
    with bench.sandbox(tmp_mib=8, work_mib=4) as box:
        bench.call(box, "open('/tmp/sparse', 'wb').truncate(31 << 20)")
        with pytest.raises(SandboxError):
            box.download("/tmp", tmp_path / "sparse")
        with pytest.raises(BadRequestError):
            box.read("/tmp/sparse")
        bench.call(box, "import os\nos.unlink('/tmp/sparse')\nfor n in range(400): open(f'/work/{n}', 'w').close()")
        with pytest.raises(LimitError):
            box.list("/work")
        with pytest.raises(LimitError):
            box.download("/work", tmp_path / "many")
        bench.call(box, "import os\nos.chdir('/tmp')\nfor n in range(200): os.mkdir('d'); os.chdir('d')")
        with pytest.raises((LimitError, BadRequestError)):
            box.download("/tmp", tmp_path / "deep")
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(BadRequestError):
            box.write("/work/large", bytes(5 << 20))
        assert bench.call(box, "print(1)").output == "1\n"


SWAPS = """import os, threading
os.makedirs('/work/real'); open('/work/real/x', 'w').write('mine'); open('/work/plain', 'w').write('mine')
os.symlink('/etc', '/work/link'); os.symlink('/etc/passwd', '/work/sly')
def swap():
    while True:
        for one, other in (('real', 'link'), ('plain', 'sly')):
            os.rename(f'/work/{one}', '/work/moved'); os.rename(f'/work/{other}', f'/work/{one}')
            os.rename('/work/moved', f'/work/{other}')
threading.Thread(target=swap, daemon=True).start()
"""


def test_a_tree_that_changes_while_it_is_read_gives_its_own_or_nothing(bench: AttackBench, tmp_path: Path) -> None:
    with bench.sandbox(cpus=0.5) as box:
        assert bench.call(box, SWAPS).status is OK
        seen, until = set(), time.monotonic() + 0.5
        while time.monotonic() < until:
            for path in ("/work/plain", "/work/real/x", "/work/real/passwd"):
                try:
                    seen.add(box.read(path))
                except BadRequestError:
                    seen.add(b"refused")
            try:
                box.download("/work", tmp_path / f"down-{len(seen)}-{time.monotonic_ns()}")
            except SandboxError:
                seen.add(b"refused")
        assert seen <= {b"mine", b"refused"}
    content = {path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert content <= {b"mine"}
    assert not [path for path in tmp_path.rglob("*") if path.is_symlink()]


def test_a_file_that_grows_while_it_is_read_ends_at_the_cap(bench: AttackBench) -> None:
    grows = """import threading
def grow():
    with open('/work/growing', 'wb', 0) as file:
        while True:
            file.write(b'x' * 4096)
            if file.tell() > 3 << 20: file.truncate(0); file.seek(0)
threading.Thread(target=grow, daemon=True).start()
"""
    with bench.sandbox(cpus=0.5) as box:
        assert bench.call(box, grows).status is OK
        for _ in range(30):
            try:
                assert len(box.read("/work/growing", max_bytes=1 << 16)) <= 1 << 16
            except BadRequestError:
                continue


HOST_TRAPS: dict[str, Callable[[Path], None]] = {
    "a link": lambda trap: trap.symlink_to("/etc/shadow"),
    "a named pipe": os.mkfifo,
    "a device": lambda trap: os.mknod(trap, stat.S_IFCHR | 0o666, os.makedev(1, 5)),
    "a second name": lambda trap: os.link(trap.with_name("plain"), trap),
}


def test_a_trap_of_the_host_is_not_uploaded(bench: AttackBench, tmp_path: Path) -> None:
    with bench.sandbox() as box:
        for name, make in HOST_TRAPS.items():
            source = tmp_path / name
            source.mkdir()
            (source / "plain").write_bytes(b"x")
            make(source / "trap")
            with pytest.raises(BadRequestError):
                box.upload(source, "/work/up")
            assert "trap" not in str(box.list("/work")), name
