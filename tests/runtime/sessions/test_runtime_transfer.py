"""A tree that a hostile guest lists, or a careless user uploads, never becomes more than plain files where it may."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS

from runtime.errors import BadRequestError, LimitError, SandboxError
from runtime.guest import wire
from runtime.guest.wire import FrameError
from runtime.sandbox import FileKind
from runtime.sessions import Sessions, transfer
from runtime.sessions.transfer import Caps, ListedName

CAPS = Caps(entries=100, bytes=10_000)


def file(path: str | bytes, size: int = 1) -> ListedName:
    return ListedName(path.encode() if isinstance(path, str) else path, FileKind.FILE, size)


def folder(path: str) -> ListedName:
    return ListedName(path.encode(), FileKind.FOLDER, 0)


def one_byte(_path: str, offset: int, _most: int) -> bytes:
    return b"x" if offset == 0 else b""


def everything_in(top: Path) -> list[str]:
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))


HOSTILE = [
    [file("../evil")],
    [file("/etc/evil")],
    [folder("a"), file("a/../../evil")],
    [folder(".."), file("../evil")],
    [file("a//b")],
    [file("")],
    [file(".")],
    [file("a/")],
    [file("evil\0")],
    [file("\x1b[2J")],
    [file("new\nline")],
    [file("right\u202eleft")],
    [file("\u2028")],
    [file(b"\xff\xfe")],
    [file(b"\xed\xa0\x80")],
    [file("a" * 256)],
    [file("\u00e9" * 200)],
    [*(folder("d/" * n + "d") for n in range(40)), file("d/" * 40 + "f")],
    [file("a"), file("a")],
    [file("a"), folder("a")],
    [folder("a"), folder("a")],
    [file("a"), file("a/b")],
    [file("nowhere/a")],
    [ListedName(b"link", FileKind.OTHER, 0)],
    [file("fine"), ListedName(b"pipe", FileKind.OTHER, 0)],
]


@pytest.mark.parametrize("listing", HOSTILE, ids=lambda listing: repr(listing[-1].path[:20]))
def test_a_hostile_listing_is_refused_and_leaves_nothing(tmp_path: Path, listing: list[ListedName]) -> None:
    with pytest.raises(BadRequestError):
        transfer.download(listing, tmp_path / "target", CAPS, one_byte)
    assert everything_in(tmp_path) == []


@pytest.mark.parametrize(
    "listing",
    [[file(f"{n}") for n in range(101)], [file("sparse", 1 << 44)], [file("a", 6_000), file("b", 6_000)]],
    ids=["entries", "one giant", "together"],
)
def test_too_much_is_refused_before_anything_is_made(tmp_path: Path, listing: list[ListedName]) -> None:
    with pytest.raises(LimitError):
        transfer.download(listing, tmp_path / "target", CAPS, one_byte)
    assert everything_in(tmp_path) == []


def test_a_file_that_grows_while_it_is_read_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(LimitError):
        transfer.download([folder("d"), file("d/a")], tmp_path / "target", CAPS, lambda _path, _at, most: b"x" * most)
    assert everything_in(tmp_path) == []


def test_a_guest_that_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    def read(path: str, _offset: int, _most: int) -> bytes:
        if path == "d/b":
            raise BadRequestError("gone")
        return b"x"

    with pytest.raises(BadRequestError):
        transfer.download([folder("d"), file("d/a"), file("d/b")], tmp_path / "target", CAPS, read)
    assert everything_in(tmp_path) == []


def test_a_target_that_exists_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    before = everything_in(tmp_path)
    for name in ("folder", "file", "link", "dangling", "no/parent"):
        with pytest.raises(BadRequestError):
            transfer.download([file("a")], tmp_path / name, CAPS, one_byte)
    assert everything_in(tmp_path) == before


def test_what_comes_out_is_plain_and_has_plain_modes(tmp_path: Path) -> None:
    listing = [file("a"), folder("d"), folder("d/e"), file("d/e/b c"), file("d-x"), folder("empty")]
    assert transfer.download(listing, tmp_path / "target", CAPS, one_byte) == 3
    assert everything_in(tmp_path / "target") == ["a", "d", "d-x", "d/e", "d/e/b c", "empty"]
    mask = os.umask(0)
    os.umask(mask)
    for path in (tmp_path / "target").rglob("*"):
        expected = 0o755 if path.is_dir() else 0o644
        assert stat.S_IMODE(path.lstat().st_mode) == expected & ~mask


NAMES = st.sampled_from([b"a", b"b", b"..", b".", b"", b"/", b"\0", b"\xff", b"a b", "é".encode(), b"~", b"\n"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(b"/".join)
RECORDS = st.builds(ListedName, PATHS, st.sampled_from(FileKind), st.integers(0, 20_000))


@settings(max_examples=100, deadline=None)
@given(st.lists(RECORDS, max_size=8), st.binary(max_size=40))
def test_no_listing_reaches_beyond_its_target(listing: list[ListedName], content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        (top / "beside").write_text("untouched")
        with contextlib.suppress(SandboxError):
            transfer.download(listing, top / "in" / "..", CAPS, lambda _path, at, most: content[at : at + most])
        try:
            transfer.download(listing, top / "target", CAPS, lambda _path, at, most: content[at : at + most])
            assert (top / "target").is_dir()
        except SandboxError:
            assert not (top / "target").exists()
        assert {path.name for path in top.iterdir()} <= {"beside", "target"}
        assert (top / "beside").read_text() == "untouched"
        for path in (top / "target").rglob("*"):
            assert stat.S_ISREG(path.lstat().st_mode) or stat.S_ISDIR(path.lstat().st_mode)
            assert not path.is_file() or path.read_bytes() == content


@settings(max_examples=FROM_STRANGERS)
@given(st.binary(max_size=80))
def test_any_bytes_are_a_listing_or_refused(data: bytes) -> None:
    try:
        found = transfer.records(data)
    except FrameError:
        return
    packed = b"".join(wire.ENTRY.pack(b"x", one.size, len(one.path)) + one.path for one in found)
    assert len(packed) == len(data)


TRAPS: dict[str, Callable[[Path], object]] = {
    "link": lambda path: path.symlink_to("/etc/passwd"),
    "link to a folder": lambda path: path.symlink_to("/etc"),
    "second name": lambda path: path.hardlink_to(path.parent / "plain"),
    "pipe": os.mkfifo,
    "socket": lambda path: socket.socket(socket.AF_UNIX).bind(str(path)),
    "odd name": lambda path: (path.parent / "\x1b[31m").write_text("x"),
    "no text": lambda path: Path(os.fsdecode(os.fsencode(path.parent) + b"/\xff")).write_text("x"),
    "too much": lambda path: path.write_bytes(bytes(20_000)),
    "sparse": lambda path: os.truncate(path, 1 << 40) if path.write_text("") == 0 else None,
    "too many": lambda path: [(path.parent / f"{n}").write_text("") for n in range(200)],
}


@pytest.mark.parametrize("trap", TRAPS)
def test_only_plain_files_are_uploaded(tmp_path: Path, trap: str) -> None:
    (tmp_path / "plain").write_text("plain")
    TRAPS[trap](tmp_path / "trap")
    with pytest.raises((BadRequestError, LimitError)):
        transfer.upload(tmp_path, CAPS, lambda _path, _data: None)


def test_an_upload_names_every_file_once_and_follows_no_link_to_its_top(tmp_path: Path) -> None:
    (tmp_path / "tree/d/e").mkdir(parents=True)
    (tmp_path / "tree/a").write_bytes(b"1")
    (tmp_path / "tree/d/e/b").write_bytes(b"22")
    seen: dict[str, bytes] = {}
    assert transfer.upload(tmp_path / "tree", CAPS, seen.__setitem__) == 2
    assert seen == {"a": b"1", "d/e/b": b"22"}
    (tmp_path / "link").symlink_to(tmp_path / "tree")
    for source in ("link", "tree/a", "nowhere"):
        with pytest.raises(BadRequestError):
            transfer.upload(tmp_path / source, CAPS, seen.__setitem__)


def test_a_tree_goes_in_and_comes_out_as_it_was(pool: Sessions, tmp_path: Path) -> None:
    tree = {"a.txt": b"first", "empty": b"", "deep/er/b.bin": os.urandom(1_500_000), "deep/sp ace é": b"\x00\xff"}
    for name, data in tree.items():
        (tmp_path / "up" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "up" / name).write_bytes(data)
    with pool.sandbox() as sandbox:
        assert sandbox.upload(tmp_path / "up", "/work/tree") == len(tree)
        listed = {entry.path: (entry.kind, entry.size) for entry in sandbox.list("/work")}
        assert listed["/work/tree/deep/er"][0] is FileKind.FOLDER
        assert {
            f"/work/tree/{name}": (FileKind.FILE, len(data)) for name, data in tree.items()
        }.items() <= listed.items()
        assert sandbox.download("/work/tree", tmp_path / "down") == len(tree)
        with pytest.raises(BadRequestError):
            sandbox.download("/work/tree", tmp_path / "down")
        with pytest.raises(BadRequestError):
            sandbox.download("/etc", tmp_path / "etc")
        with pytest.raises(BadRequestError):
            sandbox.upload(tmp_path / "up", "/usr")
    down = tmp_path / "down"
    assert {str(path.relative_to(down)): path.read_bytes() for path in down.rglob("*") if path.is_file()} == tree


GUEST_TRAPS = [
    "os.symlink('/etc/passwd', 't/link')",
    "os.symlink('..', 't/up')",
    "open('t/a', 'w').close(); os.link('t/a', 't/twin')",
    "os.mkfifo('t/pipe')",
    "open(b't/\\xff', 'w').close()",
    "open('t/\\x1b[2J', 'w').close()",
    "for n in range(8): open(f't/{n}', 'wb').truncate(3 << 20)",
    "[os.mkdir('t/' + 'd/' * n + 'd') for n in range(60)]",
    "os.rename('t', 'real'); os.symlink('real', 't')",
    "import shutil; shutil.rmtree('t'); os.mkfifo('t')",
]


@pytest.mark.parametrize("trap", GUEST_TRAPS)
def test_a_trap_of_the_guest_takes_the_whole_download_with_it(pool: Sessions, tmp_path: Path, trap: str) -> None:
    with pool.sandbox() as sandbox:
        sandbox.run(f"import os\nos.chdir('/work')\nos.mkdir('t')\nopen('t/fine', 'w').write('fine')\n{trap}")
        with pytest.raises((BadRequestError, LimitError)):
            sandbox.download("/work/t", tmp_path / "target")
        assert everything_in(tmp_path) == []
        assert sandbox.run("print(1)").output == "1\n"
