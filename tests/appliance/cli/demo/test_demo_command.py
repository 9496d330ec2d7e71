"""The demonstration, shortened: it runs, says how it went in words and in JSON, and never repeats or loses anything.

One night for all tests here: its broker is killed, then everything, then it is stopped by Ctrl-C, and then it ends.
`benchmarks/kills.py` makes thirty kills.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import guest_roots as building
import psutil
import pytest
from forked_commands import ForkedCommand, run_forked
from rich.console import Console

from appliance.audit.kept_heads import head_name
from appliance.cli.demo.report import DemoReport, FamilyRow
from appliance.cli.demo.screen import SHARES, DemoProgress, RemainingTime, describe, left, screen
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import CycleState, Event
from appliance.records.rollouts import RolloutEnd
from appliance.records.training import RolloutFilter
from appliance.system.clock import utc_now
from benchmarks.kills import FIXTURE, SMALL, count, environment, kill_tree, left_on_host, survivors
from policies.contract.decision import GateFinding, GateOutcome
from runtime.broker import ask
from runtime.errors import RefusedError

TUTORIAL = (Path(__file__).parents[4] / "docs" / "tutorial.md").read_text().partition("## With a real model")[0]
COMMAND = re.compile(r"(?m)^    assay (.+)$")
LINE = re.compile(r"(?m)^    (\{.+\})$")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
GATES = ("improvement", "tool_error_rate", "non_regression/linear_equations")
REPORT = {
    **dict.fromkeys((name for name, field in DemoReport.model_fields.items() if field.annotation is float), 0.5),
    **dict.fromkeys((name for name, field in DemoReport.model_fields.items() if field.annotation is str), "word"),
    **dict.fromkeys((name for name, field in DemoReport.model_fields.items() if field.annotation is int), 512),
    "seconds_by_phase": dict.fromkeys(("warm_start", "training", "evaluation"), 123.4),
    "seconds_in_training": dict.fromkeys(("sampling", "verifying", "learning"), 123.4),
    **dict.fromkeys(("success_base", "success_base_low", "success_base_high"), 0.5),
    "rollouts": {},
    "verified": True,
}
"""A demonstration's figures, for its screen alone."""
LEFT_OUT = ("serve", "key new", "model approve", "model rollback", "cycle start", "cycle watch")
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


def small(data: Path) -> dict[str, str]:
    """A short night, without sandboxes that nobody takes."""
    return environment(data, FIXTURE, SMALL) | {"ASSAY_SANDBOX__READY": "1"}


def demo(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    ran = ForkedCommand(("demo", *arguments), small(data))
    try:
        out, error = ran.communicate(280)
    except subprocess.TimeoutExpired:
        ran.send_signal(signal.SIGKILL)
        raise
    return subprocess.CompletedProcess(ran.args, ran.wait(), out.decode(), error.decode())


def stopped_at(pattern: str, data: Path, *arguments: str) -> tuple[int, str]:
    """How one ends, and all that it said, that meets Ctrl-C as soon as it says that."""
    process = ForkedCommand(("demo", *arguments), small(data), merged=True, alone=True)
    while not re.search(pattern, process.written()) and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    try:
        output = process.communicate(timeout=200)[0].decode()
    finally:
        process.kill()  # one that hangs is nothing that the next try finds alive
    return process.wait(), output


def broker_at_work(process: ForkedCommand, data: Path, *, other_than: int) -> int:
    """The process number of the night's broker, once the cycle has begun and there are sandboxes."""
    while process.poll() is None:
        broker = broker_of(data) if (data / "cycles").exists() else 0
        try:
            if broker not in (0, other_than) and psutil.Process(broker).children():
                return broker
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.05)
    pytest.fail(f"the night ended: {process.communicate()[1]!r}")


def broker_of(data: Path) -> int:
    try:
        return ask(data / "run" / "broker.sock").pid
    except RefusedError:
        return 0


@dataclass(frozen=True)
class Night:
    data: Path
    survived: list[str]
    """What is alive when its broker was killed, and then everything when it had another one."""
    stopped: tuple[int, str]
    """How it ended, and what it said, when it met Ctrl-C one step later."""
    code: int
    """Of the first that came to its end."""
    out: str
    error: str
    found: dict[str, object]
    """What it wrote with --json."""


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory, guest_roots: Path) -> Night:
    """One for all test processes of the run: the second that asks waits for it."""
    folder = building.shared(tmp_path_factory) / "demonstration"
    with building.alone(folder.with_suffix(".lock")):
        if not (kept := folder / "night.json").exists():
            shutil.rmtree(folder, ignore_errors=True)
            building.lend(guest_roots, folder / "data" / "run")
            with pytest.MonkeyPatch.context() as patched:
                patched.setenv("XDG_STATE_HOME", str(folder / "state"))
                kept.write_text(json.dumps(asdict(had(folder / "data")), default=str))
        told = json.loads(kept.read_text())
    return Night(**told | {"data": Path(told["data"]), "stopped": tuple(told["stopped"])})


