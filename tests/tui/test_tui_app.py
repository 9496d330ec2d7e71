"""The terminal program against the real API: what it shows, and what a person can do with it."""

from __future__ import annotations

import socket
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import tui_records as made
from textual.pilot import Pilot
from textual.widgets import ContentSwitcher, Footer, Input, OptionList
from tui_records import PASSPHRASE

from appliance.cli.demo.sessions import made_up_sessions
from appliance.client import ApiError, Rollback
from appliance.daemon.views.cycle_views import YOURS
from appliance.gateway.sessions import KeptSession, KeptSessions, SaidText
from appliance.records.cycles import CycleState
from appliance.records.jobs import JobState
from appliance.records.rollouts import Purpose, ToolStatus
from policies.contract.decision import GateOutcome
from tui.app import AssayApp
from tui.screens.rollouts import Conversations
from tui.theme import DARK, LIGHT
from tui.views import VIEWS
from tui.widgets.dialogs import ReadingScreen, SubmitDialog, TypedConfirmation
from tui.widgets.panels import Absent, Detail, PlainText, RecordTable, TopLine
from tui.widgets.text import plain, with_keys
from tui.widgets.view import Answers, ApiQuestion, Pane, View
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.predicate.spec import PredicateSpec

if TYPE_CHECKING:
    from conftest import Appliance

SIZES = [(80, 24), (120, 40)]
Screen = Pilot[None]


def open_app(appliance: Appliance, **given: Any) -> AssayApp:
    return AssayApp(appliance.socket, **{"seconds": 0.25, "patience_seconds": 120.0, **given})


async def until(pilot: Screen, holds: Callable[[], bool], seconds: float = 120.0) -> None:
    for _ in range(int(seconds / 0.02)):
        if holds():
            return
        await pilot.pause(0.02)
    pytest.fail(f"it never came to hold; the screen says:\n{everything(pilot)}")


def app_of(pilot: Screen) -> AssayApp:
    assert isinstance(pilot.app, AssayApp)
    return pilot.app


async def shown(pilot: Screen, key: str = "") -> None:
    """Until the daemon's first answer is on the screen, and that of the screen with this key."""
    app = app_of(pilot)
    await until(pilot, lambda: app.main.query_one("#whole", ContentSwitcher).current == "main")
    await pilot.pause()
    if key:
        await pilot.press(key)
        await until(pilot, lambda: app.current.key == key and app.pane.is_mounted and "reading …" not in of_pane(pilot))


def cells(pilot: Screen) -> list[str]:
    """Of the visible screen's table."""
    rows = app_of(pilot).pane.query_one(RecordTable)
    return [" | ".join(cell.plain for cell in row.cells) for row in rows.rows_shown]


def first_row(pilot: Screen) -> str:
    return next(iter(cells(pilot)), "").replace("  ", " ")


def of_pane(pilot: Screen) -> str:
    return "\n".join(widget.text.plain for widget in app_of(pilot).pane.query(PlainText))


def top(pilot: Screen) -> str:
    return app_of(pilot).main.query_one(TopLine).text.plain


def detail(pilot: Screen) -> str:
    return app_of(pilot).pane.query_one(Detail).query_one(PlainText).text.plain


def everything(pilot: Screen) -> str:
    """Every text on the open screens, table cells included; not the page that is shown while no daemon answers."""
    screens = pilot.app.screen_stack
    parts = [one.text.plain for screen in screens for one in screen.query(PlainText) if one.id != "absent-text"]
    rows = [row for screen in screens for table in screen.query(RecordTable) for row in table.rows_shown]
    return "\n".join(parts + [" | ".join(cell.plain for cell in row.cells) for row in rows])


def of_absence(pilot: Screen) -> str:
    """The page that is shown while no daemon answers, or nothing while it is hidden."""
    page = app_of(pilot).main.query_one(Absent)
    return page.query_one(PlainText).text.plain if page.display else ""


