"""The daemon hears of the end of its broker together with the broker's own words, however early those came."""

from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path

from appliance.daemon.processes.broker_process import BrokerProcess, GuardLines
from appliance.daemon.processes.child_log import ChildLog
from runtime.settings import BrokerSettings

CANNOT = "import sys; sys.stdin.read(); print('broker: no room here', file=sys.stderr); sys.exit(2)"


def test_a_broker_that_ends_at_once_is_told_of_with_its_words(tmp_path: Path) -> None:
    settings = BrokerSettings(state_dir=tmp_path / "state", root_dir=tmp_path / "root")
    broker = BrokerProcess(settings, tmp_path / "sock", [sys.executable, "-c", CANNOT])
    texts: list[str] = []
    lost = threading.Event()
    try:
        assert broker.start() == "no room here"
        broker.watch(ChildLog(tmp_path / "log"), texts.append, lost.set)
        assert lost.wait(120)
    finally:
        broker.close()
    [text] = texts
    assert re.fullmatch(r"the broker ended with status 2 after \d+ s and is not started again: no room here", text)
    assert "no room here" in (tmp_path / "log").read_text()


def test_lines_come_whole_or_with_the_end_and_nothing_is_waited_for() -> None:
    out, into = os.pipe()
    lines = GuardLines(out, b"ear")
    assert lines.waiting() == []
    os.write(into, b"ly\ntwo\nthr")
    assert lines.waiting() == [b"early\n", b"two\n"]
    assert (lines.waiting(), lines.ended) == ([], False)
    os.write(into, b"ee")
    os.close(into)
    assert (lines.waiting(), lines.ended) == ([b"three"], True)
    assert lines.waiting() == []
    os.close(out)


def test_a_line_without_end_is_cut_and_does_not_fill_the_memory() -> None:
    out, into = os.pipe()
    lines, got = GuardLines(out), b""
    for _ in range(40):
        os.write(into, b"x" * 60_000)
        got += b"".join(lines.waiting())
    os.close(into)
    got += b"".join(lines.waiting())
    assert len(got) == 2_400_000
    os.close(out)