@pytest.fixture
def copied(night: Night, guest_roots: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data of that night, for a test that goes on with it: others look at it at the same time."""
    data, heads = tmp_path / "data", tmp_path / "state" / "assay" / "heads"
    shutil.copytree(night.data, data, symlinks=True, ignore=shutil.ignore_patterns("run"))
    building.lend(guest_roots, data / "run")
    shutil.copytree(night.data.with_name("state"), tmp_path / "state")
    (heads / head_name(night.data)).rename(heads / head_name(data))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return data


def had(data: Path) -> Night:
    words = ("demo", "--seed", "0", "--json", f"{data}.json")
    process = ForkedCommand(words, small(data), alone=True)
    before = broker_at_work(process, data, other_than=0)
    psutil.Process(before).kill()
    broker_at_work(process, data, other_than=before)
    survived = survivors(kill_tree(process), data)
    stopped = stopped_at(r"step \d of", data)
    out = data.with_name("first.json")
    ran = demo(data, "--json", str(out))
    return Night(data, survived, stopped, ran.returncode, ran.stdout, ran.stderr, json.loads(out.read_text()))


def test_ctrl_c_ends_it_without_a_traceback(night: Night) -> None:
    code, output = night.stopped
    assert code == 130, output
    assert "Traceback" not in output


def test_it_goes_on_where_it_was_and_ends_with_one_screen_and_the_same_as_json(night: Night) -> None:
    found = night.found
    assert night.code == 0, night.out + night.error
    assert "continuing" in night.out
    assert f"step {SMALL.steps} of" in night.out
    assert found.keys() >= ASKED_FOR
    assert found["sealed_items"] == SMALL.sealed
    assert found["tool_calls_outside_sandbox"] == 0
    assert isinstance(found["tool_calls"], int)
    assert found["tool_calls"] > 20
    assert found["decision"] in ("hold", "reject")
    assert Path(str(found["bundle"])).is_dir()
    for text in ("sealed questions", "tool errors", "approval", "find x with 7x+3=45: solved", "model show"):
        assert text in night.out
    assert "Traceback" not in night.error


def test_a_night_that_loses_its_broker_and_then_everything_goes_on_counts_nothing_twice_and_leaves_nothing(
    night: Night,
) -> None:
    assert night.survived == []
    assert count(night.data, SMALL) == []
    assert left_on_host(night.data) == []
    with SqliteLedger(night.data / "ledger.sqlite3") as ledger:
        (cycle,) = ledger.cycles()
        assert cycle.state is CycleState.DONE
        assert sum(event.kind == "broker" for _, event in ledger.events(limit=10_000)) == 1
        for judged in ledger.rollouts(RolloutFilter(cycle=cycle.id), limit=10_000):
            assert judged.rollout.ended is not RolloutEnd.INFRA_ERROR or judged.verdict.outcome.value == "infra_error"


def test_a_second_run_says_so_and_shows_the_same(night: Night, copied: Path) -> None:
    out = copied.with_name("second.json")
    again = demo(copied, "--json", str(out))
    assert again.returncode == 0
    assert "already ran here" in again.stdout
    found = json.loads(out.read_text())
    same = ASKED_FOR - {"seconds", "bundle"}
    assert {name: found[name] for name in same} == {name: night.found[name] for name in same}
    assert Path(found["bundle"]) == copied / Path(str(night.found["bundle"])).relative_to(night.data)


def test_what_the_tutorial_has_one_type_next_is_answered(
    night: Night, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but what asks for a person's passphrase or begins a night: those have tests of their own."""
    environ, found = small(copied), {"BUNDLE": str(night.found["bundle"])}
    (mine := copied.with_name("mine.jsonl")).write_text("\n".join(LINE.findall(TUTORIAL)))
    monkeypatch.chdir(mine.parent)
    served = ForkedCommand(("serve",), environ)
    try:
        while run_forked(("status",), environ).returncode in (3, 6):
            assert served.poll() is None
            time.sleep(0.1)
        for line in COMMAND.findall(TUTORIAL):
            if line.startswith(LEFT_OUT):
                continue
            ran = run_forked(tuple(found.get(word, word) for word in shlex.split(line)), environ)
            out, error = ran.stdout.decode(), ran.stderr.decode()
            assert (ran.returncode, error if "Traceback" in error else "") == (0, ""), (line, error)
            if line.startswith("rollouts ls") and len(rows := out.splitlines()) > 1:
                found["ID"] = rows[1].split()[-1]
    finally:
        served.send_signal(signal.SIGTERM)
        served.wait(120)


def test_beginning_anew_keeps_what_was_there(copied: Path) -> None:
    before = (copied / "ledger.sqlite3").stat().st_ino
    code, output = stopped_at("this takes about", copied, "--fresh")
    assert (code, "Traceback" in output) == (130, False), output
    (old,) = copied.parent.glob("data.before-*")
    assert str(old) in output.replace("\n", "")
    assert (old / "ledger.sqlite3").stat().st_ino == before
    assert (copied / "ledger.sqlite3").exists()


def test_an_answer_cannot_draw_on_the_screen(night: Night) -> None:
    hostile = DemoReport.model_validate({**night.found, "answer": "\x1b[2J[red]6[/red]\u202e"})
    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(screen(hostile, []))
    text = console.export_text()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]6[/red]" in text


