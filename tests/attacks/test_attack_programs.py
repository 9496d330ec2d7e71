"""Attacks through what the host does for its caller in a sandbox with programs and users: files by path, programs with
arguments, input, environment, folder and user. Each has to end as a plain answer, and leave the sandbox to be used."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any

import pytest
from attack_kit import LIMITS, OK, OUTPUT, TIMEOUT, AttackBench
from tables import table

from runtime.errors import (
    BadRequestError,
    FileDeniedError,
    FileIsFolderError,
    FileMissingError,
    FileTooLargeError,
    InfrastructureError,
    LimitError,
    RefusedError,
    UnknownUserError,
)
from runtime.profile import BackendName
from runtime.sandbox import CallStatus, Sandbox

PYTHON = "/usr/bin/python3"
WHO = "import os; print(os.getresuid())"


@pytest.fixture(scope="session")
def attack_roots(full_roots: os.PathLike[str]) -> os.PathLike[str]:
    return full_roots


BOXES: dict[BackendName, Sandbox] = {}


@pytest.fixture
def box(bench: AttackBench) -> Iterator[Sandbox]:
    """One for each backend; after each test it still answers, and is emptied."""
    if bench.backend not in BOXES:
        limits = LIMITS.model_copy(update={"life_seconds": 3_600.0, "cpu_seconds": 3_600.0})
        BOXES[bench.backend] = bench.pool.sandbox(limits, userland=True)
    found = BOXES.pop(bench.backend)
    yield found
    assert says(found, "rm -rf /work/* /work/.[!.]* /tmp/*; echo alive") == "alive\n"
    BOXES[bench.backend] = found


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    while BOXES:
        BOXES.popitem()[1].close()


def says(box: Sandbox, line: str, user: str = "") -> str:
    ran = box.exec(["/bin/sh", "-c", line], user=user)
    assert ran.status is OK, ran
    return ran.stdout.decode(errors="replace")


with_users = pytest.mark.parametrize("bench", [BackendName.GVISOR], indirect=True, ids=str)
"""A guest of nsjail has one user; a test below says what it is told."""


# paths

REFUSED_PATHS = {
    "/work/../etc/passwd": BadRequestError, "../etc/passwd": BadRequestError, "": BadRequestError, ".": BadRequestError,
    "a\0b": BadRequestError, "half\ud800": BadRequestError, "a" * 256: BadRequestError, "a/" * 64: BadRequestError,
    "a//b": BadRequestError, "/": BadRequestError, "/proc/self/mem": FileDeniedError, "/proc/1/fd/0": FileDeniedError,
    "/sys/kernel/x": FileDeniedError, "/dev/zero": FileDeniedError, "/dev/fd/0": FileDeniedError,
    "link": BadRequestError,
    "folder/link/file": BadRequestError, "pipe": BadRequestError, "pipe/x": FileMissingError, "second": BadRequestError,
    "socket": BadRequestError, "loop": BadRequestError, "folder": FileIsFolderError, "shut/file": FileDeniedError,
    "unreadable": FileDeniedError, "missing": FileMissingError, "plain/x": FileMissingError, "/etc": FileIsFolderError,
}  # fmt: skip
TRAPS = """
ln -s /etc/passwd link; mkdir folder shut; ln -s /etc folder/link; mkfifo pipe; echo x > first; ln first second
ln -s loop loop; echo x > unreadable; chmod 0 unreadable; echo x > shut/file; chmod 0 shut; echo x > plain
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")' 2> /dev/null || mkfifo socket
"""


def test_no_path_leads_to_more_than_a_plain_file(box: Sandbox) -> None:
    says(box, TRAPS)
    for path, error in REFUSED_PATHS.items():
        with pytest.raises(error):
            box.read(path)
        if path != "missing":
            with pytest.raises(BadRequestError):
                box.write(path, b"x")
    says(box, "chmod 700 shut")
    assert box.read("/etc/passwd").startswith(b"root:")
    for path in ("/etc/passwd", "/usr/bin/sh", "/opt/runtime/guest/worker.py", "/new", "/etc/new/er", "/home/x"):
        with pytest.raises(FileDeniedError):
            box.write(path, b"x")


@table("name", ["a\nb", "\x1b[2J", "-rf", "...", " ", "\udcff", "*", "$(id)", "~", "a" * 255])
def test_an_odd_name_is_a_name_and_nothing_else(box: Sandbox, name: str) -> None:
    box.write(f"odd/{name}", b"it")
    assert box.read(f"/work/odd/{name}") == b"it"
    assert box.exec(["cat", f"odd/{name}"]).stdout == b"it"
    assert len(box.list("odd")) == 1
    says(box, "rm -r odd")


def test_a_mode_is_kept_and_holds_for_the_host_too(box: Sandbox) -> None:
    box.write("tool", b"#!/bin/sh\necho one\n")
    says(box, "chmod 755 tool")
    box.write("tool", b"#!/bin/sh\necho two\n")
    assert box.exec(["./tool"]).stdout == b"two\n"
    says(box, "chmod 4555 tool")
    with pytest.raises(FileDeniedError):
        box.write("tool", b"")
    assert box.exec(["./tool"]).stdout == b"two\n"


def test_a_file_of_any_size_costs_what_was_asked_for(box: Sandbox) -> None:
    says(box, "truncate -s 30M /tmp/sparse")
    for most in (1, 1 << 20, (30 << 20) - 1):
        with pytest.raises(FileTooLargeError):
            box.read("/tmp/sparse", max_bytes=most)
    assert box.read("/tmp/sparse", max_bytes=30 << 20) == bytes(30 << 20)
    with pytest.raises(LimitError):
        box.write("large", bytes(13 << 20))
    with pytest.raises(BadRequestError, match="space"):
        box.write("large", bytes(5 << 20))
    assert not [entry for entry in box.list() if entry.size]


def test_what_is_exchanged_while_it_is_read_is_a_plain_file_or_refused(box: Sandbox) -> None:
    box.write("true", b"true")
    swap = "ln -sf /etc/passwd x; mv -f true x; cp x true; rm -f x; ln -sf pipe x; rm -f x; mkdir x; rmdir x"
    says(box, f"mkfifo pipe; touch go; (setsid sh -c 'while [ -e go ]; do {swap}; done' > /dev/null 2>&1 &)")
    for _ in range(40):
        try:
            assert box.read("x") in (b"true", b"")
        except BadRequestError:
            continue
    says(box, "rm go; sleep 0.1")


# programs


NOT_STARTED: list[dict[str, Any]] = [
    {"argv": []}, {"argv": [""]}, {"argv": ["sh\0"]}, {"argv": ["sh", "\ud800"]}, {"argv": ["nothing"]},
    {"argv": ["/work/nothing"]}, {"argv": ["/etc/passwd"]}, {"argv": ["/etc"]}, {"argv": ["pipe"]},
    {"argv": ["./pipe"]}, {"argv": ["./text"]}, {"argv": ["./loop"]}, {"argv": ["sh"], "env": {"": "x"}},
    {"argv": ["sh"], "env": {"A=B": ""}}, {"argv": ["sh"], "env": {"A": "\0"}}, {"argv": ["sh"], "env": {"\0": ""}},
    {"argv": ["sh"], "env": {"PATH": ""}}, {"argv": ["sh"], "env": {"PATH": "/work:" * 9_000}},
    {"argv": ["sh"], "env": {"A": "x" * 200_000}}, {"argv": ["sh", "x" * 200_000]}, {"argv": ["sh"], "cwd": "/no"},
    {"argv": ["sh"], "cwd": "pipe"}, {"argv": ["sh"], "cwd": "text"}, {"argv": ["sh"], "cwd": "loop"},
    {"argv": ["sh"], "cwd": "a\0b"}, {"argv": ["sh"], "cwd": "x" * 5_000}, {"argv": ["sh"], "cwd": "shut"},
    {"argv": ["sh"], "user": "a\0b"}, {"argv": ["sh"], "output_bytes": 0}, {"argv": ["sh"], "output_bytes": -1},
    {"argv": ["sh"], "seconds": 0}, {"argv": ["sh"], "seconds": float("nan")},
]  # fmt: skip


def test_what_cannot_be_started_is_the_callers_mistake(box: Sandbox) -> None:
    says(box, "mkfifo pipe; chmod 755 pipe; echo x > text; ln -s loop loop; mkdir shut; chmod 0 shut")
    for asked in NOT_STARTED:
        with pytest.raises(BadRequestError):
            pytest.fail(f"{str(asked)[:200]} started: {box.exec(**asked)}")
    says(box, "chmod 700 shut")


ENDLESS = {
    "sleeps": "sleep 600",
    "computes": "while :; do :; done",
    "hears no signal": "trap '' TERM INT HUP; while :; do sleep 1; done",
    "closes its outputs": "exec >&- 2>&- <&-; sleep 600",
    "has children": "sleep 600 & sleep 600 & wait",
    "stops itself": "kill -STOP $$",
    "waits at a pipe": "mkfifo p; cat p",
    "reads what nobody writes": "cat /dev/zero > /dev/null",
}


@table("line", ENDLESS.values(), ids=ENDLESS)
def test_a_program_without_an_end_is_ended_with_its_group(box: Sandbox, line: str) -> None:
    for seconds in (0.3, 1.0, 4.0, 16.0):  # on a full machine it may not have begun by then
        ran = box.exec(["sh", "-c", f"echo begun; {line}"], seconds=seconds)
        if ran.stdout:
            break
    assert (ran.status, ran.exit_code, ran.stdout) == (TIMEOUT, None, b"begun\n")


def test_an_interpreter_that_is_a_pipe_costs_the_sandbox_and_no_more(bench: AttackBench) -> None:
    """gVisor opens it and waits; the host ends that, and says so. Linux refuses to."""
    with bench.sandbox(userland=True) as own:
        says(own, "mkfifo pipe; chmod 755 pipe; echo '#!/work/pipe' > text; chmod 755 text")
        if bench.backend is BackendName.GVISOR:
            assert own.exec(["./text"], seconds=0.3).status is TIMEOUT
            with pytest.raises(InfrastructureError):
                own.exec(["true"])
        else:
            with pytest.raises(BadRequestError):
                own.exec(["./text"])


def test_a_bomb_of_processes_ends_at_its_number_and_the_next_call_is_served(bench: AttackBench) -> None:
    with bench.sandbox(userland=True) as own:
        for line in (
            "f() { f | f & }; f; f",
            "while :; do setsid sleep 600 & done",
            "while :; do (sh -c 'sleep 600' &) ; done",
        ):
            assert own.exec(["sh", "-c", line], seconds=1.0).status in (OK, TIMEOUT, OUTPUT)
            own.run("import os; os.kill(-1, 9)")  # no new process is to be had
        assert says(own, "echo alive") == "alive\n"


def test_what_left_its_group_is_gone_with_the_sandbox(bench: AttackBench) -> None:
    with bench.sandbox(userland=True) as own:
        assert says(own, "(setsid sleep 1000 > /dev/null 2>&1 &) ; (setsid sh -c 'yes > /dev/null' &) ; echo") == "\n"


FLOODS = {
    "out": "yes",
    "errors": "yes >&2",
    "both": "yes & yes >&2",
    "no lines": "cat /dev/zero",
    "children": "yes & yes & wait",
}


@table("line", FLOODS.values(), ids=FLOODS)
def test_a_flood_ends_at_the_bytes_that_were_asked_for(box: Sandbox, line: str) -> None:
    for most in (1, 1_000, 1 << 30):
        ran = box.exec(["sh", "-c", line], output_bytes=most)
        assert ran.status is OUTPUT
        assert max(len(ran.stdout), len(ran.stderr)) == min(most, box.limits.output_bytes)


def test_output_up_to_the_limit_is_whole_on_both_sides(box: Sandbox) -> None:
    most = box.limits.output_bytes
    ran = box.exec(["sh", "-c", f"head -c {most} /dev/zero; head -c {most} /dev/zero >&2"])
    assert (ran.status, len(ran.stdout), len(ran.stderr)) == (OK, most, most)


@table("line", ["exit 3", "exec <&-; sleep 0.1; exit 3", "head -c 1 > /dev/null; exit 3", "sleep 0.1; exit 3"])
def test_input_that_nobody_reads_is_no_trouble(box: Sandbox, line: str) -> None:
    assert box.exec(["sh", "-c", line], stdin=bytes(8 << 20)).exit_code == 3


def test_much_input_comes_through_whole_and_more_than_there_is_room_for_is_refused(box: Sandbox) -> None:
    data = os.urandom(1 << 20) * 20
    assert int(box.exec(["wc", "-c"], stdin=data).stdout) == len(data)
    code = "import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    assert box.exec([PYTHON, "-c", code], stdin=data).stdout.decode().strip() == hashlib.sha256(data).hexdigest()
    with pytest.raises(LimitError):
        box.exec(["cat"], stdin=bytes(49 << 20))
    assert box.exec(["cat"], stdin=b"the next one's own").stdout == b"the next one's own"


SLY = {
    "LD_PRELOAD": "/work/sly.so", "LD_LIBRARY_PATH": "/work", "LD_AUDIT": "/work/sly.so", "PYTHONPATH": "/work",
    "PYTHONHOME": "/work", "PYTHONSTARTUP": "/work/os.py", "PYTHONINSPECT": "1", "BASH_ENV": "/work/env",
    "ENV": "/work/env", "IFS": "/", "PATH": "/work:/usr/bin", "HOME": "/nowhere", "GCONV_PATH": "/work",
    "LOCPATH": "/work", "TMPDIR": "/work",
}  # fmt: skip


def test_an_environment_is_one_programs_and_nobody_elses(box: Sandbox) -> None:
    for name in ("os.py", "posix.py", "struct.py", "sly.so", "env", "cat", "sitecustomize.py"):
        box.write(name, b"#!/bin/sh\necho SLY\n")
    says(box, "chmod 755 cat env")
    assert box.exec(["cat"], env=SLY).stdout.endswith(b"SLY\n")  # its own PATH, its own program
    seen = says(box, "env; cat /etc/group; python3 -c 'import os; print(os.environ)'; sh -c 'echo $HOME'")
    assert "SLY" not in seen
    assert not [name for name in SLY if name not in ("PATH", "HOME", "TMPDIR") and f"{name}=" in seen]
    assert box.run("import os, struct\nprint(os.environ.get('LD_PRELOAD'), os.environ['PATH'])").output == (
        "None /usr/bin:/bin\n"
    )
    ours = {"PATH", "HOME", "LANG", "TMPDIR", "PWD", "PYTHONHASHSEED"}
    assert set(says(box, "env -i env; env | cut -d= -f1").split()) <= ours


# users


def test_where_there_is_one_user_no_other_is_had(bench: AttackBench, box: Sandbox) -> None:
    plain = bench.neighbour if bench.backend is BackendName.GVISOR else box
    for user in ("root", "0", "nobody", "joe", "guest\n", "-1", "1000:0", "\u0661"):
        with pytest.raises(RefusedError):
            plain.exec([PYTHON, "-c", "1"], user=user)
    for user in ("", "guest", "1000"):
        assert (
            plain.exec([PYTHON, "-c", "import os; print(os.getresuid())"], user=user).stdout == b"(1000, 1000, 1000)\n"
        )


@with_users
def test_a_user_that_is_not_there_is_said_and_is_nobody(bench: AttackBench, box: Sandbox) -> None:
    for user in (
        "nobody",
        "joe",
        "-1",
        "4294967295",
        "1000:0",
        "root:x",
        " root",
        "root\n",
        "*",
        "\u0660",
        "x" * 9_000,
    ):
        with pytest.raises(UnknownUserError):
            box.exec(["id"], user=user)


RIGHTS = """import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
done = []
def tries(name, act):
    try:
        if act() not in (-1,): done.append(name)
    except (OSError, ValueError): pass
