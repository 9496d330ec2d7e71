"""The demonstration, shortened: it runs, says how it went in words and in JSON, and never repeats or loses anything."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from appliance.cli.demo_report import DemoReport
from appliance.cli.demo_screen import screen
from benchmarks.kills import FIXTURE, SEALED, environment

ASKED_FOR = {
    "seconds",
    "sealed_items",
    "success_before",
    "success_after",
    "gain",
    "gain_low",
    "gain_high",
    "tool_errors_in_correct_before",
    "tool_errors_in_correct_after",
    "tool_calls",
    "tool_calls_outside_sandbox",
    "decision",
    "bundle",
}


def demo(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "appliance.cli.main", "demo", *arguments]
    return subprocess.run(command, env=environment(data, FIXTURE), capture_output=True, text=True, timeout=280)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "data"


@pytest.fixture(scope="module")
def first(data: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, object]]:
    out = data.with_name("first.json")
    ran = demo(data, "--json", str(out))
    return ran, json.loads(out.read_text())


def test_it_ends_with_one_screen_and_the_same_as_json(
    first: tuple[subprocess.CompletedProcess[str], dict[str, object]],
) -> None:
    ran, found = first
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert found.keys() >= ASKED_FOR
    assert found["sealed_items"] == SEALED
    assert found["tool_calls_outside_sandbox"] == 0
    assert isinstance(found["tool_calls"], int)
    assert found["tool_calls"] > 100
    assert found["decision"] in ("hold", "reject")
    assert Path(str(found["bundle"])).is_dir()
    for words in ("sealed questions", "tool errors", "approval", "find x with 7x+3=45: solved", "model show"):
        assert words in ran.stdout
    assert "Traceback" not in ran.stderr


def test_a_second_run_says_so_and_shows_the_same(
    data: Path, first: tuple[subprocess.CompletedProcess[str], dict[str, object]]
) -> None:
    out = data.with_name("second.json")
    started = time.monotonic()
    again = demo(data, "--json", str(out))
    assert again.returncode == 0
    assert time.monotonic() - started < 60
    assert "already ran here" in again.stdout
    found = json.loads(out.read_text())
    assert {name: found[name] for name in ASKED_FOR - {"seconds"}} == {
        name: first[1][name] for name in ASKED_FOR - {"seconds"}
    }


def test_beginning_anew_keeps_what_was_there_and_ctrl_c_loses_nothing(
    data: Path, first: tuple[subprocess.CompletedProcess[str], dict[str, object]]
) -> None:
    command = [sys.executable, "-m", "appliance.cli.main", "demo", "--fresh"]
    process = subprocess.Popen(
        command,
        env=environment(data, FIXTURE),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if "step 1 of" in line:
            break
    os.killpg(process.pid, signal.SIGINT)
    rest = process.communicate(timeout=60)[0]
    assert process.returncode == 130, said + rest
    assert "Traceback" not in said + rest
    (kept,) = data.parent.glob("data.before-*")
    assert (kept / "ledger.sqlite3").exists()
    going_on = demo(data)
    assert "going on with" in going_on.stdout
    assert going_on.returncode in (0, 1), going_on.stdout + going_on.stderr


def test_an_answer_cannot_draw_on_the_screen(
    first: tuple[subprocess.CompletedProcess[str], dict[str, object]],
) -> None:
    hostile = DemoReport.model_validate({**first[1], "answer": "\x1b[2J[red]6[/red]\u202e"})
    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(screen(hostile, []))
    text = console.export_text()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]6[/red]" in text
