"""What every `Sandbox` does: Python with a memory, files, programs, and one honest status for each call."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from runtime.errors import BadRequestError, InfrastructureError
from runtime.sandbox import CallStatus, Limits, Sandbox, Tier
from runtime.sessions import Sessions, own_sandbox

PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def box(pool: Sessions) -> Iterator[Sandbox]:
    """For tests that leave a sandbox as they found it."""
    with pool.sandbox() as sandbox:
        yield sandbox


def test_names_persist_from_call_to_call(box: Sandbox) -> None:
    assert box.run("persisted = 41").status is CallStatus.OK
    started = time.monotonic()
    result = box.run("print(persisted + 1)")
    assert (result.status, result.output, result.error) == (CallStatus.OK, "42\n", "")
    assert result.tier is Tier.SANDBOX
    assert result.sandbox == box.id
    assert 0 < result.seconds <= time.monotonic() - started


def test_an_exception_comes_back_as_one_line_and_the_frames_of_the_code_itself(box: Sandbox) -> None:
    result = box.run("print('before')\ndef f(n):\n    return 1 / n\nf(0)")
    assert result.status is CallStatus.EXCEPTION
    assert result.output == "before\n"
    assert result.error == "ZeroDivisionError: division by zero"
    assert result.traceback == "line 4, in <module>: f(0)\nline 3, in f: return 1 / n"


def test_output_of_python_and_of_descriptors_and_of_programs_is_all_there(box: Sandbox) -> None:
    code = (
        "import os, subprocess, sys\nprint('one', flush=True)\nos.write(1, b'two\\n')\nos.write(2, b'three\\n')\n"
        "print('four', file=sys.stderr, flush=True)\nsubprocess.run([sys.executable, '-c', 'print(5)'])"
    )
    assert box.run(code).output == "one\ntwo\nthree\nfour\n5\n"


def test_bytes_that_are_no_text_are_replaced(box: Sandbox) -> None:
    assert box.run("import os; os.write(1, b'\\xff\\x00\\x1b[31m')").output == "\ufffd\x00\x1b[31m"


def test_an_exception_that_cannot_be_printed_still_has_a_type(box: Sandbox) -> None:
    result = box.run("class Sly(BaseException):\n    def __str__(self):\n        raise self\nraise Sly")
    assert (result.status, result.error) == (CallStatus.EXCEPTION, "Sly: (its message could not be made)")


def test_leaving_with_an_exit_code_is_an_exception(box: Sandbox) -> None:
    assert box.run("raise SystemExit(3)").error == "SystemExit: 3"


@pytest.mark.parametrize("path", ["/work/a.txt", "/tmp/b"])
def test_a_file_is_written_seen_by_code_and_read_back(box: Sandbox, path: str) -> None:
    box.write(path, b"first")
    box.write(path, b"\x00second")
    assert box.run(f"print(open({path!r}, 'rb').read())").output == "b'\\x00second'\n"
    assert box.read(path) == b"\x00second"


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/work", "/work/../etc/passwd", "/work//a", "/work/./a", "/work/\0", "/work/" + "a" * 300]
)
def test_only_plain_paths_below_work_and_tmp_exist(box: Sandbox, path: str) -> None:
    with pytest.raises(BadRequestError):
        box.read(path)
    with pytest.raises(BadRequestError):
        box.write(path, b"")


CLEAN = """import os, shutil
for name in os.listdir('/work'):
    path = '/work/' + name
    shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
