"""A line that is written over is one row of its terminal, and leaves nothing behind when that becomes narrower."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reflowing_terminal import ReflowingTerminal

from appliance.cli.shell.live_line import LiveLine, cells, clipped, columns_of, rows_of

FOLLOWING = """
from contextlib import closing
from appliance.cli.jobs.watch import JobProgress
from appliance.records.jobs import Job, JobState
from verifiers.answers.spec import AnswerSpec
at = "2026-05-01T12:00:00+00:00"
spec = AnswerSpec(notation="digits", expected="6")
job = Job(id="j", question="q", spec=spec, state=JobState.RUNNING, step=STEP, created=at, updated=at)
print("job j is queued")
with closing(JobProgress()) as progress:
    for seconds in range(1, 5):
        step()
        progress.show(job.model_copy(update={"spent_seconds": float(seconds), "tries_done": seconds}))
    step()
step()
"""
COUNTING = """
from appliance.cli.show.printing import show_progress
print("begins")
for text in ("a" * 300, "b" * 300, "c" * 10, ""):
    step()
    show_progress(text)
step()
"""
DEMONSTRATION = """
from rich.console import Console
from appliance.cli.demo.screen import DemoProgress
print("this takes some minutes")
with DemoProgress(Console(), lambda: 0.0, auto_refresh=False) as progress:
    for phase in ("prepare", "warm_start", "training", "evaluation", "decision", "job"):
        step()
        progress.begin(phase)
        progress.note("step 23 of 60, success 0.56, tool errors in correct 0.034 " * 3, 23.0, 60.0)
    step()
print("one night")
step()
"""


@given(st.text(max_size=60), st.integers(1, 70))
def test_a_clipped_text_fits_and_says_that_it_was_clipped(text: str, columns: int) -> None:
    shown = clipped(text, columns)
    assert cells(shown) <= columns
    assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))


def test_rows_are_counted_as_a_terminal_breaks_lines() -> None:
    assert rows_of([0, 1, 40, 41, 120], 40) == 1 + 1 + 1 + 2 + 3
    assert rows_of([], 40) == 0


def test_text_from_anywhere_steers_no_terminal() -> None:
    stream = io.StringIO()
    LiveLine().show(stream, "\x1b[2J\n", 80)
    assert stream.getvalue() == "\r\x1b[K\\x1b[2J\\n"
    assert columns_of(stream) is None


@pytest.mark.parametrize("step", ["solver z3, " * 30, "解" * 200], ids=["plain", "wide"])
def test_a_job_is_followed_in_one_row_of_any_terminal(step: str) -> None:
    with ReflowingTerminal(FOLLOWING.replace("STEP", repr(step)), 60) as terminal:
        for columns in (60, 130, 50, 20):
            terminal.resize(columns)
            begun, *drawn = terminal.step()
            assert (begun, len(drawn)) == ("job j is queued", 1), drawn
            assert drawn[0].startswith("running, ")
            assert columns - 3 <= cells(drawn[0]) < columns
            assert drawn[0].endswith("…")
        terminal.resize(15)
        assert terminal.step() == ["job j is queued"]


def test_progress_leaves_nothing_behind_on_a_terminal_that_becomes_narrower() -> None:
    with ReflowingTerminal(COUNTING, 120) as terminal:
        assert terminal.step() == ["begins", "a" * 118 + "…"]
        terminal.resize(35)
        assert terminal.step() == ["begins", "b" * 33 + "…"]
        terminal.resize(100)
        assert terminal.step() == ["begins", "c" * 10]
        terminal.resize(8)
        assert terminal.step() == ["begins"]


def test_the_lines_of_the_demonstration_are_there_once_however_its_terminal_changes() -> None:
    names = ["prepare", "warm start", "training", "evaluation", "decision", "job"]
    with ReflowingTerminal(DEMONSTRATION, 130) as terminal:
        for number, columns in enumerate((130, 100, 80, 140, 72, 90), start=1):
            terminal.resize(columns)
            said, *lines = terminal.step()
            assert said == "this takes some minutes"
            assert phases(lines) == names[:number], lines
            assert " ".join(" ".join(lines).split()).count("step 23 of 60,") == 3 * (number - 1), lines
        terminal.resize(66)
        said, *lines, last = terminal.step()
        assert (said, last) == ("this takes some minutes", "one night")
        assert phases(lines) == names, lines
        assert " ".join(" ".join(lines).split()).count("step 23 of 60,") == 3 * len(names), lines


def phases(lines: list[str]) -> list[str]:
    """The phases named in these lines, without the messages below them."""
    return [line[2:13].rstrip() for line in lines if not line.startswith("  ")]
