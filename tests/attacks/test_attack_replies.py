"""Rows 1, 2, 4, 5 and 12 of the catalogue: leaving early, and answers that nobody was asked for.

A session has its own word for its own calls: code can find the nonce of its call in its own process and say "done" or
"an exception" itself. What it cannot do is say anything else, put words into the output that it did not print, choose
the time or the sandbox, or answer for another session. So no verdict is ever the status of a call in which what is
judged has run.
"""

from __future__ import annotations

import pytest
from attack_kit import DIED, DISK, EXCEPTION, MEMORY, OK, PATIENCE, TIMEOUT, Attack, AttackBench, attack, each

from runtime.sandbox import Tier

STOLEN = """import os, struct, sys
def own_nonce():
    frame, nonce = sys._getframe(), b''
    while frame:
        found = frame.f_locals.get('nonce')
        nonce = found if isinstance(found, bytes) else nonce
        frame = frame.f_back
    return nonce
def child_reply(kind, report=b'', nonce=None):
    return struct.pack('>I16sB', len(report), own_nonce() if nonce is None else nonce, kind) + report
def host_reply(kind, output=b'', nonce=None):
    nonce = own_nonce() if nonce is None else nonce
    return struct.pack('>I16sBI', len(output), nonce, kind, len(output)) + output
def everywhere(data):
    for descriptor in [*range(3, 256)]:
        try: os.write(descriptor, data)
        except OSError: pass
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
    "with another nonce": "everywhere(child_reply(0, nonce=bytes(16)))",
    "with no nonce, for the host": "everywhere(host_reply(9, nonce=bytes(16)) * 5)",
    "longer than it says": "everywhere(child_reply(0) + b'x' * 100)",
    "without an end": "everywhere(struct.pack('>I16sB', 2 ** 32 - 1, own_nonce(), 0) + bytes(1 << 16))",
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


def test_a_session_has_its_own_word_for_its_own_call_and_for_nothing_else(bench: AttackBench) -> None:
    """The forgery that works, so that the others are known to be real ones."""
    with bench.sandbox() as box:
        result = bench.call(box, "print('seen', flush=True)\n" + STOLEN + "everywhere(child_reply(0))\nos._exit(0)")
        assert (result.status, result.output, result.error) == (OK, "seen\n", "")
    with bench.sandbox() as box:
        forged = 'everywhere(child_reply(1, b\'{"error": "said", "traceback": ""}\'))\nimport time\ntime.sleep(60)'
        result = bench.call(box, STOLEN + forged)
        assert (result.status, result.error) == (EXCEPTION, "said")


PRIVILEGED = {2: "output", 4: "denied", 5: "slice", 6: "memory", 7: "impure", 8: "killed", 9: "ready", 10: "refused",
              11: "timeout", 77: "no kind at all"}  # fmt: skip


@pytest.mark.parametrize("kind", PRIVILEGED, ids=PRIVILEGED.values())
def test_what_only_the_supervisor_may_say_is_believed_from_nobody_else(bench: AttackBench, kind: int) -> None:
    with bench.sandbox() as box:
        result = bench.call(box, STOLEN + f"everywhere(child_reply({kind}))\nimport time\ntime.sleep(60)")
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


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_that_nobody_should_parse_hurts_nobody(bench: AttackBench, report: str) -> None:
    code = STOLEN + f"everywhere(child_reply(1, {REPORTS[report]}))\nimport time\ntime.sleep(60)"
    with bench.sandbox() as box:
        result = bench.call(box, code)
        assert result.status in (EXCEPTION, DIED)
        assert len(result.error) <= 500
        result.model_dump_json()
        (result.error + result.traceback).encode()


def test_a_lie_about_a_limit_changes_a_name_and_nothing_else(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        lie = STOLEN + 'everywhere(child_reply(1, b\'{"error": "", "traceback": "", "limit": "disk"}\'))'
        result = bench.call(box, lie + "\nimport time\ntime.sleep(60)")
        assert result.status in (DISK, DIED)
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
            if len(header) >= 20: everywhere(struct.pack('>I16sB', 0, header[4:20], 0))
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
