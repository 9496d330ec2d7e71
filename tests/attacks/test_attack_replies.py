"""Rows 1, 2, 4, 5 and 12 of the catalogue: leaving early, and answers that nobody was asked for.

A session's process says how its calls ended, and code can change what is said there of its own exception. It finds
neither the nonce of a call, which is not in its process, nor what the process answers with; so it cannot say "done" and
go on, answer a call that comes later, say anything else, put words into the output that it did not print, choose the
time or the sandbox, or answer for another session. No verdict is ever the status of a call in which what is judged has
run.
"""

from __future__ import annotations

import pytest
from attack_kit import DIED, DISK, EXCEPTION, MEMORY, OK, OUTPUT, PATIENCE, TIMEOUT, Attack, AttackBench, attack, each

from runtime.sandbox import Tier

STOLEN = """import gc, os, struct, sys
def frames():
    frame = sys._getframe()
    while frame:
        yield frame
        frame = frame.f_back
    yield from sys._current_frames().values()
def looked():
    gc.unfreeze()
    waiting, seen = [*frames(), *gc.get_objects()], set()
    for frame in frames():
        waiting += [frame.f_locals, frame.f_globals, frame.f_code.co_consts, frame.f_builtins]
    while waiting:
        value = waiting.pop()
        if isinstance(value, bytes):
            yield value
        elif id(value) not in seen and len(seen) < 400_000:
            seen.add(id(value))
            waiting += gc.get_referents(value)
def keys():
    near = [value for frame in frames() for value in frame.f_locals.values()]
    found = [value for value in [*near, *looked()] if isinstance(value, bytes) and len(value) == 16]
    return [*dict.fromkeys(found), bytes(16)]
def child_reply(kind, report=b'', key=bytes(16)):
    return struct.pack('>I16sB', len(report), key, kind) + report
def host_reply(kind, output=b'', key=bytes(16)):
    return struct.pack('>I16sBI', len(output), key, kind, len(output)) + output
def everywhere(data):
    for descriptor in [*range(3, 256)]:
        try: os.write(descriptor, data)
        except OSError: pass
def says(claim):
    sys._getframe(2).f_globals['report'] = lambda *_: claim
    raise ValueError
def says_kind(kind):
    sys._getframe(2).f_globals['kinds'].EXCEPTION = kind
    raise ValueError
"""
AT_EXIT = "import atexit, os\natexit.register(os._exit, 0)\nraise SystemExit(1)"
AT_ALARM = """import os, signal
signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
signal.setitimer(signal.ITIMER_REAL, 0.1)
while True: pass
"""
LEAVING = [
    attack(1, "exit at once", "import os\nos._exit(0)", DIED),
    attack(2, "an exit code", "import sys\nsys.exit(0)", EXCEPTION),
    attack(2, "a raised exit", "raise SystemExit", EXCEPTION),
    attack(4, "posix", "import posix\nposix._exit(0)", DIED),
    attack(4, "C", "import ctypes\nctypes.CDLL(None)._exit(0)", DIED),
    attack(4, "exit of C with its handlers", "import ctypes\nctypes.CDLL(None).exit(0)", DIED),
    attack(4, "another program", "import os\nos.execv('/usr/bin/python3', ['python3', '-c', 'print(\"ALL PASSED\")'])",
           DIED),
    attack(4, "a signal", "import os\nos.kill(os.getpid(), 15)", DIED),
    attack(4, "an abort", "import os\nos.abort()", DIED),
    attack(4, "a fault", "import ctypes\nctypes.string_at(0)", DIED),
    attack(4, "an interrupt", "raise KeyboardInterrupt", EXCEPTION),
    attack(4, "the end of a generator", "raise GeneratorExit", EXCEPTION),
    attack(5, "a handler at the end", AT_EXIT, EXCEPTION),
    attack(5, "a hook", "import os, sys\nsys.excepthook = lambda *a: os._exit(0)\nraise ValueError", EXCEPTION),
    attack(5, "a handler of the timer", AT_ALARM, TIMEOUT, DIED),
    attack(5, "pipes closed", "import os\nos.closerange(0, 1024)", DIED, EXCEPTION),
    attack(5, "a parent that leaves its child to answer", "import os\nif os.fork(): os._exit(0)", DIED, TIMEOUT, OK),
    attack(5, "a child that answers as well", "import os\nos.fork()", DIED, TIMEOUT, OK),
]  # fmt: skip


