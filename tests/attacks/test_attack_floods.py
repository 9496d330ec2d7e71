"""Rows 47, 50 and 51 of the catalogue: too much output, and answers or sources made to choke whoever reads them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from attack_kit import DIED, EXCEPTION, MEMORY, OK, OUTPUT, TIMEOUT, Attack, AttackBench, attack, each

from runtime.errors import BadRequestError

PYTHON = "/usr/bin/python3"
RAW = "import os\nwhile True: os.write({descriptor}, {data} * 1000)"
FORKED = "import os\nfor _ in range(3): os.fork()\n"
LATER = """import os, threading, time
threading.Thread(target=lambda: [os.write(1, b'x' * 99) for _ in range(10 ** 9)]).start()
time.sleep(600)
"""
CHAIN = """error = None
for n in range(10 ** 4):
    last, error = error, ValueError(n)
    error.__cause__ = last
raise error
"""
RECURSION = "import sys\nsys.setrecursionlimit(10 ** 6)\ndef f(): f()\nf()"
DIGITS = "import sys\nsys.set_int_max_str_digits(0)\nprint(len(str(7 ** 10 ** 8)))"
FLOODS = [
    attack(47, "lines", "while True: print('y')", OUTPUT),
    attack(47, "one line without an end", "while True: print('y' * 100, end='', flush=True)", OUTPUT),
    attack(47, "NULs", RAW.format(descriptor=1, data="b'\\0'"), OUTPUT),
    attack(47, "escapes of the terminal", RAW.format(descriptor=1, data="b'\\x1b[2J\\x1b]0;x\\x07'"), OUTPUT),
    attack(47, "invalid UTF-8", RAW.format(descriptor=1, data="b'\\xff\\xfe\\xc0'"), OUTPUT),
    attack(47, "standard error", RAW.format(descriptor=2, data="b'e'"), OUTPUT),
    attack(47, "many processes", FORKED + RAW.format(descriptor=1, data="b'z'"), OUTPUT),
    attack(47, "a thread", LATER, OUTPUT),
    attack(47, "a message without an end", "raise ValueError('e' * (1 << 24))", EXCEPTION),
    attack(47, "a message of escapes", "raise ValueError('\\x1b[2J\\0\\ud800' * 1000)", EXCEPTION),
    attack(47, "a name without an end", "raise type('E' * (1 << 20), (Exception,), {})", EXCEPTION),
    attack(47, "a chain of causes", CHAIN, EXCEPTION),
    attack(51, "deep nesting", "eval('(' * 10 ** 5 + ')' * 10 ** 5)", EXCEPTION, MEMORY, DIED),
    attack(51, "deep operators", "eval('-' * 10 ** 6 + '1')", EXCEPTION, MEMORY, DIED),
    attack(51, "constants folded without an end", "eval('1 << (1 << 34)')", EXCEPTION, MEMORY, TIMEOUT),
    attack(51, "recursion without an end", RECURSION, EXCEPTION, DIED, MEMORY, TIMEOUT),
    attack(51, "a pattern without an end", "import re\nre.match('(a+)+$', 'a' * 99 + 'b')", TIMEOUT),
    attack(51, "digits without an end", DIGITS, TIMEOUT, MEMORY),
]
UNREADABLE = ("(" * 100_000, "x = " + "[" * 5_000 + "]" * 5_000, "\0", "\ud800", "if 1:\n" * 200, "a" * (1 << 20))


@each(FLOODS)
def test_a_flood_is_cut_where_the_cap_is(bench: AttackBench, tried: Attack) -> None:
    result = bench.suffer(tried)
    assert len(result.error) <= 500
    assert len(result.traceback) <= 2_000
    (result.error + result.traceback + result.output).encode()


def test_a_source_that_cannot_be_parsed_costs_only_its_own_call(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        for source in UNREADABLE:
            assert bench.call(box, source).status in (EXCEPTION, MEMORY)
        assert bench.call(box, "print(1)").output == "1\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_program_that_floods_is_ended_and_the_sandbox_lives_on(bench: AttackBench, stream: str) -> None:
    with bench.sandbox() as box:
        code = f"import sys\nwhile True: sys.{stream}.buffer.write(b'\\xff\\0\\x1b' * 999)"
        result = box.exec([PYTHON, "-c", code])
        assert result.status is OUTPUT
        assert len(result.stdout) <= box.limits.output_bytes
        assert len(result.stderr) <= box.limits.output_bytes
        assert bench.call(box, "print(1)").output == "1\n"


def test_a_bomb_of_an_archive_comes_back_as_the_bytes_it_is(bench: AttackBench, tmp_path: Path) -> None:
    """Nothing on the host unpacks what a guest made."""
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(1 << 26))
    with bench.sandbox() as box:
        box.write("/work/bomb.zip", bomb.getvalue())
        assert box.download("/work", tmp_path / "back") == 1
        assert (tmp_path / "back/bomb.zip").read_bytes() == bomb.getvalue()


def test_a_program_fed_with_more_than_it_reads_is_no_trouble(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        assert box.exec([PYTHON, "-c", "pass"], stdin=bytes(1 << 20)).status is OK
        with pytest.raises(BadRequestError):
            box.exec([PYTHON, "-c", "\0"])
        assert bench.call(box, "print(1)").output == "1\n"
