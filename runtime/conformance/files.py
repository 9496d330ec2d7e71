"""Checks of file transfer: exact bytes, and names and kinds that cannot harm the host."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable
from pathlib import Path

from runtime.conformance.check import LIMITS, Figures, Subject, answered, check, require, require_error
from runtime.errors import BadRequestError, FileDeniedError, FileIsFolderError, FileMissingError, LimitError
from runtime.sandbox import FileKind, Sandbox

CONTENT = bytes(range(256)) * 512
TREE = {"a.txt": b"first", "empty": b"", "deep/er/b.bin": CONTENT, "deep/sp ace \u00e9": b"\x00\xff"}


@check("files come back as they were", "Files and trees go in and come out byte by byte, and code sees the same.")
def files_come_back_as_they_were(subject: Subject) -> Figures:
    source, target = subject.scratch / "up", subject.scratch / "down"
    for name, data in TREE.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    with subject.sandbox() as box:
        box.write("/work/one.bin", CONTENT)
        require(box.read("/work/one.bin") == CONTENT, "a file came back with other bytes")
        seen = answered(box.run("import hashlib\nprint(hashlib.sha256(open('/work/one.bin','rb').read()).hexdigest())"))
        box.write("/work/one.bin", b"other")
        require(box.read("/work/one.bin") == b"other", "a file that was written again kept its old bytes")
        digest = hashlib.sha256(CONTENT).hexdigest()
        require(seen.strip() == digest, "code sees other bytes than those that were written")
        sent = box.upload(source, "/work/tree")
        require(sent == len(TREE), f"{sent} of {len(TREE)} files were uploaded")
        listed = {entry.path: (entry.kind, entry.size) for entry in box.list("/work/tree")}
        for name, data in TREE.items():
            found = listed.get(f"/work/tree/{name}")
            require(found == (FileKind.FILE, len(data)), f"{name} is listed as {found}")
        taken = box.download("/work/tree", target)
    require(taken == len(TREE), f"{taken} of {len(TREE)} files were downloaded")
    back = {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}
    require(back == TREE, f"the tree came back with {sorted(back)}, or with other bytes")
    return {"files": float(taken)}


OUTSIDE = (
    "/etc/passwd",
    "/work/../etc/passwd",
    "/work/./a",
    "/work//a",
    "work/../a",
    "/work",
    "/work/\0a",
    "/work/" + "a" * 300,
    "/proc/self/environ",
    "",
)
TRAPS = {
    "link": "os.symlink('/etc/passwd', '/work/trap')",
    "link to a folder": "os.symlink('/etc', '/work/trap')",
    "second name": "open('/work/other', 'w').close(); os.link('/work/other', '/work/trap')",
    "pipe": "os.mkfifo('/work/trap')",
    "socket": (
        "try: kept = socket.socket(socket.AF_UNIX); kept.bind('/work/trap')\n"
        "except OSError: os.mkfifo('/work/trap')  # a backend may know no sockets at all"
    ),
    "folder": "os.mkdir('/work/trap')",
}
CLEAN = """import os, shutil, socket
for name in os.listdir('/work'):
    path = '/work/' + name
    shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
"""


def _refused(attempt: Callable[[], object], what: str) -> None:
    require_error(attempt, f"{what} was not refused", (BadRequestError, LimitError))


@check("only plain files are touched", "No path, link, second name, pipe or socket leads outside /work and /tmp.")
def only_plain_files_are_touched(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        for path in OUTSIDE:
            _refused(lambda path=path: box.read(path), f"reading {path[:40]!r}")  # type: ignore[misc]
            _refused(lambda path=path: box.write(path, b"x"), f"writing {path[:40]!r}")  # type: ignore[misc]
        for name, trap in TRAPS.items():
            answered(box.run(CLEAN + trap))
            _refused(lambda: box.read("/work/trap"), f"reading a {name}")
            kinds = {entry.path: entry.kind for entry in box.list()}
            expected = FileKind.FOLDER if name == "folder" else FileKind.OTHER
            found = kinds.get("/work/trap")
            require(found is expected, f"a {name} is listed as {found}")
        answered(box.run(CLEAN + "os.mkdir('/tmp/real'); os.symlink('/tmp/real', '/work/sly')"))
        _refused(lambda: box.read("/work/sly/passwd"), "a path through a link")
        _refused(lambda: box.write("/work/sly/made", b"x"), "writing through a link")
    return {"paths": float(len(OUTSIDE)), "traps": float(len(TRAPS))}


@check("a path is told what is wrong with it", "Missing, shut, a folder: each is said. Writing makes folders.")
def a_path_is_told_what_is_wrong_with_it(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        box.write("made/by/writing", b"one")
        answered(box.run("import os; os.chmod('/work/made/by/writing', 0o400)"))
        require(box.read("/work/made/by/writing") == b"one", "a relative path does not begin in /work")
        require_error(lambda: box.write("made/by/writing", b"two"), "a file that is shut was written", FileDeniedError)
        require_error(lambda: box.write("made/by", b"two"), "a folder was written", FileIsFolderError)
        require_error(lambda: box.read("made"), "a folder was read", FileIsFolderError)
        require_error(lambda: box.read("made/not"), "nothing was read", FileMissingError)
        answered(box.run("os.chmod('/work/made/by/writing', 0)"))
        require_error(lambda: box.read("made/by/writing"), "a file that is shut was read", FileDeniedError)
    return {}


HOSTILE = r"""import json, os
os.chdir('/work')
os.makedirs('tree/...')
names = [b'plain', b'new\nline', b'\x1b[2J\x1b]0;title\x07', b'-rf', b'..\\..\\up', b'%2e%2e', b'\xff\xfe',
         b'a' * 255, b' ', b'...', 'right\u202eleft'.encode(), b'con', b'~', b'$(id)']
