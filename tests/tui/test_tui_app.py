"""The terminal program against the real API: what it shows, and what a person can do with it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tui_records as made
from textual.pilot import Pilot
from textual.widgets import ContentSwitcher, Input

from appliance.client.person_keys import keys_folder, make_key, unlock
from appliance.client.signing import admission
from appliance.records.cycles import CycleState
from appliance.records.jobs import JobState
from appliance.records.rollouts import Purpose, ToolStatus
from tui.app import AssayApp
from tui.dialogs import Reading, SubmitDialog, TypedConfirmation
from tui.panels import Absent, CyclePanel, Detail, PlainText, RecordTable, TopLine
from tui.table import Row, Table
from tui.tables import TABLES
from tui.text import plain
from verifiers.contract.verdict import Outcome
from verifiers.predicate.spec import PredicateSpec

if TYPE_CHECKING:
    from conftest import Appliance

SIZES = [(80, 24), (120, 40)]
Screen = Pilot[None]


def open_app(appliance: Appliance) -> AssayApp:
    return AssayApp(appliance.socket, seconds=0.05)


async def until(pilot: Screen, holds: Callable[[], bool], seconds: float = 20.0) -> None:
    for _ in range(int(seconds / 0.02)):
        if holds():
            return
        await pilot.pause(0.02)
    pytest.fail(f"it never came to hold; the screen says:\n{everything(pilot)}")


async def shown(pilot: Screen) -> None:
    """Until the daemon's first answer is on the screen."""
    await until(pilot, lambda: pilot.app.query_one(ContentSwitcher).current == "main")
    await pilot.pause()


def table(pilot: Screen, name: str) -> RecordTable:
    return pilot.app.query_one(f"#{name}", RecordTable)


def cells(pilot: Screen, name: str) -> list[str]:
    rows = table(pilot, name)
    return [" | ".join(cell.plain for cell in rows.get_row_at(index)) for index in range(rows.row_count)]


def text(pilot: Screen, kind: type[PlainText]) -> str:
    return pilot.app.query_one(kind).text.plain


def detail(pilot: Screen) -> str:
    return pilot.app.query_one(Detail).query_one(PlainText).text.plain


def everything(pilot: Screen) -> str:
    """Every text on the open screens, table cells included."""
    parts = [widget.text.plain for screen in pilot.app.screen_stack for widget in screen.query(PlainText)]
    return "\n".join(parts + [line for name in ("rollouts", "models", "jobs") for line in cells(pilot, name)])


# what is shown
@pytest.mark.parametrize("size", SIZES)
async def test_one_screen_shows_what_runs_what_was_judged_and_what_was_decided(
    appliance: Appliance, size: tuple[int, int]
) -> None:
    appliance.start()
    decision = made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=size) as pilot:
        await shown(pilot)
        assert f"candidate {decision.candidate[:8]}" in text(pilot, TopLine)
        assert f"champion {str(decision.champion)[:8]}" in text(pilot, TopLine)
        cycle = text(pilot, CyclePanel)
        assert "▸ training" in cycle
        assert "step 31 of 60" in cycle
        assert "success" in cycle
        assert "tool errors 3.0 %" in cycle
        assert "9,339 tokens/s" in cycle
        assert len(cells(pilot, "rollouts")) == 40
        assert any(line.startswith("✗ fail") for line in cells(pilot, "rollouts"))
        candidate, champion = cells(pilot, "models")
        assert candidate.startswith(f"{decision.candidate[:8]} | candidate | hold | ✓ +")
        assert "| ? 0 |" in candidate
        assert "champion" in champion
        assert cells(pilot, "jobs")[-1].startswith("5f0c21 | question | 5 | ✓ solved | find x with 7x+3=45")
        for name in ("#top", "#cycle", "#rollouts", "#models", "#jobs", "#detail"):
            region = pilot.app.query_one(name).region
            assert pilot.app.screen.region.contains_region(region), name
            assert region.height >= (1 if name == "#top" else 3), name