"""


@pytest.mark.parametrize(
    "trap",
    [
        "os.symlink('/etc/passwd', '/work/trap')",
        "os.mkfifo('/work/trap')",
        "open('/work/other', 'w').close(); os.link('/work/other', '/work/trap')",
        "os.mkdir('/work/trap')",
        "import socket; socket.socket(socket.AF_UNIX).bind('/work/trap')",
        "open('/work/trap', 'wb').truncate(3_000_000)",
    ],
)
def test_a_trap_in_the_place_of_a_file_is_refused(box: Sandbox, trap: str) -> None:
    assert box.run(CLEAN + trap).status is CallStatus.OK
    with pytest.raises(BadRequestError):
        box.read("/work/trap", max_bytes=1 << 20)
    box.run(CLEAN)


def test_a_link_in_the_middle_of_a_path_is_not_followed(box: Sandbox) -> None:
    box.run("import os; os.path.lexists('/work/sly') or os.symlink('/etc', '/work/sly')")
    with pytest.raises(BadRequestError):
        box.read("/work/sly/passwd")


def test_a_program_runs_with_input_and_both_outputs(box: Sandbox) -> None:
    code = "import sys; print(sys.stdin.read().upper()); print('aside', file=sys.stderr); sys.exit(7)"
    result = box.exec([PYTHON, "-c", code], stdin=b"hello")
    assert (result.status, result.exit_code) == (CallStatus.OK, 7)
    assert (result.stdout, result.stderr) == (b"HELLO\n", b"aside\n")


def test_a_program_that_never_ends_or_never_stops_talking_is_killed_and_the_sandbox_lives_on(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_sandbox, "GRACE_SECONDS", 120.0)
    slow = box.exec([PYTHON, "-c", "import time; time.sleep(600)"], seconds=0.3)
    assert (slow.status, slow.exit_code) == (CallStatus.TIMEOUT, None)
    assert slow.seconds < 120
    loud = box.exec([PYTHON, "-c", "while True: print('x' * 1000)"])
    assert loud.status is CallStatus.OUTPUT
    assert len(loud.stdout) == box.limits.output_bytes
    assert box.run("print(1)").output == "1\n"


def test_a_program_that_is_not_there_is_the_callers_mistake(box: Sandbox) -> None:
    for argv in (["/usr/bin/nothing"], ["nothing"], ["../usr/bin/nothing"], [], [""], ["/usr/bin/python3", "a\0b"]):
        with pytest.raises(BadRequestError):
            box.exec(argv)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_limit_that_is_none_is_the_callers_mistake(box: Sandbox, seconds: float) -> None:
    with pytest.raises(BadRequestError):
        box.run("1", seconds=seconds)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("while True: pass", CallStatus.TIMEOUT),
        (
            "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))\ntime.sleep(600)",
            CallStatus.TIMEOUT,
        ),
        ("3 ** 10 ** 8", CallStatus.TIMEOUT),
        ("x = []\nwhile True: x.append(bytearray(1 << 20))", CallStatus.MEMORY),
        ("while True: print('y' * 100)", CallStatus.OUTPUT),
        ("import os; os._exit(0)", CallStatus.DIED),
        ("import os; os.kill(os.getpid(), 11)", CallStatus.DIED),
        ("import os; os.kill(1, 9)", CallStatus.DIED),
        ("import ctypes; ctypes.string_at(0)", CallStatus.DIED),
    ],
)
def test_a_call_that_has_to_be_stopped_says_how_and_the_sandbox_is_gone(
    pool: Sessions, code: str, status: CallStatus
) -> None:
    with pool.sandbox(pool.limits.model_copy(update={"call_seconds": 120.0})) as sandbox:
        result = sandbox.run(code, seconds=1.5 if status is CallStatus.TIMEOUT else None)
        assert result.status is status
        assert result.error
        assert len(result.output) <= sandbox.limits.output_bytes
        assert result.seconds < 120
        with pytest.raises(InfrastructureError):
            sandbox.run("print(1)")


def test_a_closed_sandbox_takes_no_calls_and_closing_twice_is_fine(pool: Sessions) -> None:
    sandbox = pool.sandbox(Limits(memory_mib=64))
    sandbox.close()
    sandbox.close()
    with pytest.raises(BadRequestError):
        sandbox.run("1")
    with pytest.raises(BadRequestError):
        sandbox.read("/work/a")
