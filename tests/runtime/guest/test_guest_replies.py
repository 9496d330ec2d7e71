"""What reads and answers in a session's process, looked for by the code that runs there; and what is left running."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from guest_kit import Worker, children, worker

from runtime.guest import wire
from runtime.guest.wire import Op, ReplyKind
from runtime.profile import Mode

OURS = (
    "('map', 'filter', 'repeat', 'FileIO', 'BufferedReader', 'Supervisor', 'Process', 'Zygote', 'FrameReader', 'Pipes')"
)
SPY = """import gc, sys
met = []
def meet(*_):
    frame = sys._getframe()
    while frame:
        met.append(frame.f_code.co_name)
        frame = frame.f_back
"""
DOORS = {
    "a trace function": "sys.settrace(meet)",
    "a profile function": "sys.setprofile(meet)",
    "the garbage collector": "gc.set_threshold(1)\ngc.callbacks.append(meet)",
    "what the collector finds": (
        "gc.set_threshold(1)\nclass Last:\n    __del__ = meet\nfor _ in range(50):\n    x = Last(); x.own = x"
    ),
    "an audit hook": (
        "busy = []\ndef hook(*_):\n    if not busy:\n        busy.append(1); meet(); busy.pop()\nsys.addaudithook(hook)"
    ),
    "a hook for exceptions": "sys.excepthook = sys.unraisablehook = meet",
    "an interrupt after the last line": (
        "late = __import__('_functools').partial(sys.modules['_thread'].interrupt_main, 10)\n"
        "class Late(bytes):\n    __del__ = late\n"
        "sys.modules['_signal'].signal(10, meet)\n"
        "sys._getframe(1).f_globals['report'] = lambda *_: Late(b'{}')\nraise ValueError"
    ),
    "output of one's own": "class Out:\n    write = flush = meet\nsys.stdout = Out()",
}


@pytest.fixture(params=["process", "sandbox"])
def mode(request: pytest.FixtureRequest) -> Mode:
    found: Mode = request.param
    return found


def test_no_frame_or_object_of_what_answers_is_reached(mode: Mode) -> None:
    with worker(mode) as guest:
        guest.says("first = 1")
        guest.says("import gc, sys\ngc.unfreeze()\ndef up(frame): return [frame, *up(frame.f_back)] if frame else []")
        assert guest.says("print([frame.f_code.co_name for frame in up(sys._getframe())][-2:])") == (
            "['attempt', '<module>']\n"
        )
        assert guest.says("print(sorted(up(sys._getframe())[-2].f_locals)[1:])") == (
            "['kind', 'names', 'order', 'output', 'repeatable', 'text']\n"
        )
        found = f"[o for o in gc.get_objects() if type(o).__name__ in {OURS}]"
        pythons = "str(getattr(o, 'name', '')).startswith('<') or getattr(o, 'name', 0) == 1"
        assert guest.says(f"print([o for o in {found} if not ({pythons})])") == "[]\n"
        keys = "[o for o in gc.get_objects() if type(o) is dict and type(o.get('key')) is bytes]"
        assert guest.says(f"print({keys})") == "[]\n"


@pytest.mark.parametrize("door", DOORS)
def test_what_code_leaves_in_the_interpreter_never_sees_what_answers(mode: Mode, door: str) -> None:
    with worker(mode) as guest:
        guest.run(f"{SPY}{DOORS[door]}\nx = 1")
        for _ in range(3):
            guest.run("y = [[] for _ in range(100)]")
        reply = guest.run("print('_turn' in met, file=sys.__stdout__)\nprint('_turn' in met)")
        assert reply.kind == ReplyKind.OK
        assert set(reply.output.split()) == {b"False"}


CLOSING = """os = sys.modules['posix']
sys.excepthook = sys.unraisablehook = meet
def is_pipe(number):
    try: os.lseek(number, 0, 1)
    except OSError as error: return error.errno == 29