async def test_the_detail_follows_the_cursor_and_enter_opens_it_whole(appliance: Appliance) -> None:
    appliance.start()
    decision = made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        assert "question" in detail(pilot)
        assert "NameError: name 'gcd' is not defined" in detail(pilot)
        await pilot.press("tab")
        assert decision.candidate in detail(pilot)
        for finding in decision.findings:
            assert finding.gate in detail(pilot)
            assert finding.reason in detail(pilot)
        await pilot.press("tab", "down")
        assert "tried  5: 7*5+3 = 38, not 45" in detail(pilot)
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, Reading)
        assert "n with n*n == 2" in pilot.app.screen.query_one(PlainText).text.plain
        await pilot.press("escape")
        assert not isinstance(pilot.app.screen, Reading)


async def test_a_new_table_is_one_object_and_one_row(appliance: Appliance) -> None:
    cycles = Table(
        name="cycles",
        columns=(("cycle", 12), ("phase", 10)),
        side="left",
        empty="No cycle yet.",
        fetch=lambda client: client.cycles(limit=5),
        row=lambda cycle: Row(cycle.id, (plain(cycle.id), plain(cycle.phase))),
        detail=lambda cycle, status: plain(f"{cycle.id} began {cycle.created}"),
    )
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    app = AssayApp(appliance.socket, seconds=0.05, tables=(*TABLES, cycles))
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        await until(pilot, lambda: bool(cells(pilot, "cycles")))
        table(pilot, "cycles").focus()
        await until(pilot, lambda: "began" in detail(pilot))


async def test_new_rollouts_appear_and_the_cursor_stays_on_its_record(appliance: Appliance) -> None:
    appliance.start()
    ledger = appliance.core.ledger
    ledger.put_cycle(made.cycle())
    ledger.put_rollouts([made.judged(f"r{i}", family=f"family{i}") for i in range(6)])
    async with open_app(appliance).run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        await pilot.press("down", "down")
        assert table(pilot, "rollouts").selected == "r3"
        ledger.put_rollouts([made.judged("newest", outcome=Outcome.HACK_SUSPECTED)])
        appliance.core.events.add("note", "something happened")
        await until(pilot, lambda: len(cells(pilot, "rollouts")) == 7)
        assert cells(pilot, "rollouts")[0].startswith("! hack?")
        assert table(pilot, "rollouts").selected == "r3"
        assert "family3" in detail(pilot)


async def test_a_failed_cycle_says_why(appliance: Appliance) -> None:
    appliance.start()
    appliance.core.ledger.put_cycle(made.cycle(state=CycleState.FAILED, failure="runsc is not there\nforged line"))
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        assert "failed: runsc is not there\\nforged line" in text(pilot, CyclePanel)


