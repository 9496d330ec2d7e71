"""A session moves between tiers as its code asks, sees nothing of the move, and nothing of any other session."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from concurrent.futures import wait
from pathlib import Path

import pytest
from sandbox_groups import groups

from runtime.errors import BadRequestError
from runtime.sandbox import CallStatus, Limits, Session, Tier
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

SPIN = "n = 0\nwhile True: n += 1"


def says(session: Session, code: str) -> str:
    result = session.run(code)
    assert result.status is CallStatus.OK, result
    return result.output


def test_calculations_share_an_interpreter_and_keep_their_names(pool: Sessions) -> None:
    with pool.open() as first, pool.open() as second:
        says(first, "x = 1\nf = [x + n for n in range(3)]")
        says(second, "x = 10")
        results = [first.run("print(f[1])"), second.run("print(x)")]
        assert [result.output for result in results] == ["2\n", "10\n"]
        assert {result.tier for result in results} == {Tier.SHARED}
        assert len({result.sandbox for result in results}) == 1


@pytest.mark.parametrize("tier", Tier)
def test_exceptions_read_alike_in_every_tier(pool: Sessions, tier: Tier) -> None:
    with pool.open(tier=tier) as session:
        assert session.run("print((3-4//2)").error == "SyntaxError: '(' was never closed (<call>, line 1)"
        failed = session.run("print(1)\nprint(gcd(1, 2))")
        assert (failed.status, failed.output) == (CallStatus.EXCEPTION, "1\n")
        assert failed.error == "NameError: name 'gcd' is not defined"
        assert failed.traceback == "line 2, in <module>: print(gcd(1, 2))"
        assert failed.tier is tier


@pytest.mark.parametrize("tier", Tier)
def test_output_is_capped_in_every_tier(pool: Sessions, tier: Tier) -> None:
    with pool.open(tier=tier) as session:
        says(session, "kept = 1")
        result = session.run("while True: print('x' * 99)")
        assert result.status is CallStatus.OUTPUT
        assert len(result.output) == pool.limits.output_bytes
        after = session.run("print(kept)")
        assert after.output == "1\n" if tier is not Tier.SANDBOX else after.error.startswith("NameError")


def test_a_history_follows_its_session_through_all_tiers(pool: Sessions) -> None:
    with pool.open() as session:
        says(session, "import math\nx = math.gcd(12, 18)")
        session.run("y = 1\n1/0\ny = 2")
        assert session.tier is Tier.SHARED
        assert says(session, "import random\nx += random.randint(1, 6)\nprint(x)") in {f"{n}\n" for n in range(7, 13)}
        assert session.tier is Tier.PROCESS
        seen = says(session, "print(x, y)")
        says(session, "open('/work/file', 'w').write('here')")
        assert session.tier is Tier.SANDBOX
        assert says(session, "print(x, y)") == seen
        assert says(session, "print(open('/work/file').read())") == "here\n"


def test_a_system_call_that_the_guess_missed_moves_the_session_too(pool: Sessions) -> None:
    with pool.open() as session:
        says(session, "import random\nx = 7")
        result = session.run("print(x)\nprint(random.__builtins__['op' + 'en']('/etc/passwd').read()[:5])")
        assert (result.status, result.output) == (CallStatus.OK, "7\nguest\n")
        assert result.tier is Tier.SANDBOX


def test_addresses_in_outputs_do_not_hinder_a_move(pool: Sessions) -> None:
    with pool.open() as session:
        assert "0x" in says(session, "f = lambda: 0\nprint(f)")
        says(session, "import random\nprint(random)")
        assert says(session, "import os\nprint(f())") == "0\n"


def test_a_long_calculation_gets_a_process_and_its_whole_time(pool: Sessions) -> None:
    with pool.open() as session:
        says(session, "x = 5")
        result = session.run("n = 0\nwhile n < 100000000: n += 1\nprint(n, x)", seconds=4.0)
        assert result.tier is Tier.PROCESS
        assert (result.status, result.output) in [(CallStatus.OK, "100000000 5\n"), (CallStatus.TIMEOUT, "")]


@pytest.mark.parametrize("code", [SPIN, "x = 3 ** 10 ** 8", "print(sum(i for i in iter(int, 1)))"])
def test_a_calculation_without_end_times_out_and_undoes_itself(pool: Sessions, code: str) -> None:
    with pool.open() as session, pool.open() as neighbour:
        says(session, "x = 3")
        says(neighbour, "x = 4")
        started = time.monotonic()
        result = session.run(code, seconds=0.6)
        assert result.status is CallStatus.TIMEOUT
        assert 0.5 < result.seconds <= time.monotonic() - started < 240
        assert says(neighbour, "print(x)") == "4\n"
        assert neighbour.tier is Tier.SHARED
        assert says(session, "print(x)") == "3\n"


def test_memory_without_end_does_not_reach_the_neighbours(pool: Sessions) -> None:
    with pool.open() as session, pool.open() as neighbour:
        says(neighbour, "x = 4")
        result = session.run("x = [0]\nwhile True: x = x + x")
        assert (result.status, result.error) == (CallStatus.EXCEPTION, "MemoryError") or result.status in (
            CallStatus.MEMORY,
            CallStatus.TIMEOUT,
        )
        assert says(neighbour, "print(x)") == "4\n"
        assert neighbour.tier is Tier.SHARED


def test_a_crash_of_the_shared_interpreter_costs_the_others_nothing(pool: Sessions) -> None:
    with pool.open() as session, pool.open() as neighbour:
        box = neighbour.run("x = 4").sandbox
        assert session.run("x = 3").sandbox == box
        for group in groups(f"assay-*.{box}"):
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        results = [session.run("print(x)"), neighbour.run("print(x)")]
        assert [result.output for result in results] == ["3\n", "4\n"]
        assert box not in {result.sandbox for result in results}


POISON = [
    "import builtins\nbuiltins.print = None\nbuiltins.len = None",
    "import math\nmath.gcd = lambda *a: 0",
    "import sys\nsys.modules.clear()",
    "__builtins__['print'] = None",
    "(lambda: 0).__globals__['__builtins__']['sum'] = None",
    "import math\nmath.__dict__['pi'] = 3",
    "[c for c in ().__class__.__base__.__subclasses__() if 'wrap' in c.__name__]",
    "import gc\nfor o in gc.get_objects():\n    if isinstance(o, dict): o.pop('secret', None)",
    "import ctypes\nctypes.memset(id(5) + 24, 9, 1)",
    "print(*[1], **{'file': __import__('sys').stdout})",
]


@pytest.mark.parametrize("code", POISON)
def test_poison_stays_in_the_session_that_took_it(pool: Sessions, code: str) -> None:
    with pool.open() as neighbour, pool.open() as session:
        says(neighbour, "import math\nsecret = 5")
        session.run(code)
        assert session.tier is not Tier.SHARED
        expected = "5 6 3 6 3.141592653589793\n"
        assert says(neighbour, "print(secret, math.gcd(12, 18), len('abc'), sum([1, 5]), math.pi)") == expected


LEAKS = [
    "import gc\nprint([o['secret'] for o in gc.get_objects() if isinstance(o, dict) and 'secret' in o])",
    "import sys\nprint([f for f in sys._current_frames().values()])",
    "import glob\nprint([open(name).read() for name in glob.glob('/tmp/**') + glob.glob('/work/**')])",
    "import random\nprint(random.__builtins__['globals']())",
]


@pytest.mark.parametrize("tier", Tier)
def test_nothing_of_another_session_can_be_read(pool: Sessions, tier: Tier) -> None:
    with pool.open(tier=tier) as neighbour:
        says(neighbour, "secret = 'pomegra' + 'nate'")
        if tier is Tier.SANDBOX:
            says(neighbour, "open('/work/secret', 'w').write(secret)\nopen('/tmp/secret', 'w').write(secret)")
        for code in LEAKS:
            with pool.open() as session:
                result = session.run(code)
            assert "pomegra" not in result.output + result.error + result.traceback, code


PRYING = """import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class Part(ctypes.Structure): _fields_ = [('at', ctypes.c_void_p), ('size', ctypes.c_size_t)]
mine = ctypes.create_string_buffer(8)
here, there = Part(ctypes.addressof(mine), 8), Part(0x400000, 8)
print(libc.ptrace(16, os.getppid(), 0, 0))
print(libc.process_vm_readv(os.getppid(), ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
print(os.listdir('/proc'))
"""


def test_a_sandboxed_session_cannot_reach_its_supervisors_memory_or_pipes(pool: Sessions) -> None:
    with pool.open(tier=Tier.SANDBOX) as session:
        assert says(session, PRYING) == "-1\n-1\n[]\n"


@pytest.mark.parametrize(
    "call",
    [
        "posix.kill(-1, 9)",
        "posix.kill(1, 9)",
        "posix.open('/etc/passwd', 0)",
        "posix.fork()",
        "posix.execv('/usr/bin/python3', ['python3'])",
        "posix.pipe()",
        "posix.mkdir('/tmp/x')",
        "posix.getppid()",
    ],
)
def test_the_process_tier_denies_it_and_the_session_tries_again_alone(pool: Sessions, call: str) -> None:
    """What kills or starts processes does so, if at all, in a sandbox where nobody else is."""
    with pool.open(tier=Tier.PROCESS) as neighbour, pool.open(tier=Tier.PROCESS) as session:
        says(neighbour, "x = 1")
        home = neighbour.run("print(x)").sandbox
        result = session.run(f"import enum\nposix = enum.sys.modules['posix']\nprint({call})")
        assert result.tier is Tier.SANDBOX
        assert result.sandbox != home
        after = neighbour.run("print(x)")
        assert (after.output, after.tier, after.sandbox) == ("1\n", Tier.PROCESS, home)


TO_EVERYONE = """
def say(frame):
    for fd in range(3, 64):
        try: os.write(fd, frame)
        except OSError: pass
"""
FORGED = """import struct, enum
os = enum.sys.modules['posix']
report = b'{"error": "", "traceback": ""}'
for fd in list(range(3, 210)):
    for frame in (struct.pack('>I16sB', len(report), b'n' * 16, 0) + report,
                  struct.pack('>I16sBI', 4, b'n' * 16, 0, 4) + b'fake'):
        try: os.write(fd, frame)
        except OSError: pass
print('honest')
"""


@pytest.mark.parametrize("tier", [Tier.PROCESS, Tier.SANDBOX])
def test_a_forged_reply_ends_the_process_and_is_never_taken_for_an_answer(pool: Sessions, tier: Tier) -> None:
    with pool.open(tier=tier) as session:
        says(session, "x = 1")
        result = session.run(FORGED)
        assert result.status is CallStatus.DIED
        assert "fake" not in result.output
        assert session.run("print(2)").output == "2\n"


def test_a_reply_prepared_for_a_later_call_is_not_believed(pool: Sessions) -> None:
    code = (
        "import os, struct, threading, time\n"
        "def later():\n    time.sleep(0.3)\n    say(struct.pack('>I16sB', 0, bytes(16), 0))\n"
        "threading.Thread(target=later, daemon=True).start()"
    )
    with pool.open() as session:
        says(session, TO_EVERYONE + code)
        assert session.run("import time\ntime.sleep(5)\nprint('done')").status is CallStatus.DIED


def test_a_reply_written_between_calls_ends_the_session_at_the_next(pool: Sessions) -> None:
    code = (
        "import os, threading, time\n"
        "def later():\n    time.sleep(0.1)\n    say(bytes(21))\n"
        "threading.Thread(target=later, daemon=True).start()"
    )
    with pool.open() as session:
        says(session, TO_EVERYONE + code)
        deadline = time.monotonic() + 120
        while (result := session.run("print('done')")).status is CallStatus.OK:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert result.status is CallStatus.DIED
        assert "starts again" in result.error


def test_calls_of_one_session_run_in_order_and_start_does_not_wait(pool: Sessions) -> None:
    with pool.open() as session:
        first = session.start("import time\ntime.sleep(3)")
        futures = [session.start(f"x = {n}\nprint(x)") for n in range(50)]
        assert not first.done()
        assert [future.result().output for future in futures] == [f"{n}\n" for n in range(50)]


def test_many_sessions_at_once_each_get_their_own_answers(pool: Sessions) -> None:
    sessions = [pool.open() for _ in range(64)]
    [session.start(f"mine = {n}") for n, session in enumerate(sessions)]
    futures = [session.start("print(mine * mine)") for session in sessions]
    assert [future.result().output for future in futures] == [f"{n * n}\n" for n in range(64)]
    for session in sessions:
        session.close()


def test_sessions_beyond_the_number_of_sandboxes_wait_for_their_turn(root_dir: Path, tmp_path: Path) -> None:
    settings = RuntimeSettings(
        own=BrokerSettings(state_dir=tmp_path, root_dir=root_dir, ready=0),
        limits=Limits(call_seconds=60.0),
        sandboxes=1,
    )
    with Sessions(settings) as pool:
        first, second = pool.open(tier=Tier.SANDBOX), pool.open(tier=Tier.SANDBOX)
        says(first, "x = 1")
        waiting = second.start("print(2)")
        assert not wait([waiting], timeout=0.3).done
        first.close()
        assert waiting.result(timeout=120).output == "2\n"


def test_closing_a_session_answers_what_it_still_waited_for(pool: Sessions) -> None:
    session = pool.open()
    future = session.start(SPIN)
    session.close()
    with pytest.raises(BadRequestError):
        future.result(timeout=120)
    with pytest.raises(BadRequestError):
        session.run("1")


def test_threads_of_the_caller_may_share_a_pool(pool: Sessions) -> None:
    answers: list[str] = []

    def work(n: int) -> None:
        with pool.open() as session:
            answers.append(says(session, f"print({n})"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == sorted(f"{n}\n" for n in range(8))


def test_the_counters_add_up(pool: Sessions) -> None:
    with pool.open() as session:
        before = pool.stats()
        says(session, "x = 1")
        session.run("1/0")
        after = pool.stats()
    assert after["calls"] - before.get("calls", 0) == 2
    assert after["calls_shared"] - before.get("calls_shared", 0) == 2
    assert after["status_exception"] - before.get("status_exception", 0) == 1
    assert after["seconds"] > before["seconds"]
