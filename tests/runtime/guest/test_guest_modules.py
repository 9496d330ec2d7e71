"""Modules of guests: imported ahead, kept in memory for processes without files, or not to be had."""

from __future__ import annotations

import pytest
from guest_kit import PROFILE, Worker, worker

from runtime.guest.wire import Op, ReplyKind
from runtime.guest.worker import COMPUTE_MODULES
from runtime.profile import Mode


def test_modules_are_there_before_the_first_call() -> None:
    with worker("process", preload=("sched", "xml.dom.minidom")) as guest:
        assert guest.says("import sched, xml.dom.minidom\nprint(sched.__name__)") == "sched\n"


@pytest.mark.parametrize("mode", ["process", "sandbox"])
def test_a_module_that_cannot_be_loaded_ends_the_worker_with_a_word(mode: Mode) -> None:
    guest = Worker(PROFILE.model_copy(update={"mode": mode, "preload": ("json", "no_such_module")}))
    try:
        with pytest.raises(EOFError):
            guest.next()
        assert "no_such_module could not be imported: ModuleNotFoundError" in guest.complaint().splitlines()[0]
    finally:
        guest.end()


def test_what_may_be_computed_with_can_be_imported_without_a_file() -> None:
    with worker("process", opened=False) as guest:
        for session, name in enumerate(COMPUTE_MODULES):
            guest.ask(Op.OPEN, session)
            assert guest.says(f"import {name}\nprint({name}.__name__)", session) == f"{name}\n"
            guest.send(Op.DROP, session)


def test_modules_from_memory_are_those_of_the_library() -> None:
    code = """
import collections, dataclasses, datetime, decimal, fractions, hashlib, json, re, statistics, typing
@dataclasses.dataclass
class Point:
    x: int
    y: typing.Optional[int] = None
print(Point(1), json.loads(json.dumps({"a": [1.5, None]})), re.sub(r"(\\d+)", r"<\\1>", "a12b"))
print(decimal.Decimal("0.1") + decimal.Decimal("0.2"), fractions.Fraction(1, 3) + 1, statistics.median([3, 1, 2]))
print(datetime.date(2024, 2, 29).isoformat(), hashlib.sha256(b"").hexdigest()[:8], collections.Counter("aab"))
print(json.__name__, json.__package__, json.__path__ != [], json.decoder.__file__.endswith("decoder.py"))
"""
    with worker("process") as confined, worker("sandbox") as free:
        assert confined.says(code) == free.says(code)


def test_a_module_that_is_not_kept_is_a_denied_call() -> None:
    with worker("process") as guest:
        assert guest.run("import sqlite3").kind == ReplyKind.DENIED