# what is shown
@pytest.mark.parametrize("size", SIZES)
async def test_every_screen_fits_and_says_what_the_ledger_holds(appliance: Appliance, size: tuple[int, int]) -> None:
    appliance.start()
    decision = made.put_night(appliance.core.ledger, appliance.data)
    keep_sessions(appliance)
    async with open_app(appliance).run_test(size=size) as pilot:
        await shown(pilot)
        assert f"candidate {decision.candidate[:8]}" in top(pilot)
        assert f"champion {str(decision.champion)[:8]}" in top(pilot)
        said = {
            "1": ["▸ training", "31 of 60 steps", "tool errors 3.0 %", "9,339 tokens/s", "memory", "queued"],
            "2": [made.CYCLE, "success by taskset", "where the time went", "warm start"],
            "3": ["taskset", "level 0", "divisors"],
            "4": ["✗ fail", "question", "NameError: name 'gcd' is not defined"],
            "5": ["hold", "waits: a approves", "lineage", decision.reason],
            "6": ["find x with 7x+3=45", "✓ solved", "checked by"],
            "7": ["assay jobs validate job-", "Does this check mean what was asked?"],
            "8": ["decision", "ledger ✓ as the log says"],
            "9": ["worker", "log is empty"],
            "0": ["disabled: set gateway.enabled", "✓ yes", "its verdict is fail: 1 of 2"],
        }
        said["1"] += [
            "better: +",
            "48.6 % → 81.8 %",
            "a approves, r rejects",
            "wrong",
            "job-c04b11 queued: the largest",
        ]
        for view in VIEWS:
            await shown(pilot, view.key)
            for words in said[view.key]:
                await until(pilot, lambda words=words: words in everything(pilot))
            app = app_of(pilot)
            for widget in (app.pane, app.main.query_one("#top"), app.main.query_one("#views"), app.query_one(Footer)):
                assert app.screen.region.contains_region(widget.region), (view.name, widget)
            line = app.main.query_one("#views", PlainText).text.plain
            assert len(line) <= size[0]
            assert all(view.brief in line or view.title in line for view in VIEWS)


@pytest.mark.parametrize("size", SIZES)
async def test_what_the_candidate_waits_for_stands_on_now_and_beside_its_decision(
    appliance: Appliance, size: tuple[int, int]
) -> None:
    appliance.start()
    ledger = appliance.core.ledger
    decision = made.put_night(ledger, appliance.data)
    asked = with_keys(YOURS)
    assert "a approves" in asked
    assert "`" not in asked
    another = "decided under another policy: `assay model evaluate candidate` compares it again"
    long = f"held: {HOSTILE} {'and more ' * 60}"
    async with open_app(appliance).run_test(size=size) as pilot:

        def waits() -> PlainText:
            return app_of(pilot).main.query_one("#now-waits", PlainText)

        def in_one_line(text: str) -> str:
            return " ".join(text.split())

        await shown(pilot)
        await until(pilot, lambda: f"candidate {decision.candidate[:8]} {asked}" in in_one_line(waits().text.plain))
        await until(pilot, lambda: "7: 2 checks wait for your validation" in waits().text.plain)
        await shown(pilot, "5")
        await until(pilot, lambda: f"now  {asked}" in detail(pilot))
        assert f"{decision.candidate[:8]} {asked}" in of_pane(pilot)
        ledger.put_decision(decision.model_copy(update={"id": "another", "policy": "0" * 64}))
        appliance.core.events.add("governance", "decided once more")
        await until(pilot, lambda: f"now  {another}" in detail(pilot))
        assert asked not in of_pane(pilot)
        passed = tuple(one.model_copy(update={"outcome": GateOutcome.PASSED}) for one in decision.findings)
        ledger.put_decision(decision.model_copy(update={"id": "long", "reason": long[6:], "findings": passed}))
        appliance.core.events.add("governance", "decided once more")
        await until(pilot, lambda: f"now  {plain(long).plain}" in detail(pilot))
        line = app_of(pilot).pane.query_one(".pane-line", PlainText)
        assert line.text.cell_len <= size[0] - 2
        assert line.text.plain.endswith("…")
        await pilot.press("slash", *"hold", "enter")
        await until(pilot, lambda: line.text.plain.endswith("…  / hold"))
        await shown(pilot, "1")
        await until(pilot, lambda: waits().text.plain.split("\n")[0].endswith("…"))
        await until(pilot, lambda: waits().region.height == 2)
        assert pilot.app.screen.region.contains_region(waits().region)
        assert "\x1b" not in waits().text.plain
        ledger.set_aliases({"candidate": None}, "rejected", made.at(0))
        await until(pilot, lambda: "candidate" not in waits().text.plain)