made = 0
for name in names:
    try:
        with open(b'tree/' + name, 'wb') as file:
            file.write(b'x')
        made += 1
    except OSError:
        pass
os.symlink('/etc/passwd', 'tree/link')
os.symlink('..', 'tree/up')
os.link('tree/plain', 'tree/twin')
os.mkfifo('tree/pipe')
print(made)
"""
EMPTY = "import os, shutil\nos.chdir('/')\nshutil.rmtree('/work/bomb', True)\nos.mkdir('/work/bomb')\n"
BOMBS = {
    "a huge sparse file": (
        "for bits in range(44, 20, -1):\n"
        "    try: open('/work/bomb/file', 'wb').truncate(1 << bits); break\n"
        "    except OSError: pass"
    ),
    "a deep tree": (
        "os.chdir('/work/bomb')\nfor _ in range(300):\n    os.mkdir('d'); os.chdir('d')\nopen('f','w').close()"
    ),
}
"""Oversized trees, each as large as the backend permits."""


@check(
    "hostile names touch nothing",
    "Hostile names and files never make a listing or download change anything else on the host.",
)
def hostile_names_touch_nothing(subject: Subject) -> Figures:
    target, beside = subject.scratch / "down", subject.scratch / "beside"
    beside.write_text("untouched")
    refusals = 0
    with subject.sandbox() as box:
        made = int(answered(box.run(HOSTILE)))
        listed = [entry.path for entry in box.list("/work/tree")]
        require(
            all(path.startswith("/work/tree/") and "/../" not in f"{path}/" for path in listed),
            f"a listing has names that are not below its folder: {listed}",
        )
        require("/work/tree/plain" in listed and len(listed) >= made, f"{len(listed)} of {made} names are listed")
        refusals += _taken_whole_or_not(box, "/work/tree", target)
        _only_plain(subject.scratch, {"beside", "down"})
        for name, bomb in BOMBS.items():
            answered(box.run(f"{EMPTY}{bomb}"))
            _taken_whole_or_not(box, "/work/bomb", target.with_name(f"down {name}"))
            _only_plain(subject.scratch, {"beside", "down", *(f"down {name}" for name in BOMBS)})
    require(beside.read_text() == "untouched", "a download changed a file beside its folder")
    return {"names": float(made), "refusals": float(refusals)}


def _taken_whole_or_not(box: Sandbox, path: str, target: Path) -> int:
    """Downloads a folder from a sandbox; returns 1 if the download was refused, else 0."""
    try:
        box.download(path, target)
    except (BadRequestError, LimitError):
        return 1
    return 0


def _only_plain(folder: Path, known: set[str]) -> None:
    """Asserts that a folder holds only plain files and folders, and only known names at the top."""
    names = {path.name for path in folder.iterdir()}
    require(names <= known, f"beside the download there is {sorted(names - known)}")
    size = entries = 0
    for path in folder.rglob("*"):
        facts = path.lstat()
        plain = stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)
        require(plain and (facts.st_nlink == 1 or path.is_dir()), f"{path.name!r} came out as more than a plain file")
        size, entries = size + facts.st_blocks * 512, entries + 1
    require(size < 64 << 20, f"downloads took {size >> 20} MiB of the host's disk")
    require(entries < 3 * LIMITS.entries, f"downloads made {entries} files and folders")


CHECKS = (
    files_come_back_as_they_were,
    only_plain_files_are_touched,
    a_path_is_told_what_is_wrong_with_it,
    hostile_names_touch_nothing,
)