header, data = ctypes.create_string_buffer(struct.pack("II", 0x20080522, 0)), ctypes.create_string_buffer(24)
libc.capget(header, data)
effective, permitted, inheritable = struct.unpack_from("III", data)
tries("mount", lambda: libc.mount(b"proc", b"/tmp", b"proc", 0, None))
tries("unmount", lambda: libc.umount2(b"/etc", 2))
tries("chroot", lambda: libc.chroot(b"/tmp"))
tries("unshare", lambda: libc.unshare(0x10000000))
tries("trace", lambda: libc.ptrace(16, 1, 0, 0))
tries("memory", lambda: libc.syscall(310, 1, 0, 0, 0, 0, 0))
tries("device", lambda: (os.mknod("/tmp/device", 0o60600, 0x801), open("/tmp/device", "rb")) and 0)
tries("memory device", lambda: (os.mknod("/tmp/memory", 0o20600, 0x101), open("/tmp/memory", "rb")) and 0)
tries("write root", lambda: open("/usr/bin/new", "w"))
tries("exchange", lambda: os.rename("/usr/bin/sh", "/usr/bin/hs"))
tries("guest", lambda: open("/opt/runtime/guest/worker.py", "a"))
tries("hostname", lambda: libc.sethostname(b"x", 1))
tries("clock", lambda: libc.settimeofday(ctypes.create_string_buffer(16), None))
tries("limits", lambda: __import__("resource").setrlimit(7, (1 << 20, 1 << 20)))
tries("become root", lambda: os.setuid(0) if os.getuid() else -1)
tries("become root by the back", lambda: os.seteuid(0) if os.getuid() else -1)
tries("groups", lambda: os.setgroups([0]) if os.getuid() else -1)
tries("signal", lambda: os.kill(1, 0) if os.getuid() else -1)
print(os.getresuid(), os.getgroups(), hex(effective), hex(permitted), hex(inheritable), done)
"""


@with_users
def test_neither_the_guests_root_nor_anybody_has_more_rights_than_users_take(bench: AttackBench, box: Sandbox) -> None:
    for user, uid, held in (("root", 0, "0xeb"), ("", 1000, "0x0"), ("guest", 1000, "0x0")):
        ran = box.exec([PYTHON, "-c", RIGHTS], user=user)
        assert ran.stdout.decode() == f"({uid}, {uid}, {uid}) [] {held} {held} 0x0 []\n", ran
    assert box.run(RIGHTS).output == "(1000, 1000, 1000) [] 0x0 0x0 0x0 []\n"


@with_users
def test_what_root_leaves_behind_raises_nobody(bench: AttackBench, box: Sandbox) -> None:
    says(box, "cp /usr/bin/id /tmp; chmod 4755 /tmp/id; cp /usr/bin/id /etc; chmod 4755 /etc/id", "root")
    assert says(box, "/tmp/id -u; /etc/id -u") == "1000\n1000\n"
    says(box, "rm /tmp/id /etc/id", "root")


TABLES = {
    "empty": ": > /etc/passwd",
    "missing": "rm /etc/passwd",
    "a pipe": "rm /etc/passwd; mkfifo /etc/passwd",
    "a link": "rm /etc/passwd; ln -s /dev/zero /etc/passwd",
    "a folder": "rm /etc/passwd; mkdir /etc/passwd",
    "endless": "yes joe:x:joe:joe:::/ | head -c 900000 > /etc/passwd",
    "no text": "head -c 4096 /dev/urandom > /etc/passwd",
    "numbers beyond all": "echo joe:x:99999999999999999999:4294967296::/:/bin/sh > /etc/passwd",
    "a home that is none": "printf 'joe:x:1001:1001::/\\0:/bin/sh\\n' > /etc/passwd",
    "other digits": "printf 'joe:x:\\331\\241:1::/:/bin/sh\\n' > /etc/passwd",
    "below zero": "echo joe:x:-1:-1::/:/bin/sh > /etc/passwd",
    "no group at all": "echo joe:x:1001:4294967295::/:/bin/sh > /etc/passwd",
    "no user at all": "echo joe:x:4294967295:4294967295::/:/bin/sh > /etc/passwd",
    "the guest as root": "echo guest:x:0:0::/:/bin/sh > /etc/passwd; echo root:x:-1:0::/: >> /etc/passwd",
}


@with_users
def test_a_table_of_users_that_root_wrote_is_data(bench: AttackBench) -> None:
    repair = "while [ ! -e /tmp/mend ]; do sleep 0.1; done; rm -rf /etc/passwd; cp /opt/etc/passwd /etc; rm /tmp/mend"
    with bench.sandbox(userland=True) as own:
        for name, line in TABLES.items():
            says(own, f"({repair}) > /dev/null 2>&1 & {line}", "root")
            for user in ("root", "joe"):
                with pytest.raises(BadRequestError):
                    own.exec(["id"], user=user)
            assert own.exec([PYTHON, "-c", WHO]).stdout == b"(1000, 1000, 1000)\n", name
            says(own, "touch /tmp/mend; while [ -e /tmp/mend ]; do sleep 0.1; done")


@with_users
def test_root_can_end_its_own_sandbox_and_that_is_said(bench: AttackBench) -> None:
    with bench.sandbox(userland=True) as own:
        assert own.exec(["sh", "-c", "kill -STOP 1"], user="root", seconds=1.0).status in (OK, TIMEOUT, CallStatus.DIED)
    with bench.sandbox(userland=True) as own:
        ran = own.exec(["sh", "-c", "kill -KILL 1; sleep 5"], user="root", seconds=1.0)
        assert ran.status in (CallStatus.DIED, TIMEOUT)
        if ran.status is CallStatus.DIED:
            with pytest.raises(InfrastructureError):
                own.exec(["true"])


@with_users
def test_users_are_in_a_snapshot_and_in_its_branches(bench: AttackBench) -> None:
    with bench.sandbox(userland=True) as own:
        assert own.exec(["adduser", "joe"], user="root").exit_code == 0
        taken = own.snapshot()
        assert own.exec(["userdel", "-r", "joe"], user="root").exit_code == 0
        with pytest.raises(UnknownUserError):
            own.exec(["id"], user="joe")
        [branch] = own.fork(taken, 1)
        with branch:
            assert branch.exec(["id", "-un"], user="joe").stdout == b"joe\n"
            assert branch.run("import os\nprint(os.getresuid())").output == "(1000, 1000, 1000)\n"
            assert branch.exec(["sh", "-c", "echo > ~/x; ls -l ~ | grep -c joe"], user="joe").stdout == b"1\n"