async def test_a_screen_that_nobody_sees_asks_nothing(appliance: Appliance) -> None:
    asked: list[str] = []

    class Counting(Pane):
        def questions(self) -> Mapping[str, ApiQuestion]:
            return {"cycles": ApiQuestion(self.id, lambda client, _: asked.append(self.id or ""), live=True)}

    toys = [View(name, key, name, name, "a toy", Counting) for name, key in (("one", "1"), ("two", "2"))]
    appliance.start()
    async with open_app(appliance, views=toys).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await until(pilot, lambda: len(asked) > 2)
        assert set(asked) == {"view-one"}
        await pilot.press("2")
        await until(pilot, lambda: asked[-1] == "view-two")
        before = asked.count("view-one")
        await until(pilot, lambda: asked.count("view-two") > 3)
        assert asked.count("view-one") <= before + 1


async def test_a_round_in_which_nothing_changed_draws_nothing_anew(
    appliance: Appliance, monkeypatch: pytest.MonkeyPatch
) -> None:
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    keep_sessions(appliance)
    drawn: list[str] = []
    rounds: list[str] = []

    def counting(shape: type, name: str, into: list[str]) -> None:
        real = getattr(shape, name)

        def counted(one: object, *given: object, **more: object) -> object:
            into.append(str(one))
            return real(one, *given, **more)

        monkeypatch.setattr(shape, name, counted)

    counting(PlainText, "update", drawn)
    counting(RecordTable, "add_row", drawn)
    counting(AssayApp, "_show_reading", rounds)
    async with open_app(appliance).run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        for key in "2345678":
            await shown(pilot, key)
            seen = len(rounds)
            await until(pilot, lambda seen=seen: len(rounds) > seen + 2)
            del drawn[:]
            seen = len(rounds)
            await until(pilot, lambda seen=seen: len(rounds) > seen + 2)
            assert drawn == [], key


class CyclesPane(Pane):
    """A toy: the second tenant of the seam."""

    FILTER = "part of its name"

    def compose(self):
        yield PlainText(id="cycles-text")

    def questions(self) -> Mapping[str, ApiQuestion]:
        return {"cycles": ApiQuestion("cycles", lambda client, _: client.cycles(limit=5))}

    def show(self, status: object, answers: Answers) -> None:
        found = [one.id for one in answers.get("cycles", ()) if self.filtered_by in one.id]
        self.query_one(PlainText).show(plain(f"{len(found)} cycles: {', '.join(found)}"))


async def test_a_new_screen_is_one_module_and_one_row(appliance: Appliance) -> None:
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    row = View("cycles", "z", "Cycles", "Cycles", "every cycle", CyclesPane)
    async with open_app(appliance, views=(*VIEWS, row)).run_test(size=(120, 40)) as pilot:
        await shown(pilot, "z")
        await until(pilot, lambda: f"1 cycles: {made.CYCLE}" in everything(pilot))
        await pilot.press("slash", *"nothing", "enter")
        await until(pilot, lambda: "0 cycles: " in everything(pilot))
        await pilot.press("colon", *"cycles", "enter", "question_mark")
        await until(pilot, lambda: "every cycle" in everything(pilot))


async def test_the_detail_follows_the_cursor_and_enter_opens_it_whole(appliance: Appliance) -> None:
    appliance.start()
    decision = made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "5")
        await until(pilot, lambda: decision.candidate in detail(pilot))
        for finding in decision.findings:
            assert finding.gate in detail(pilot)
            assert finding.reason.removeprefix(f"{finding.gate.partition('/')[2]}: ") in detail(pilot)
        await pilot.press("down")
        await until(pilot, lambda: str(decision.champion) in detail(pilot))
        await shown(pilot, "6")
        await pilot.press("down")
        await until(pilot, lambda: "tried  5: 7*5+3 = 38, not 45" in detail(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReadingScreen))
        await until(pilot, lambda: "n with n*n == 2" in pilot.app.screen.query_one(PlainText).text.plain)
        await pilot.press("escape")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)