pipes = [number for number in range(3, 64) if is_pipe(number)]
"""


@pytest.mark.parametrize("closed", ["pipes[:1]", "pipes[1:]", "pipes"])
def test_a_descriptor_that_is_closed_ends_the_process_and_shows_nothing(mode: Mode, closed: str) -> None:
    with worker(mode) as guest:
        assert guest.says(f"{SPY}{CLOSING}print(len(pipes))") == "2\n"
        guest.run(f"for number in {closed}: os.close(number)")
        assert guest.run("1").kind == ReplyKind.DIED


def test_a_process_that_an_earlier_call_forked_does_not_answer_for_a_later_one() -> None:
    """It comes to the end of that call by itself, with all that its parent had."""
    forks = "import os, time\nif os.fork() == 0: time.sleep(0.5)"
    with worker("sandbox") as guest:
        assert guest.run(forks).kind == ReplyKind.OK
        assert guest.run("time.sleep(100)\nprint('here')").kind == ReplyKind.DIED


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def answered(guest: Worker, code: str, output: bytes) -> None:
    reply = guest.run(code)
    assert (reply.kind, reply.output) == (ReplyKind.OK, output)


def test_a_process_that_answered_is_stopped_until_its_next_call() -> None:
    with worker("process", ahead=0) as guest:
        [zygote, process] = children(guest.process.pid)
        for number in range(3):
            answered(guest, f"x = {number}\nprint(x)", b"%d\n" % number)
            deadline = time.monotonic() + 120
            while state(process) != "T":
                assert time.monotonic() < deadline
                time.sleep(0.01)
        assert state(zygote) != "T"


def test_a_process_that_is_stopped_is_ended_like_any_other() -> None:
    with worker("process", ahead=0) as guest:
        answered(guest, "print(1)", b"1\n")
        guest.send(Op.DROP, 0)
        deadline = time.monotonic() + 120
        while len(children(guest.process.pid)) != 1:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_no_handler_waits_for_the_signal_that_wakes_a_process() -> None:
    with worker("process") as guest:
        handler = "import enum\nsignal = enum.sys.modules.get('_signal') or __import__('_signal')\n"
        answered(guest, handler + "signal.signal(10, print)", b"")
        assert guest.run("signal.signal(18, print)").kind == ReplyKind.DENIED


def test_a_request_of_any_size_arrives_whole(mode: Mode) -> None:
    with worker(mode) as guest:
        for size in (0, 1, 4_000, 70_000, 400_000):
            answered(guest, f"x = '{'y' * size}'\nprint(len(x))", b"%d\n" % size)


WRITERS = {
    "over the same bytes": "io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')",
    "in its place": "io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8')",
    "of codecs": "codecs.getwriter('utf-8')(sys.stdout.detach())",
}


@pytest.mark.parametrize("mode", ["process", "sandbox"])
@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_printed_by_a_writer_of_the_code_s_own_is_told(mode: Mode, writer: str) -> None:
    with worker(mode) as guest:
        assert guest.says(f"import codecs, io, sys\nsys.stdout = {WRITERS[writer]}\nprint('first')") == "first\n"
        assert guest.says("print('second')") == "second\n"


@pytest.mark.parametrize("mode", ["process", "sandbox"])
@pytest.mark.parametrize("end", ["sys.stdout.close()", "sys.stdout = None", "del sys.stdout", "sys.stdout = object()"])
def test_code_that_has_done_with_its_output_has_not_failed(mode: Mode, end: str) -> None:
    with worker(mode) as guest:
        assert guest.says(f"import sys\nprint('last')\n{end}") == "last\n"
        assert guest.says("x = 1") == ""


def test_a_warning_to_a_process_that_is_no_more_ends_nothing() -> None:
    code = "import os, time\nif os.fork(): os._exit(0)\nwhile True:\n    print('on')\n    time.sleep(0.05)"
    with worker("sandbox") as guest:
        nonce = guest.send(Op.RUN, 0, code.encode())
        first, *_ = children(guest.process.pid)
        deadline = time.monotonic() + 120
        while first in children(guest.process.pid):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        guest.write(wire.pack_request(wire.NO_NONCE, Op.WARN, 0) + wire.pack_request(wire.NO_NONCE, Op.KILL, 0))
        reply = guest.next()
        assert (reply.nonce, reply.kind) == (nonce, ReplyKind.KILLED)
        assert reply.output.startswith(b"on\n")
