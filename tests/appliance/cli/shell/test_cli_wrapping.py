"""On a terminal words stay whole, what is signed is never cut, and a table says something at 80 columns, too."""

from __future__ import annotations

import os
import pty
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.cli.curriculum import try_item
from appliance.cli.machine.plan import _length
from appliance.cli.models.look import show_decision
from appliance.cli.sandbox import repl_commands
from appliance.cli.shell.wrapping import NARROWEST, wrapped
from appliance.cli.show import printing as show
from appliance.cli.show.printing import short_cycle, short_time, show_fields, show_line, show_table
from policies.contract.decision import Decision, DecisionOutcome, GateFinding, GateOutcome

LONG = "at least 10.6 points better on 512 questions, of which 140 tell the two models apart; " * 4
WORDS = st.lists(st.text("abcde.", min_size=1, max_size=20), min_size=1, max_size=30)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Has what is printed believe that it goes to a terminal of 80 columns."""
    monkeypatch.setattr(show, "columns_of", lambda stream: 80)
    return lambda: capsys.readouterr().out.splitlines()


@given(WORDS, st.integers(NARROWEST + 10, 100), st.integers(0, 10), st.integers(0, 30))
def test_only_blanks_are_replaced_and_no_line_is_wider_than_the_terminal(words, columns, indent, used) -> None:
    text = " ".join(words)
    broken = wrapped(text, columns, indent=indent, used=used)
    assert broken.split() == words
    lines = [" " * used + broken.split("\n")[0], *broken.split("\n")[1:]]
    assert all(len(line) <= columns or len(line.split()) == 1 for line in lines)
    assert all(line.startswith(" " * indent) for line in lines[1:])
    assert wrapped(text, None, indent=indent, used=used) == text


def test_a_line_and_a_field_are_broken_between_words(terminal) -> None:
    show_line(f"  {LONG}")
    show_fields([("gate", "short"), ("reason", LONG)])
    lines = terminal()
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()).count("questions, of which 140 tell") == 8
    assert [line for line in lines if line.startswith("reason")] == [next(li for li in lines if "reason" in li)]
    assert lines[-1].startswith(" " * len("reason  "))


def test_every_reason_and_gate_of_a_decision_is_shown_whole(terminal) -> None:
    gates = ("improvement", "non_regression/arithmetic", "non_regression/a_family_of_a_longer_name")
    findings = tuple(
        GateFinding(gate=gate, outcome=GateOutcome.UNDECIDED, figure=10.63, low=-1.0, high=20.5, reason=LONG.strip())
        for gate in gates
    )
    show_decision(
        Decision(
            id="d",
            candidate="b" * 64,
            champion="a" * 64,
            evaluation="e",
            policy="p",
            outcome=DecisionOutcome.HOLD,
            findings=findings,
            reason=LONG.strip(),
            would_change=LONG.strip(),
            made_at="2026-11-26T00:00:00+00:00",
        )
    )
    lines = terminal()
    said = " ".join(" ".join(lines).split())
    assert "…" not in said
    assert said.count(" ".join(LONG.split())) == 5
    assert all(gate in said for gate in gates)
    assert max(map(len, lines)) <= 80


def test_a_table_takes_short_forms_and_drops_what_says_nothing_before_it_cuts(terminal) -> None:
    night = "night-20261124t020000-9c1d"
    row = ("job-1f0c52b7d2aa", "predicate", 5, "queued", "2026-11-24T02:00:00", "a long question " * 5, "waits " * 9)
    show_table(
        ("job", "kind", "priority", "state", "submitted", "question", "now"),
        [row],
        empty="",
        narrow={"submitted": short_time, "priority": None, "kind": None, "now": None},
    )
    headings, line = terminal()
    assert "priority" not in headings
    assert re.search(r"queued +11-24 02:00 +a long question", line)
    assert len(line) <= 80
    assert short_cycle(night) == "night 11-24 02:00"
    assert short_cycle("night-x") == "night-x"


@pytest.mark.parametrize("screen", [50, 60])
def test_a_time_is_never_cut_and_another_column_goes_before_it(screen: int, capsys) -> None:
    rows = [
        (f"job-demo-20261127t025557-c6{n}", "unsolved", f"2026-11-27T03:0{n}:11", "a question " * n) for n in (0, 9)
    ]
    show_table(
        ("job", "state", "submitted", "question"), rows, empty="", screen=screen, narrow={"submitted": short_time}
    )
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.split() == ["job", *(["state"] if screen == 60 else []), "submitted"]
    assert [re.findall(r"11-27 03:0\d$", line) for line in lines] == [["11-27 03:00"], ["11-27 03:09"]]
    nights = [("7902e5681bc0", "champion", "demo 11-27 02:55", "quarantine for a long reason")]
    show_table(("model", "in service as", "cycle", "decision"), nights, empty="", screen=screen)
    assert "demo 11-27 02:55" in capsys.readouterr().out


def test_what_the_commands_of_a_shell_do_is_broken_between_words(monkeypatch) -> None:
    monkeypatch.setattr(repl_commands, "columns_of", lambda stream: 60)
    for text in (repl_commands.HELP, try_item.HELP):
        lines = repl_commands.help_lines(text).splitlines()
        assert max(map(len, lines)) <= 60
        assert " ".join(" ".join(lines).split()) == " ".join(text.split())
        assert all(line.startswith(("  :", " " * repl_commands.HELP_INDENT)) for line in lines)


@pytest.mark.parametrize(("hours", "said"), [(0.0, "1 min"), (0.05, "3 min"), (0.99, "59 min"), (7.26, "7.3 h")])
def test_a_night_of_minutes_is_told_in_minutes(hours: float, said: str) -> None:
    assert _length(hours) == said


def test_the_plan_fits_80_columns_with_whole_headings(tmp_path) -> None:
    command = [sys.executable, "-m", "appliance.cli.main", "plan", "--data", str(tmp_path / "none")]
    pid, descriptor = pty.fork()
    if pid == 0:
        os.environ.update(COLUMNS="80", XDG_CONFIG_HOME=str(tmp_path))
        os.execv(command[0], command)
    output = b""
    try:
        while chunk := os.read(descriptor, 65536):
            output += chunk
    except OSError:
        pass  # the other end is closed
    os.waitpid(pid, 0)
    os.close(descriptor)
    lines = output.decode().splitlines()
    assert any(line.split()[-4:] == ["at", "once", "a", "night"] for line in lines), lines
    assert all(len(line) <= 80 and "…" not in line for line in lines)


def test_further_lines_of_a_field_are_indented_so_that_none_looks_like_a_field(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_fields([("question", "Add:\n1\nstate  solved\x1b[2J\n"), ("state", "failed")])
    assert capsys.readouterr().out.splitlines() == [
        "question  Add:",
        "          1",
        "          state  solved\\x1b[2J",
        "state     failed",
    ]