@pytest.mark.parametrize("columns", [80, 99, 110, 160])
async def test_a_row_that_has_no_room_ends_with_a_sign(appliance: Appliance, columns: int) -> None:
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(columns, 24)) as pilot:
        await shown(pilot, "8")
        table = app_of(pilot).pane.query_one(RecordTable)
        await until(pilot, lambda: 0 < table.virtual_size.width <= table.size.width)
        drawn = "".join(segment.text for segment in table.render_line(4))
        said = table.rows_shown[3].cells[-1].plain
        assert (said in drawn) != drawn.rstrip().endswith("…")


async def test_an_evaluation_is_shown_item_by_item_beside_the_champion(appliance: Appliance) -> None:
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(120, 40)) as pilot:
        await shown(pilot, "5")
        await pilot.press("e")
        await until(pilot, lambda: "512 items" in everything(pilot))
        table = pilot.app.screen.query_one(RecordTable)
        assert len(table.rows_shown) == 512
        await pilot.press("g")
        gained = [row.cells[0].plain for row in table.rows_shown]
        assert gained
        assert set(gained) == {"+ gained"}
        await pilot.press("l")
        await until(pilot, lambda: table.rows_shown == ())
        await pilot.press("escape")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)


async def test_rollouts_are_filtered_by_the_daemon_and_two_stand_side_by_side(appliance: Appliance) -> None:
    appliance.start()
    ledger = appliance.core.ledger
    ledger.put_rollouts([made.judged(f"r{i}", family=f"family{i % 3}") for i in range(6)])
    ledger.put_rollouts([made.judged("wrong", family="family1", outcome=Outcome.FAIL)])
    async with open_app(appliance).run_test(size=(120, 40)) as pilot:
        await shown(pilot, "4")
        await until(pilot, lambda: len(cells(pilot)) == 7)
        await pilot.press("slash", *"family=family1 fail", "enter")
        await until(pilot, lambda: len(cells(pilot)) == 1)
        assert "/ family=family1 fail" in of_pane(pilot)
        await pilot.press("slash")
        line = pilot.app.query_one("#command-typed", Input)
        line.value = "colour=red"
        await pilot.press("enter")
        await until(pilot, lambda: any("invalid filter" in notice.message for notice in pilot.app._notifications))
        await until(pilot, lambda: len(cells(pilot)) == 1)
        await pilot.press("slash")
        line.value = ""
        await pilot.press("enter")
        await until(pilot, lambda: len(cells(pilot)) == 7)
        await pilot.press("v")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await pilot.press("m", "down", "v")
        await until(pilot, lambda: isinstance(pilot.app.screen, Conversations))
        await until(pilot, lambda: "rollout  wrong" in everything(pilot) and "rollout  r5" in everything(pilot))
        assert "the model" in everything(pilot)  # it is not on record, so there are no words
        await pilot.press("escape")


async def test_pages_go_back_to_the_oldest_rollout(appliance: Appliance) -> None:
    appliance.start()
    appliance.core.ledger.put_rollouts([made.judged(f"r{i:03}", family=f"f{i}") for i in range(230)])
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "4")
        await until(pilot, lambda: len(cells(pilot)) == 100)
        await pilot.press("n")
        await until(pilot, lambda: "| f129 |" in first_row(pilot) and "page 2" in of_pane(pilot))
        await pilot.press("n")
        await until(pilot, lambda: len(cells(pilot)) == 30)
        await pilot.press("n")
        await until(pilot, lambda: "page 3" in of_pane(pilot))
        await pilot.press("p", "p", "p")
        await until(pilot, lambda: "f229" in first_row(pilot))