async def test_an_empty_appliance_says_what_to_do_first(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        assert "assay cycle start" in text(pilot, CyclePanel)
        assert "No rollout yet" in detail(pilot)
        await pilot.press("a", "b", "tab", "tab")
        assert len(pilot.app.screen_stack) == 1
        assert "s submits one" in detail(pilot)


# hostile text
HOSTILE = "[bold red]x[/] \x1b[2J\x07\x9b31m\u202eevil\u2066\u200b\r\nlast"


async def test_text_of_models_guests_and_strangers_is_shown_and_does_nothing(appliance: Appliance) -> None:
    appliance.start()
    ledger = appliance.core.ledger
    call = made.call(HOSTILE, HOSTILE, ToolStatus.EXCEPTION, HOSTILE)
    ledger.put_rollouts([made.judged("h", answer=HOSTILE, reason=HOSTILE, family=HOSTILE, calls=(call,))])
    ledger.put_job(made.job("h", JobState.UNSOLVED, HOSTILE, reason=HOSTILE, tried=(HOSTILE,)))
    ledger.put_cycle(made.cycle(id=HOSTILE, state=CycleState.FAILED, failure=HOSTILE))
    async with open_app(appliance).run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        screens = [everything(pilot)]
        for _ in range(2):
            await pilot.press("enter")
            screens.append(everything(pilot))
            await pilot.press("escape", "tab", "tab")
        bad = {"Cc", "Cf", "Zl", "Zp"}
        assert not [c for part in screens for c in part.replace("\n", "") if unicodedata.category(c) in bad]
        assert "[bold red]x[/]" in screens[0]
        assert "\\x1b[2J\\x07\\x9b31m\\u202eevil\\u2066\\u200b\\r" in screens[1]
        assert "\x1b" not in pilot.app.export_screenshot()


# approving and rejecting the candidate
PASSPHRASE = "correct horse"


@pytest.fixture
def ada(appliance: Appliance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The appliance runs, and ada has a key that it knows."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    appliance.start()
    key = make_key(keys_folder(os.environ), "ada", PASSPHRASE)
    appliance.core.trust.change_key(admission("ada", unlock(key, PASSPHRASE)))


async def sign(pilot: Screen, digest: str, passphrase: str = PASSPHRASE) -> None:
    """Types the digits, and then the passphrase."""
    await type_and_enter(pilot, digest[:8])
    await type_and_enter(pilot, passphrase)


async def type_and_enter(pilot: Screen, typed: str) -> None:
    await pilot.press(*typed, "enter")


@pytest.mark.usefixtures("ada")
async def test_the_candidate_goes_into_service_when_its_digits_were_typed_and_a_key_opened(
    appliance: Appliance,
) -> None:
    decision = made.put_night(appliance.core.ledger, appliance.data)
    ledger = appliance.core.ledger
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("a")
        assert isinstance(pilot.app.screen, TypedConfirmation)
        assert decision.candidate in everything(pilot)
        await type_and_enter(pilot, "deadbeef")
        assert "nothing was done" in everything(pilot)
        assert ledger.approvals() == []
        pilot.app.screen.query_one("#dialog-typed", Input).value = ""
        assert decision.digest() in everything(pilot)
        await sign(pilot, decision.candidate, "wrong horse")
        await until(pilot, lambda: "does not open" in everything(pilot))
        assert ledger.approvals() == []
        assert "wrong horse" not in pilot.app.export_screenshot().replace("&#160;", " ")
        await type_and_enter(pilot, PASSPHRASE)
        await until(pilot, lambda: ledger.alias("champion") == decision.candidate)
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await until(pilot, lambda: f"champion {decision.candidate[:8]}" in text(pilot, TopLine))
        assert "candidate" not in text(pilot, TopLine)
        (approval,) = ledger.approvals()
        assert (approval.person, approval.verdict, approval.decision) == ("ada", "approve", decision.digest())

        await pilot.press("b")
        await type_and_enter(pilot, str(decision.champion)[:8])
        await until(pilot, lambda: ledger.alias("champion") == decision.champion)
        await until(pilot, lambda: f"champion {str(decision.champion)[:8]}" in text(pilot, TopLine))


@pytest.mark.usefixtures("ada")
async def test_a_rejected_candidate_is_none_any_more(appliance: Appliance) -> None:
    decision = made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("r")
        await sign(pilot, decision.candidate)
        await until(pilot, lambda: "candidate" not in text(pilot, TopLine))
    assert appliance.core.ledger.alias("champion") == decision.champion
    assert [approval.verdict for approval in appliance.core.ledger.approvals()] == ["reject"]


@pytest.mark.usefixtures("ada")
async def test_what_the_policy_refuses_is_said_with_what_would_change_it(appliance: Appliance) -> None:
    decision = made.put_candidate(appliance.core.ledger, appliance.data, better=False)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("a")
        await sign(pilot, decision.candidate)
        await until(pilot, lambda: "does not admit" in everything(pilot))
        assert isinstance(pilot.app.screen, TypedConfirmation)
        await pilot.press("escape")
    assert appliance.core.ledger.alias("champion") == decision.champion


@pytest.mark.usefixtures("ada")
async def test_a_signature_on_a_decision_that_is_not_the_newest_any_more_is_refused(appliance: Appliance) -> None:
    decision = made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("a")
        newer = decision.model_copy(update={"id": "newer", "reason": "decided anew"})
        appliance.core.ledger.put_decision(newer)
        await sign(pilot, decision.candidate)
        await until(pilot, lambda: "newer decision" in everything(pilot))
        await pilot.press("escape")
    assert appliance.core.ledger.approvals() == []


@pytest.mark.usefixtures("ada")
async def test_escape_leaves_everything_as_it_is(appliance: Appliance) -> None:
    decision = made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("a", *decision.candidate[:8], "escape")
        assert len(pilot.app.screen_stack) == 1
    assert appliance.core.ledger.alias("champion") == decision.champion
    assert appliance.core.ledger.approvals() == []


async def test_without_a_key_of_ones_own_there_is_nothing_to_sign_with(
    appliance: Appliance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("a")
        assert len(pilot.app.screen_stack) == 1
        assert any("assay key new" in notice.message for notice in pilot.app._notifications)


# jobs
async def test_a_question_with_a_check_becomes_a_job(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("s")
        assert isinstance(pilot.app.screen, SubmitDialog)
        pilot.app.screen.query_one("#question", Input).value = "find x with 7x+3=45"
        await pilot.press("enter")
        assert pilot.app.focused is pilot.app.screen.query_one("#check")
        await pilot.press("enter")
        assert "without a check" in everything(pilot)
        pilot.app.screen.query_one("#check", Input).value = "7*x+3 == 45"
        await pilot.press("enter")
        await until(pilot, lambda: len(cells(pilot, "jobs")) == 1)
        assert "queued | find x with 7x+3=45" in cells(pilot, "jobs")[0]
    (job,) = appliance.core.ledger.jobs()
    assert job.spec == PredicateSpec(predicate="7*x+3 == 45")


async def test_a_check_that_decides_nothing_is_refused_with_the_reason(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("s")
        pilot.app.screen.query_one("#question", Input).value = "anything"
        check = pilot.app.screen.query_one("#check", Input)
        check.value = "import os"
        check.focus()
        await pilot.press("enter")
        await until(pilot, lambda: bool(pilot.app.screen.query_one("#dialog-error", PlainText).text.plain))
        assert isinstance(pilot.app.screen, SubmitDialog)
        await pilot.press("escape")
    assert appliance.core.ledger.jobs() == []


# the daemon comes and goes
async def test_without_a_daemon_the_screen_says_what_to_start_and_finds_it_when_it_is_there(
    appliance: Appliance,
) -> None:
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "assay serve" in everything(pilot))
        assert str(appliance.socket) in everything(pilot)
        await pilot.press("a", "s", "b", "enter")
        assert len(pilot.app.screen_stack) == 1
        appliance.start()
        appliance.core.ledger.put_cycle(made.cycle())
        await shown(pilot)
        await until(pilot, lambda: made.CYCLE[:12] in text(pilot, CyclePanel))
        appliance.stop()
        await until(pilot, lambda: pilot.app.query_one(ContentSwitcher).current == "absent")
        appliance.start()
        await shown(pilot)
        assert pilot.app.focused is table(pilot, "rollouts")


async def test_a_socket_that_nobody_answers_is_reported_as_such(appliance: Appliance) -> None:
    appliance.socket.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(appliance.socket))
        deaf.listen()
        async with open_app(appliance).run_test(size=(80, 24)) as pilot:
            page = pilot.app.query_one(Absent)
            await until(pilot, lambda: "does not answer" in page.query_one(PlainText).text.plain)
            assert "start `assay serve` again" in everything(pilot)


async def test_help_names_every_key_and_q_quits(appliance: Appliance) -> None:
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await pilot.press("question_mark")
        for what in ("approve", "reject", "roll back", "submit a job", "quit"):
            assert what in everything(pilot)
        await pilot.press("escape", "q")
    assert pilot.app.return_code == 0


def test_without_a_terminal_it_says_so(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tui", "--socket", str(tmp_path / "s")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr


async def test_a_rollout_that_infrastructure_broke_is_no_failure_on_the_screen(appliance: Appliance) -> None:
    appliance.start()
    broken = made.judged("b", outcome=Outcome.INFRA_ERROR, answer=None, reason="a sandbox died", purpose=Purpose.JOB)
    appliance.core.ledger.put_rollouts([broken])
    async with open_app(appliance).run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        assert cells(pilot, "rollouts") == ["~ infra | divisors | 0 | - | none | job"]
        assert "a sandbox died" in detail(pilot)
