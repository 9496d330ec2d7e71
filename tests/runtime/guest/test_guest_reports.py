"""What a guest says of code that failed: short, plain, and which limit it was."""

from __future__ import annotations

import json

import pytest
from guest_kit import worker

from runtime.guest.wire import ReplyKind


def test_limits_that_code_ran_into_are_named() -> None:
    cases = {
        "x = ' ' * (1 << 40)": "memory",
        "raise OSError(28, 'x')": "disk",
        "raise OSError(27, 'x')": "disk",
        "import os\nkept = [os.dup(0) for _ in range(200)]": "files",
        'raise RuntimeError("can\'t start new thread")': "pids",
        "def fork(): raise BlockingIOError(11, 'x')\ndef go(os): os.fork()\nclass os: fork = fork\ngo(os)": None,
        "raise ValueError(28)": None,
        "raise BlockingIOError(11, 'nothing to read')": None,
    }
    with worker("sandbox") as guest:
        for code, limit in cases.items():
            reply = guest.run(code)
            assert reply.kind == ReplyKind.EXCEPTION
            assert json.loads(reply.report).get("limit") == limit, code


def test_a_program_that_cannot_be_forked_names_its_limit() -> None:
    code = "import os\nos.fork = lambda: (_ for _ in ()).throw(BlockingIOError(11, 'x'))\n"
    code += "import _posixsubprocess\ndef start():\n    raise BlockingIOError(11, 'x'); os.posix_spawn\nstart()"
    with worker("sandbox") as guest:
        assert json.loads(guest.run(code).report)["limit"] == "pids"


HOSTILE_TEXTS = ["\x00\x1b[31m", "\ud800", "\U0001f600" * 2_000, '"\\\n\r\t', "é" * 5_000]


@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_a_report_is_small_and_plain_whatever_the_code_is_called_and_says(text: str) -> None:
    name = "f" + "x" * 20_000
    code = f"def {name}(text):\n    raise ValueError(text)  # {'y' * 3_000}\n{name}({text!r})"
    with worker("sandbox") as guest:
        reply = guest.run(code)
        assert reply.kind == ReplyKind.EXCEPTION
        assert len(reply.report) <= 1 << 14
        assert reply.report.isascii()
        report = json.loads(reply.report)
        assert report["error"].startswith("ValueError: ")
        assert "line 2, in fxxx" in report["traceback"]


def test_an_exception_that_cannot_be_printed_is_told_all_the_same() -> None:
    code = "class Bad(Exception):\n    def __str__(self): raise SystemExit\nraise Bad"
    with worker("sandbox") as guest:
        assert json.loads(guest.run(code).report)["error"] == "Bad: (its message could not be made)"