async def test_new_rollouts_appear_and_the_cursor_stays_on_its_record(appliance: Appliance) -> None:
    appliance.start()
    ledger = appliance.core.ledger
    ledger.put_cycle(made.cycle())
    ledger.put_rollouts([made.judged(f"r{i}", family=f"family{i}") for i in range(6)])
    async with open_app(appliance).run_test(size=(120, 40)) as pilot:
        await shown(pilot, "4")
        await pilot.press("down", "down")
        rows = app_of(pilot).pane.query_one(RecordTable)
        assert rows.selected == "r3"
        ledger.put_rollouts([made.judged("newest", outcome=Outcome.HACK_SUSPECTED)])
        appliance.core.events.add("note", "something happened")
        await until(pilot, lambda: len(cells(pilot)) == 7)
        assert cells(pilot)[0].startswith("! hack?")
        assert rows.selected == "r3"
        assert "family3" in detail(pilot)


async def test_an_event_takes_one_line_of_a_short_screen(appliance: Appliance) -> None:
    appliance.start()
    for _ in range(9):
        appliance.core.events.add("governance", "and more " * 30)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        events = app_of(pilot).main.query_one("#now-events", Detail)
        await until(pilot, lambda: events.query_one(PlainText).region.height == 9)


async def test_a_failed_cycle_says_why(appliance: Appliance) -> None:
    appliance.start()
    appliance.core.ledger.put_cycle(made.cycle(state=CycleState.FAILED, failure="runsc is not there\nforged line"))
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        assert "failed: runsc is not there\\nforged line" in of_pane(pilot)


async def test_an_empty_appliance_says_what_to_do_first(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        assert "assay cycle start" in of_pane(pilot)
        said = {
            "2": "No night yet",
            "3": "No rollout",
            "4": "No rollout yet",
            "5": "No model yet",
            "6": "s submits one",
            "0": "assay gateway token new NAME --consent",
        }
        for key, words in said.items():
            await shown(pilot, key)
            await until(pilot, lambda words=words: words in everything(pilot))
        await pilot.press("a", "b")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)


