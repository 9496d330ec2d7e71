"""Checks of file transfer: exact bytes, and names and kinds that cannot harm the host.

Checks that code cannot answer for the host: neither later calls, nor its own status, nor through its output.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Callable
from pathlib import Path

from runtime.conformance.check import LIMITS, Figures, Subject, answered, check, require, require_error
from runtime.errors import (
    BadRequestError,
    FileDeniedError,
    FileIsFolderError,
    FileMissingError,
    InfrastructureError,
    LimitError,
)
from runtime.guest import wire
from runtime.sandbox import CallStatus, FileKind, Sandbox

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


FILES = (
    files_come_back_as_they_were,
    only_plain_files_are_touched,
    a_path_is_told_what_is_wrong_with_it,
    hostile_names_touch_nothing,
)


FORGED = b"forged"
FRAMES = [
    wire.pack_reply(nonce, kind, FORGED, b'{"error": "forged", "traceback": "", "limit": "memory"}')
    for nonce in (wire.NO_NONCE, b"\xff" * wire.NONCE_BYTES)
    for kind in (wire.ReplyKind.OK, wire.ReplyKind.READY, wire.ReplyKind.TIMEOUT)
]
SPRAY = """import os, threading, time
def spray():
    for number in [*range(3, 256), *range(1000, 1030)]:
        try:
            os.set_blocking(number, False)
            for frame in frames:
                os.write(number, frame)
        except OSError:
            pass
    for number in filter(str.isdigit, os.listdir('/proc')):
        try:
            names = os.listdir(f'/proc/{number}/fd')
        except OSError:
            continue
        for name in names:
            try:
                if name not in ('0', '1', '2'):
                    pipe = os.open(f'/proc/{number}/fd/{name}', os.O_WRONLY | os.O_NONBLOCK)
                    os.write(pipe, b''.join(frames))
                    os.close(pipe)
            except OSError:
                pass
"""
NOW = "spray()\nprint('true')"
LATER = """def later():
    while True:
        time.sleep(0.02)
        spray()
threading.Thread(target=later, daemon=True).start()
if os.fork() == 0:
    os.setsid()
    later()
print('true')
"""


def _true_or_lost(box: Sandbox, code: str, *, alone: bool) -> None:
    """Checks that reply frames forged by `code` never appear as a host answer; code may end its own sandbox. `alone`:
    nothing else may have printed into this call."""
    try:
        result = box.run(code)
    except InfrastructureError:
        return
    if result.status is CallStatus.OK and alone:
        require(result.output == "true\n", f"a call whose code printed 'true' came out with {result.output[:60]!r}")
    require("forged" not in result.error, f"a forged reply ended a call with {result.status.value}: {result.error!r}")
    require(
        result.status in (CallStatus.OK, CallStatus.DIED, CallStatus.EXCEPTION),
        f"a forged reply made the host say {result.status.value}",
    )


@check(
    "replies cannot be forged",
    "Frames written to every descriptor, now and from the background, without a call's nonce, answer none.",
)
def replies_cannot_be_forged(subject: Subject) -> Figures:
    for attack in (NOW, LATER):
        with subject.sandbox() as box:
            answered(box.run(f"frames = {FRAMES!r}\n{SPRAY}"))
            _true_or_lost(box, attack, alone=True)
            for _ in range(5):
                _true_or_lost(box, "time.sleep(0.05)\nprint('true')", alone=True)
    with subject.sandbox() as box:
        require(answered(box.run("print('after')")) == "after\n", "a sandbox that came later does not answer")
    return {"frames": float(len(FRAMES))}


REACH = """import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
reached, mine = [], os.getpid()
def look(proc):
    for number in filter(str.isdigit, os.listdir(proc)):
        if int(number) == mine:
            continue
        for name in os.listdir(f'{proc}/{number}/fd'):
            try:
                os.close(os.open(f'{proc}/{number}/fd/{name}', os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                continue
            reached.append(f'descriptor {name} of process {number} by {proc}')
def tried(name, attempt):
    try:
        if attempt() >= 0:
            reached.append(name)
    except OSError:
        pass
def by_a_mount():
    os.makedirs('/work/proc')
    if libc.unshare(0x10000000 | 0x20000) == 0 and libc.mount(b'proc', b'/work/proc', b'proc', 0, None) == 0:
        look('/work/proc')
    return -1
def taken(process, number):
    return libc.syscall(438, libc.syscall(434, process, 0), number, 0)
def attached(process):
    if libc.ptrace(16, process, None, None) < 0:
        return -1
    return libc.ptrace(17, process, None, None)
try:
    look('/proc')
except OSError:
    pass
for process in {os.getppid(), 1} - {mine, 0}:
    for number in (200, 201):
        tried(f'descriptor {number} of process {process}', lambda: taken(process, number))
    tried(f'ptrace of process {process}', lambda: attached(process))
tried('a mount of /proc', by_a_mount)
print(json.dumps(reached))
"""


@check(
    "the supervisor is out of reach",
    "Code can open no descriptor of another process, trace none, and mount no /proc that shows one.",
)
def the_supervisor_is_out_of_reach(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        reached = json.loads(answered(box.run(REACH)))
    require(not reached, f"code reaches {', '.join(map(str, reached[:5]))}")
    return {}


CLAIMS = {
    "a status in what is printed": ('print(\'{"status": "timeout"}\')', CallStatus.OK),
    "an exit code": ("raise SystemExit(0)", CallStatus.EXCEPTION),
    "an exit of the interpreter": ("import os\nos._exit(0)", CallStatus.DIED),
    "an error as the host would write it": (
        "class InfrastructureError(Exception): pass\nraise InfrastructureError('the sandbox is gone')",
        CallStatus.EXCEPTION,
    ),
    "an error that cannot be told": (
        "class Sly(BaseException):\n    def __str__(self): raise self\n    __repr__ = __str__\nraise Sly",
        CallStatus.EXCEPTION,
    ),
    "the wrong bytes": ("import os\nos.write(1, b'\\xff\\x00')\nprint(chr(0xd800))", None),
}


@check(
    "statuses are the host's",
    "No exit code, message or output of code is taken for what the host says, and errors are one line of text.",
    quick=False,
)
def statuses_are_the_hosts(subject: Subject) -> Figures:
    for name, (code, expected) in CLAIMS.items():
        with subject.sandbox() as box:
            result = box.run(code)
            identity = box.id
        allowed = (CallStatus.OK, CallStatus.EXCEPTION) if expected is None else (expected,)
        require(result.status in allowed, f"with {name} a call ended with {result.status.value}")
        require(result.sandbox == identity, f"with {name} a call says that it ran in {result.sandbox!r}")
        require("\n" not in result.error, f"with {name} the error has {result.error!r}")
        for text in (result.output, result.error, result.traceback):
            text.encode()
    return {"claims": float(len(CLAIMS))}


REPLIES = (replies_cannot_be_forged, the_supervisor_is_out_of_reach, statuses_are_the_hosts)