@pytest.mark.parametrize("width", [80, 100])
def test_the_line_of_a_phase_keeps_its_name_and_bar_at_any_width_and_no_time_left_when_it_ended(width: int) -> None:
    shown = io.StringIO()
    console = Console(width=width, force_terminal=True, file=shown, color_system=None)
    now = [0.0]
    said = "step 35 of 70" + " and more" * 20
    with DemoProgress(console, lambda: now[0]) as progress:
        for kind, text, figures in (
            ("phase", "training", {}),
            ("step", said, {"step": 35.0, "steps": 70.0, "success": 0.5}),
        ):
            progress.see(Event(kind=kind, text=text, figures=figures, created="2026-01-01T00:00:00+00:00"))
            now[0] += 60.0
        progress.begin("")
    lines = ESCAPES.sub("", shown.getvalue()).replace("\r", "\n").splitlines()
    assert max(map(len, lines)) <= width
    last = max(number for number, line in enumerate(lines) if "training" in line)
    assert "\u2501" * 16 in lines[last]
    assert "left" not in lines[last]
    below = " ".join(" ".join(lines[last + 1 :]).split())
    assert f"{said} \u00b7 success 0.50 \u00b7 tool errors in correct 0.000" in below


def test_the_last_screen_fits_80_columns_in_whole_words() -> None:
    words = [letter * length for length, letter in enumerate("abcdefghijklmnopqrst", start=1)]
    text = " ".join(words * 3)
    findings = tuple(
        GateFinding(gate=gate, outcome=outcome, figure=-33.3, low=-41.2, high=-21.9, threshold=10, reason=text)
        for gate in GATES
        for outcome in GateOutcome
    )
    report = DemoReport.model_validate(
        {
            **REPORT,
            "gain": 36.3,
            "tool_calls": 1_234_567,
            "families": [FamilyRow(family=word, items=1, base=0.0, before=0.0, after=1.0) for word in words],
            "findings": findings,
            "decision_reason": text,
            "would_change": text,
            "job_reason": text,
            "answer": text,
        }
    )
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(screen(report, [("assay model show 0123456789ab --data /tmp/data", text)]))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    shown = " ".join(lines).replace("\u2502", " ").split()
    assert [word for word in (*words, *GATES, "0123456789ab") if word not in shown] == []
    assert "\u2026" not in "".join(lines)


def test_how_long_the_rest_takes_follows_from_the_pace_here_also_where_it_goes_on_in_the_middle() -> None:
    def rest(pace: float, *events: Event) -> list[float | None]:
        now = [0.0]
        remaining, found = RemainingTime(lambda: now[0]), []
        for event in events:
            found.append(remaining.seconds(event))
            now[0] += pace
        return found

    def event(kind: str, text: str = "", **figures: float) -> Event:
        return Event(kind=kind, text=text, figures=figures, created="2026-01-01T00:00:00+00:00")

    quarter, half = (event("warm_start", step=step, steps=4.0) for step in (1.0, 2.0))
    slow = rest(20.0, event("phase", "prepare"), event("phase", "warm_start"), quarter, half)
    quick = rest(5.0, event("phase", "prepare"), event("phase", "warm_start"), quarter, half)
    assert slow[:2] == [None, None]
    assert slow[3] == pytest.approx(4 * (quick[3] or 0))
    prepared, warmed, trained = (SHARES[phase] for phase in ("prepare", "warm_start", "training"))
    halfway = prepared + warmed / 2
    assert slow[3] == pytest.approx((1 - halfway) * 60 / halfway)
    resumed = rest(10.0, event("note"), event("phase", "training"), event("step", step=5.0, steps=10.0))
    assert resumed == [None, None, pytest.approx((1 - prepared - warmed - trained / 2) * 10 / (trained / 2))]
    begins = event("phase", "prepare"), event("phase", "warm_start")
    steady = [event("warm_start", step=float(step), steps=40.0) for step in range(1, 41)]
    now = [0.0]
    remaining = RemainingTime(lambda: now[0])
    told = []
    for number, one in enumerate((*begins, *steady)):
        told.append(remaining.seconds(one))
        now[0] += 5.0 if number < 20 else 20.0
    assert told[41] == pytest.approx((1 - prepared - warmed) * 800 / warmed, rel=0.01), (
        "what was quicker before is forgotten"
    )
    assert (left(20), left(80), left(300)) == ("less than a minute left", "about 1 minute left", "about 5 minutes left")


def test_a_step_that_is_learned_again_says_so_and_no_success_that_nobody_measured() -> None:
    measured = {"success": 0.5, "tool_errors_in_correct": 0.125}
    step = Event(kind="step", text="step 11 of 70", figures=measured, created=utc_now())
    assert describe(step) == "step 11 of 70 · success 0.50 · tool errors in correct 0.125"
    again = step.model_copy(update={"figures": {"replayed": 1.0}})
    assert describe(again) == "step 11 of 70 · learned again from the record"