# keys
async def test_a_command_is_completed_and_a_wrong_one_is_said(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        app = app_of(pilot)
        await pilot.press("colon", *"check")
        await until(pilot, lambda: app.query_one("#command-typed", Input)._suggestion == "checkpoints")
        await pilot.press("tab", "enter")
        await until(pilot, lambda: app.current.name == "checkpoints" and app.pane.is_mounted)
        await pilot.press("colon", *"fly", "enter")
        await until(pilot, lambda: any("Unknown command 'fly'" in notice.message for notice in app._notifications))
        await pilot.press("colon", *"4", "escape", "4")
        await until(pilot, lambda: app.current.name == "rollouts")
        await pilot.press("colon", *"rollouts fail", "enter")
        await until(pilot, lambda: "/ fail" in of_pane(pilot))


async def test_tab_completes_to_where_the_names_part_and_nothing_that_acts_is_chosen(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        app = app_of(pilot)
        await pilot.press("colon", *"ro", "tab")
        await until(pilot, lambda: app.query_one("#command-typed", Input).value == "roll")
        said = "'roll' may be rollouts, rollback."
        await until(pilot, lambda: any(notice.message == said for notice in app._notifications))
        await pilot.press("enter")
        await pilot.pause()
        assert app.screen is app.main
        await pilot.press("colon", *"rollo", "tab", "enter")
        await until(pilot, lambda: app.current.name == "rollouts")


async def test_the_palette_has_the_screens_before_what_acts(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: bool(pilot.app.screen.query(OptionList)))
        listed = pilot.app.screen.query_one(OptionList)
        await until(pilot, lambda: listed.option_count == len(app_of(pilot).commands()))
        names = [str(option.prompt).split("\n")[0] for option in listed.options]
        assert names[: len(VIEWS)] == [view.name for view in VIEWS]
        assert names[-4:] == ["approve", "reject", "rollback", "submit"]


async def test_ctrl_c_says_how_to_quit_and_that_the_daemon_goes_on(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("ctrl+c")
        await until(
            pilot,
            lambda: (
                [notice.message for notice in app_of(pilot)._notifications] == ["q quits; the daemon keeps running"]
            ),
        )


async def test_the_palette_finds_a_screen(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("ctrl+p", *"valid")
        await until(pilot, lambda: "CommandPalette" in type(pilot.app.screen).__name__)
        listed = pilot.app.screen.query_one(OptionList)
        await until(pilot, lambda: [str(one.prompt).split("\n")[0] for one in listed.options][:1] == ["validation"])
        await pilot.press("enter")
        await until(pilot, lambda: app_of(pilot).current.name == "validation")


async def test_a_click_opens_a_screen(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        line = app_of(pilot).main.query_one("#views", PlainText)
        await pilot.click("#views", offset=(line.text.plain.index("Jobs"), 0))
        await until(pilot, lambda: app_of(pilot).current.name == "jobs")


async def test_light_and_dark_say_the_same(appliance: Appliance) -> None:
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance, light=True).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "4")
        assert pilot.app.theme == LIGHT.name
        await until(pilot, lambda: "is not on record" in detail(pilot))
        before = everything(pilot)
        light = pilot.app.export_screenshot()
        await pilot.press("T")
        await pilot.pause()
        assert pilot.app.theme == DARK.name
        assert everything(pilot) == before
        assert str(LIGHT.success).lower() in light.lower()
        assert str(DARK.success).lower() in pilot.app.export_screenshot().lower()


async def test_read_only_nothing_can_be_asked_for_that_changes_anything(appliance: Appliance) -> None:
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance, read_only=True).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "6")
        await pilot.press("a", "r", "b", "s", "x")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await until(pilot, lambda: "read-only" in top(pilot)[:20])  # in sight on 80 columns, whatever stands behind it
        await until(pilot, lambda: not {"approve", "submit"} & {one.name for one in app_of(pilot).commands()})
        with pytest.raises(ApiError, match="read-only"):
            app_of(pilot).client().rollback(Rollback(person="ada"))


# hostile text
HOSTILE = "[bold red]x[/] \x1b[2J\x07\x9b31m\u202eevil\u2066\u200b\r\nlast"


async def test_text_of_models_guests_and_strangers_is_shown_and_does_nothing(appliance: Appliance) -> None:
    appliance.start()
    ledger = appliance.core.ledger
    call = made.call(HOSTILE, HOSTILE, ToolStatus.EXCEPTION, HOSTILE)
    ledger.put_rollouts([made.judged("h", answer=HOSTILE, reason=HOSTILE, family=HOSTILE, calls=(call,))])
    ledger.put_job(made.job("h", JobState.UNSOLVED, HOSTILE, reason=HOSTILE, tried=(HOSTILE,)))
    ledger.put_cycle(made.cycle(id=HOSTILE, state=CycleState.FAILED, failure=HOSTILE))
    (kept, *_) = made_up_sessions(made.NOW, "0" * 64)
    told = Verdict(outcome=Outcome.FAIL, score=0.0, reason=HOSTILE, verifier="v", version="1", seconds=0.0)
    said = (SaidText(role=HOSTILE, text=HOSTILE), SaidText(role="user", text=HOSTILE))
    KeptSessions(appliance.data).put(
        kept.model_copy(update={"said": said, "tools": (HOSTILE,), "verdict": told, "token": HOSTILE}), new=True
    )
    escaped = "\\x1b[2J\\x07\\x9b31m\\u202eevil\\u2066\\u200b\\r"
    async with open_app(appliance).run_test(size=(120, 40)) as pilot:
        screens = []
        for key in "4678210":
            await shown(pilot, key)
            if key == "0":
                await until(pilot, lambda: "reason  " in detail(pilot))
            screens.append(everything(pilot))
            await pilot.press("enter")
            await pilot.pause(0.1)
            if key == "4":
                await until(pilot, lambda: escaped in everything(pilot))
            screens.append(everything(pilot))
            await pilot.press("escape")
        bad = {"Cc", "Cf", "Zl", "Zp"}
        assert not [c for part in screens for c in part.replace("\n", "") if unicodedata.category(c) in bad]
        assert "[bold red]x[/]" in screens[0]
        assert escaped in screens[1]
        assert "\x1b" not in pilot.app.export_screenshot()


# approving and rejecting the candidate


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
        await until(pilot, lambda: isinstance(pilot.app.screen, TypedConfirmation))
        await until(pilot, lambda: decision.candidate in everything(pilot))
        await type_and_enter(pilot, "deadbeef")
        assert "nothing was done" in everything(pilot)
        assert ledger.approvals() == []
        await pilot.press("enter")
        await until(pilot, lambda: decision.digest() in everything(pilot))
        await sign(pilot, decision.candidate, "wrong horse")
        await until(pilot, lambda: "does not open" in everything(pilot))
        assert ledger.approvals() == []
        assert "wrong horse" not in pilot.app.export_screenshot().replace("&#160;", " ")
        await type_and_enter(pilot, PASSPHRASE)
        await until(pilot, lambda: ledger.alias("champion") == decision.candidate)
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await until(pilot, lambda: f"champion {decision.candidate[:8]}" in top(pilot))
        assert "candidate" not in top(pilot)
        (approval,) = ledger.approvals()
        assert (approval.person, approval.verdict, approval.decision) == ("ada", "approve", decision.digest())

        await pilot.press("b")
        await until(pilot, lambda: f"Type {decision.candidate[:8]} to take it out of service" in everything(pilot))
        assert f"{decision.candidate[:12]} goes out of service, and {str(decision.champion)[:12]} comes back." in (
            everything(pilot)
        )
        await type_and_enter(pilot, str(decision.champion)[:8])
        assert "nothing was done" in everything(pilot)
        await type_and_enter(pilot, decision.candidate[:8])
        await until(pilot, lambda: ledger.alias("champion") == decision.champion)
        await until(pilot, lambda: f"champion {str(decision.champion)[:8]}" in top(pilot))


@pytest.mark.usefixtures("ada")
async def test_a_rejected_candidate_is_none_any_more(appliance: Appliance) -> None:
    decision = made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("r")
        await sign(pilot, decision.candidate)
        await until(pilot, lambda: "candidate" not in top(pilot))
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
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
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
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await until(pilot, lambda: any("assay key new" in notice.message for notice in pilot.app._notifications))


# jobs
async def test_a_question_with_a_check_becomes_a_job(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "6")
        await pilot.press("s")
        await until(pilot, lambda: isinstance(pilot.app.screen, SubmitDialog))
        pilot.app.screen.query_one("#question", Input).value = "find x with 7x+3=45"
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.focused is pilot.app.screen.query_one("#check"))
        await pilot.press("enter")
        await until(pilot, lambda: "without a check" in everything(pilot))
        pilot.app.screen.query_one("#check", Input).value = "7*x+3 == 45"
        await pilot.press("enter")
        await until(pilot, lambda: len(cells(pilot)) == 1)
        assert "queued | find x with 7x+3=45" in cells(pilot)[0]
    (job,) = appliance.core.ledger.jobs()
    assert job.spec == PredicateSpec(predicate="7*x+3 == 45")