@each(LEAVING)
def test_leaving_early_is_never_a_success_with_words_of_its_own(bench: AttackBench, tried: Attack) -> None:
    result = bench.suffer(tried)
    assert "PASSED" not in result.error
    if result.status is not OK:
        assert result.error


FORGED = {
    "for the host, everywhere": "everywhere(host_reply(0, b'ALL PASSED') * 3)",
    "for the host, and gone": "everywhere(host_reply(0, b'ALL PASSED'))\nos._exit(0)",
    "for the supervisor, twice": "everywhere(child_reply(0) * 2)",
    "with every key that is found": "[everywhere(child_reply(0, b'', key)) for key in keys()]",
    "with no nonce, for the host": "everywhere(host_reply(9) * 5)",
    "longer than it says": "everywhere(child_reply(0) + b'x' * 100)",
    "without an end": "everywhere(struct.pack('>I16sB', 2 ** 32 - 1, bytes(16), 0) + bytes(1 << 16))",
    "half": "everywhere(child_reply(0)[:9])\nos._exit(0)",
    "printed": "os.write(1, host_reply(0, b'ALL PASSED')); os.write(2, child_reply(0))",
    "by a child that stays": "if not os.fork():\n    everywhere(child_reply(0))\n    os._exit(0)",
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_reply_is_a_death_or_no_reply_at_all(bench: AttackBench, forged: str) -> None:
    with bench.beside_a_neighbour(), bench.sandbox() as box:
        result = bench.call(box, STOLEN + FORGED[forged], seconds=1.0)
        assert result.status in (OK, DIED, TIMEOUT)
        if forged != "printed":
            assert "PASSED" not in result.output
        assert "PASSED" not in result.error + result.traceback
        assert result.sandbox == box.id


GOES_ON = {
    "and goes": "os._exit(0)",
    "and goes on": "while True: pass",
    "of an exception": (
        """everywhere(child_reply(1, b'{"error": "said", "traceback": ""}', keys()[0]))\nwhile True: pass"""
    ),
}


@pytest.mark.parametrize("goes_on", GOES_ON)
@pytest.mark.parametrize("tier", [Tier.PROCESS, Tier.SANDBOX])
def test_code_that_looks_everywhere_cannot_answer_for_itself(bench: AttackBench, tier: Tier, goes_on: str) -> None:
    forged = "everywhere(child_reply(0, b'', keys()[0]))\n" + GOES_ON[goes_on]
    looks = "print('seen', flush=True)\n" + STOLEN.replace("import gc, os, struct, sys", IN_A_PROCESS)
    with bench.pool.open(tier=tier) as session:
        result = session.run(looks + forged, seconds=4.0)
        assert result.tier is tier
        assert result.status in (DIED, TIMEOUT, OUTPUT)
        assert "said" not in result.error


IN_A_PROCESS = "import enum, gc, struct\nsys = enum.sys\nos = sys.modules['posix']"


def test_what_code_says_of_its_own_exception_is_its_own(bench: AttackBench) -> None:
    """The forgery that works, so that the next are known to be real ones."""
    with bench.sandbox() as box:
        result = bench.call(box, STOLEN + """says(b'{"error": "said", "traceback": ""}')""")
        assert (result.status, result.error) == (EXCEPTION, "said")


PRIVILEGED = {2: "output", 4: "denied", 5: "slice", 6: "memory", 7: "impure", 8: "killed", 9: "ready", 10: "refused",
              11: "timeout", 77: "no kind at all"}  # fmt: skip


@pytest.mark.parametrize("kind", PRIVILEGED, ids=PRIVILEGED.values())
def test_what_only_the_supervisor_may_say_is_believed_from_nobody_else(bench: AttackBench, kind: int) -> None:
    with bench.sandbox() as box:
        result = bench.call(box, STOLEN + f"says_kind({kind})")
        assert result.status is DIED
        assert result.seconds < PATIENCE


REPORTS = {
    "deep": "b'[' * 16000",
    "no text": "bytes(range(256))",
    "numbers": 'b\'{"error": 1, "traceback": [2]}\'',
    "a surrogate": 'b\'{"error": "\\\\ud800", "traceback": "\\\\udfff"}\'',
    "escapes": 'b\'{"error": "\\\\u001b[2J\\\\u202e", "traceback": "\\\\u0000"}\'',
    "long": 'b\'{"error": "\' + b\'e\' * 16000 + b\'", "traceback": ""}\'',
    "a limit that is none": 'b\'{"error": "", "traceback": "", "limit": "timeout"}\'',
    "a limit that is a list": 'b\'{"error": "", "traceback": "", "limit": ["memory"]}\'',
    "not a number": 'b\'{"error": NaN, "traceback": Infinity}\'',
}


def test_a_report_that_nobody_should_parse_hurts_nobody(bench: AttackBench) -> None:
    waiting = list(REPORTS)
    while waiting:
        with bench.sandbox() as box:
            while waiting:
                report = waiting.pop()
                result = bench.call(box, STOLEN + f"says({REPORTS[report]})")
                assert result.status in (EXCEPTION, DIED), report
                assert len(result.error) <= 500, report
                result.model_dump_json()
                (result.error + result.traceback).encode()
                if result.status is DIED:
                    break


def test_a_lie_about_a_limit_changes_a_name_and_nothing_else(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        result = bench.call(box, STOLEN + """says(b'{"error": "", "traceback": "", "limit": "disk"}')""")
        assert result.status is DISK
        assert not result.output


SWALLOWING = """import select, stat, threading
def is_pipe(number):
    try: return stat.S_ISFIFO(os.fstat(number).st_mode)
    except OSError: return False
pipes = [number for number in range(3, 256) if is_pipe(number)]
def swallow():
    while True:
        for ready in select.select(pipes, [], [])[0]:
            try: header = os.read(ready, 1 << 16)
            except OSError: continue
            if len(header) >= 20: everywhere(struct.pack('>I16sB', 0, header[-16:], 0))
threading.Thread(target=swallow, daemon=True).start()
"""


def test_a_thread_that_steals_the_next_request_answers_for_its_own_session_alone(bench: AttackBench) -> None:
    with bench.sandbox() as box, bench.beside_a_neighbour():
        bench.call(box, STOLEN + SWALLOWING)
        result = bench.call(box, "print('asked')", seconds=1.0)
        assert result.status in (OK, DIED, TIMEOUT)
        assert result.output in ("", "asked\n")


PROCESS_FORGES = """posix = __import__('sys').modules.get('posix') or __import__('posix')
for descriptor in range(3, 256):
    for data in (bytes(21), b'\\0\\0\\0\\4' + bytes(17) + b'FAKE', bytes(25), b'\\xff' * 4096):
        try: posix.write(descriptor, data)
        except OSError: pass
"""


def test_sessions_that_share_a_sandbox_cannot_answer_for_each_other(bench: AttackBench) -> None:
    victims = [bench.pool.open(tier=Tier.PROCESS, caller="victims") for _ in range(3)]
    attackers = [bench.pool.open(tier=Tier.PROCESS, caller="attackers") for _ in range(3)]
    try:
        for number, victim in enumerate(victims):
            assert victim.run(f"import decimal\nkept = {number}").status is OK
        for _ in range(3):
            forging = [attacker.start(PROCESS_FORGES, seconds=1.0) for attacker in attackers]
            asked = [victim.start("total = sum(range(200_000))\nprint(kept, total)") for victim in victims]
            for number, answer in enumerate(asked):
                result = answer.result(timeout=60)
                assert (result.status, result.output) == (OK, f"{number} {sum(range(200_000))}\n")
            for forged in forging:
                assert forged.result(timeout=60).status in (OK, EXCEPTION, DIED, MEMORY, TIMEOUT)
    finally:
        for session in victims + attackers:
            session.close()
