"""`assay logs` reads what lies in the data folder while no daemon runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from forked_commands import run_forked

from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core


def logs(data: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    places = {name: os.environ[name] for name in ("PATH", "XDG_STATE_HOME")}
    return run_forked(("logs", *words), places | {"HOME": str(data.parent), "ASSAY_DATA": str(data)})


def test_events_and_files_are_shown_and_it_is_said_that_no_daemon_runs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Core(Settings(data=data)) as core:
        for number in range(3):
            core.events.add("note", f"number {number}")
    (data / "logs").mkdir(exist_ok=True)
    (data / "logs" / "worker.log").write_text("one\ntwo\nthree\n")
    events = logs(data, "--limit", "2")
    assert [line.rpartition(" ")[2] for line in events.stdout.decode().splitlines()] == ["1", "2"]
    assert (events.returncode, b"the daemon is not running" in events.stderr) == (0, True)
    assert logs(data, "worker", "--limit", "2").stdout == b"two\nthree\n"
    assert logs(data, "broker").stdout == b""


def test_the_newest_lines_are_among_those_that_are_shown_however_many(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Core(Settings(data=data)) as core:
        for number in range(450):
            core.events.add("note", f"number {number}")
    shown = logs(data, "--limit", "430").stdout.decode().splitlines()
    assert [line.rpartition(" ")[2] for line in shown] == [str(number) for number in range(20, 450)]


def test_the_gateway_s_log_is_shown_and_a_source_that_there_is_not_in_plain_words(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Core(Settings(data=data)):
        (data / "logs").mkdir(exist_ok=True)
        (data / "logs" / "gateway.log").write_text("it \x9b31m serves\n")
    assert logs(data, "gateway").stdout == b"it \\x9b31m serves\n"
    refused = logs(data, "gatewy")
    assert (refused.returncode, b"Value error" in refused.stderr, b"'gateway'" in refused.stderr) == (2, False, True)


def test_where_nothing_lies_it_is_the_daemon_that_is_missing(tmp_path: Path) -> None:
    asked = logs(tmp_path / "data")
    assert (asked.returncode, b"assay serve" in asked.stderr) == (3, True)