async def test_a_check_that_decides_nothing_is_refused_with_the_reason(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "6")
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


# what is kept of the owner's own agent
def keep_sessions(appliance: Appliance) -> tuple[KeptSession, ...]:
    """Newest first."""
    sessions = made_up_sessions(made.NOW, "7" * 64)
    for one in sessions:
        KeptSessions(appliance.data).put(one, new=True)
    return sessions[::-1]


async def test_a_kept_session_is_read_and_deleted_when_its_name_was_typed(appliance: Appliance) -> None:
    appliance.start()
    redacted, conversation, passed, unasked, failed = keep_sessions(appliance)
    files = KeptSessions(appliance.data)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "0")
        await until(pilot, lambda: len(cells(pilot)) == 5)
        assert [row.rpartition(" | ")[2][:17] for row in cells(pilot)] == [
            "it matches rule 2",
            "a task is one que",
            "✓ yes",
            "it has no verdict",
            "its verdict is fa",
        ]
        assert "no word, token or check is kept" in detail(pilot)
        await pilot.press("down", "down")
        await until(pilot, lambda: "│ How many hours are in 7 halves of 4 hours?" in detail(pilot))
        await pilot.press("x")
        await until(pilot, lambda: isinstance(pilot.app.screen, TypedConfirmation))
        await until(pilot, lambda: "deleted permanently" in everything(pilot))
        await type_and_enter(pilot, "deadbeef")
        assert "nothing was done" in everything(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: len(files.names()) == 5)
        await pilot.press("x")
        await type_and_enter(pilot, passed.id.removeprefix("gs-")[:8])
        await until(pilot, lambda: len(cells(pilot)) == 4)
    assert set(files.names()) == {one.id for one in (redacted, conversation, unasked, failed)}


async def test_read_only_no_session_is_deleted(appliance: Appliance) -> None:
    appliance.start()
    (newest, *_) = keep_sessions(appliance)
    async with open_app(appliance, read_only=True).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "0")
        await until(pilot, lambda: len(cells(pilot)) == 5)
        await pilot.press("x")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        with pytest.raises(ApiError, match="read-only"):
            app_of(pilot).client().delete_session(newest.id)
    assert len(KeptSessions(appliance.data).names()) == 5


# the daemon comes and goes
async def test_without_a_daemon_the_screen_says_what_to_start_and_finds_it_when_it_is_there(
    appliance: Appliance,
) -> None:
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "assay serve" in of_absence(pilot))
        assert str(appliance.socket) in of_absence(pilot)
        await pilot.press("a", "s", "b", "enter")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        appliance.start()
        appliance.core.ledger.put_cycle(made.cycle())
        await shown(pilot)
        await until(pilot, lambda: made.CYCLE[:12] in of_pane(pilot))
        appliance.stop()
        await until(pilot, lambda: app_of(pilot).main.query_one("#whole", ContentSwitcher).current == "absent")
        appliance.start()
        await shown(pilot)
        assert pilot.app.focused is not None


async def test_what_one_daemon_said_is_forgotten_where_another_one_answers(
    appliance: Appliance, tmp_path: Path
) -> None:
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    ledger = appliance.core.ledger
    other = type(appliance)(tmp_path / "other")
    other.socket = appliance.socket
    async with open_app(appliance).run_test(size=(120, 40)) as pilot:
        await shown(pilot, "4")
        first = ledger.rollouts(limit=1)[0].rollout.id
        await until(pilot, lambda: first in detail(pilot) and "model" in detail(pilot))
        appliance.stop()
        await until(pilot, lambda: "The daemon is not running." in of_absence(pilot))
        other.start()
        try:
            other.core.ledger.put_rollouts([made.judged(first, answer="of the other one")])
            await until(pilot, lambda: "of the other one" in detail(pilot))
        finally:
            other.stop()


async def test_a_socket_that_nobody_answers_is_reported_as_such(appliance: Appliance) -> None:
    appliance.socket.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(appliance.socket))
        deaf.listen()
        async with open_app(appliance, patience_seconds=0.2).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "has not answered yet" in of_absence(pilot))
            assert "start `assay serve` again" in of_absence(pilot)


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


def test_a_screen_that_there_is_not_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    for more in ([], ["--web"]):
        command = [sys.executable, "-m", "tui", "--socket", str(tmp_path / "s"), "--screen", "roloutts", *more]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "unknown screen 'roloutts'; use one of now, learning, curriculum, rollouts" in done.stderr


async def test_a_rollout_that_infrastructure_broke_is_no_failure_on_the_screen(appliance: Appliance) -> None:
    appliance.start()
    broken = made.judged("b", outcome=Outcome.INFRA_ERROR, answer=None, reason="a sandbox died", purpose=Purpose.JOB)
    appliance.core.ledger.put_rollouts([broken])
    async with open_app(appliance).run_test(size=(120, 40)) as pilot:
        await shown(pilot, "4")
        assert cells(pilot) == ["~ infra | divisors | 0 | - | none | job"]
        assert "a sandbox died" in detail(pilot)


async def test_a_night_on_the_map_is_one_in_which_something_was_trained_on(appliance: Appliance) -> None:
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    cancelled = made.cycle().model_copy(update={"id": "night-20260101t000000-0000", "state": CycleState.CANCELLED})
    appliance.core.ledger.put_cycle(cancelled)
    async with open_app(appliance).run_test(size=(120, 40)) as pilot:
        await shown(pilot, "3")
        await until(pilot, lambda: "1 night " in everything(pilot) and "counting …" not in everything(pilot))
