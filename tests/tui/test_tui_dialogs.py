"""Dialogs on a small screen and on a large one: what is said is in sight, a passphrase never is, and each key that is
shown does something."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest
import tui_records as made
from rich.text import Text
from test_tui_app import Screen, app_of, cells, everything, keep_sessions, open_app, shown, type_and_enter, until
from textual import events
from textual.widget import Widget
from textual.widgets import Footer, Input
from textual.widgets._footer import FooterKey
from textual_plotext import PlotextPlot
from tui_records import PASSPHRASE

from appliance.client import ApiError
from appliance.records.jobs import JobState
from tui.screens.models import EvaluationScreen
from tui.widgets.dialogs import NameInput, ReadingScreen, SubmitDialog, TypedConfirmation
from tui.widgets.panels import PlainText
from tui.widgets.text import plain
from tui.widgets.view import ApiQuestion, Pane, View

if TYPE_CHECKING:
    from conftest import Appliance

SIZES = [(80, 24), (140, 40)]
LATE = "be a secret"
"""A passphrase that is typed where digits stand. It begins with hexadecimal digits."""


def drawn(pilot: Screen) -> list[str]:
    """The lines of the visible screen as they stand there."""
    return [strip.text for strip in pilot.app.screen._compositor.render_strips()]


def picture(pilot: Screen) -> str:
    return " ".join(" ".join(drawn(pilot)).replace("│", " ").split())


def drawn_in(pilot: Screen, widget: Widget) -> str:
    """What stands in a widget of one line."""
    place = widget.content_region
    return drawn(pilot)[place.y][place.x : place.right].strip()


def part(pilot: Screen, name: str) -> Widget:
    return pilot.app.screen.query_one(name)


def typed(pilot: Screen) -> NameInput:
    return pilot.app.screen.query_one("#dialog-typed", NameInput)


async def complaint(pilot: Screen, words: str) -> None:
    """Until it is said, and with all parts of the dialog in sight."""
    said = pilot.app.screen.query_one("#dialog-error", PlainText)
    await until(pilot, lambda: words in said.text.plain)
    await pilot.pause()
    dialog = part(pilot, "#dialog")
    last = pilot.app.screen.query_one(Footer).region.y
    for widget in dialog.children:
        if widget.display:
            assert dialog.content_region.contains_region(widget.region), widget
            assert widget.region.bottom <= last, widget
    assert words in picture(pilot)


@pytest.mark.usefixtures("ada")
@pytest.mark.parametrize("key", ["a", "r"])
@pytest.mark.parametrize("size", SIZES)
async def test_what_is_wrong_with_a_signature_is_in_sight(
    appliance: Appliance, size: tuple[int, int], key: str
) -> None:
    decision = made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=size) as pilot:
        await shown(pilot, "5")
        await pilot.press(key)
        await type_and_enter(pilot, "deadbeef")
        await complaint(pilot, f"Wrong digits, expected {decision.candidate[:8]}: nothing was done.")
        await pilot.press("enter")
        await type_and_enter(pilot, decision.candidate[:8])
        await type_and_enter(pilot, "wrong horse")
        await complaint(pilot, "does not open")
        assert part(pilot, "#dialog-body").region.height >= 5
    assert appliance.core.ledger.approvals() == []


@pytest.mark.usefixtures("ada")
@pytest.mark.parametrize("size", SIZES)
async def test_a_passphrase_that_is_typed_behind_wrong_digits_is_never_on_the_screen(
    appliance: Appliance, size: tuple[int, int]
) -> None:
    decision = made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=size) as pilot:
        await shown(pilot, "5")
        await pilot.press("a")
        await type_and_enter(pilot, "deadbeef")
        for one in LATE.replace(" ", "_"):
            await pilot.press("space" if one == "_" else one)
        secret = pilot.app.screen.query_one("#dialog-secret", Input)
        assert secret.value == LATE
        assert typed(pilot).value == "deadbeef"
        assert drawn_in(pilot, typed(pilot)) == "•" * 8
        assert drawn_in(pilot, secret) == "•" * len(LATE)
        await pilot.press("enter")
        await complaint(pilot, "nothing was done")
        assert (secret.value, typed(pilot).value) == ("", "")
        assert pilot.app.focused is typed(pilot)
        await pilot.press(*"xbeacf")  # a passphrase where digits stand: the x belongs to no digits
        await until(pilot, lambda: typed(pilot).value == "beacf")
        await until(pilot, lambda: drawn_in(pilot, typed(pilot)) == "•" * 5)
        await pilot.press(*["backspace"] * 5)
        await type_and_enter(pilot, decision.candidate[:8].upper())
        assert drawn_in(pilot, typed(pilot)) == decision.candidate[:8].upper()
        await type_and_enter(pilot, PASSPHRASE)
        await until(pilot, lambda: appliance.core.ledger.alias("champion") == decision.candidate)


async def test_a_line_for_digits_takes_as_many_as_are_asked_for_and_a_pasted_name(appliance: Appliance) -> None:
    done: list[str] = []
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        asked = TypedConfirmation(
            "Delete", "gs-be307d69aa51", plain("it"), lambda _: done.append("it") or "gone", to="delete it", kind="gs-"
        )
        app_of(pilot).put(asked)
        await until(pilot, lambda: pilot.app.screen is asked)
        await pilot.press(*"gs-be307d6900")
        await until(pilot, lambda: typed(pilot).value == "be307d69")
        await until(pilot, lambda: typed(pilot).password)  # more was typed than digits: it may be something else
        typed(pilot).value = ""
        await pilot.press(*"be30")
        await until(pilot, lambda: not typed(pilot).password)
        pilot.app.post_message(events.Paste("gs-be307d69aa51\n"))
        await until(pilot, lambda: typed(pilot).value == "be307d69")
        await pilot.press("enter")
        await until(pilot, lambda: done == ["it"])


@pytest.mark.parametrize("size", SIZES)
async def test_what_was_typed_wrongly_for_a_job_or_a_session_is_said_in_sight(
    appliance: Appliance, size: tuple[int, int]
) -> None:
    appliance.start()
    appliance.core.ledger.put_job(made.job("aa11bb22cc33", JobState.QUEUED, "find all " + "long " * 400))
    newest, *_ = keep_sessions(appliance)
    async with open_app(appliance).run_test(size=size) as pilot:
        for key, asked in (("6", "aa11bb22"), ("0", newest.id.removeprefix("gs-")[:8])):
            await shown(pilot, key)
            await until(pilot, lambda: bool(cells(pilot)))
            assert cells(pilot)[0].partition(" | ")[0] == asked  # what the table shows is what is typed
            await pilot.press("x")
            await until(pilot, lambda asked=asked: f"Type {asked} to" in everything(pilot))
            await type_and_enter(pilot, "deadbeef")
            await complaint(pilot, f"Wrong digits, expected {asked}: nothing was done.")
            await pilot.press("escape")


async def test_a_job_without_a_check_is_refused_in_sight(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "6")
        await pilot.press("s")
        await pilot.press(*"find", "enter", "enter")
        await complaint(pilot, "cannot be answered with evidence")


async def test_each_made_up_session_has_a_name_of_its_own_in_the_table(appliance: Appliance) -> None:
    appliance.start()
    kept = keep_sessions(appliance)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "0")
        await until(pilot, lambda: len(cells(pilot)) == len(kept))
        assert len({row.partition(" | ")[0] for row in cells(pilot)}) == len(kept)


# keys
def keys(pilot: Screen) -> set[str]:
    """What the last line of the visible screen says."""
    return {one.description for one in pilot.app.screen.query(FooterKey)}


@pytest.mark.parametrize("size", SIZES)
async def test_a_question_mark_leaves_the_policy_open_and_its_last_line_has_its_own_keys(
    appliance: Appliance, size: tuple[int, int]
) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=size) as pilot:
        await shown(pilot, "8")
        await until(pilot, lambda: "rules" in app_of(pilot).pane._answers)
        assert "policy file" in drawn(pilot)[-1]
        await pilot.press("f")
        await until(pilot, lambda: keys(pilot) == {"back"})
        await pilot.press("question_mark", "3", "f", "n")
        reading = pilot.app.screen
        assert isinstance(reading, ReadingScreen)
        assert reading._heading == "policy in force"
        assert drawn(pilot)[-1].split() == ["esc", "back"]
        await pilot.press("escape")
        await until(pilot, lambda: app_of(pilot).current.name == "policy")
        await until(pilot, lambda: "policy file" in drawn(pilot)[-1])


@pytest.mark.usefixtures("ada")
async def test_keys_of_a_dialog_are_there_where_they_do_something(appliance: Appliance) -> None:
    made.put_night(appliance.core.ledger, appliance.data)
    appliance.core.ledger.put_job(made.job("aa11bb22cc33", JobState.QUEUED))
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "5")
        await pilot.press("a")
        await until(pilot, lambda: keys(pilot) == {"leave", "read on"})
        body = part(pilot, "#dialog-body")
        await pilot.press("down")
        await until(pilot, lambda: body.scroll_y > 0)
        await pilot.press("up", "escape", "e")
        await until(pilot, lambda: isinstance(pilot.app.screen, EvaluationScreen))
        await until(pilot, lambda: keys(pilot) == {"back", "gained", "lost", "all", "table, gates"})
        await pilot.press("escape", "h")
        await until(pilot, lambda: "No promotion yet." in "\n".join(drawn(pilot)))
        await pilot.press("escape")
        await shown(pilot, "6")
        await until(pilot, lambda: bool(cells(pilot)))
        await pilot.press("x")
        await until(pilot, lambda: keys(pilot) == {"leave"})  # a short question: nothing to scroll
        assert part(pilot, "#dialog").region.height < 14
        await pilot.press("escape")
        await shown(pilot, "4")
        await until(pilot, lambda: bool(cells(pilot)))
        await pilot.press("enter")
        await until(pilot, lambda: keys(pilot) == {"back"})


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_key_for_a_record_is_not_shown_where_there_is_none_or_the_screen_only_reads(
    appliance: Appliance, read_only: bool
) -> None:
    appliance.start()
    async with open_app(appliance, read_only=read_only).run_test(size=(80, 24)) as pilot:
        for key in "6045":
            await shown(pilot, key)
            await pilot.pause()
            assert not {"cancel", "delete", "mark", "side by side", "items"} & keys(pilot)
        await shown(pilot, "6")
        appliance.core.ledger.put_job(made.job("aa11bb22cc33", JobState.QUEUED))
        appliance.core.events.add("note", "something happened")
        await until(pilot, lambda: bool(cells(pilot)))
        await until(pilot, lambda: ("cancel" in keys(pilot)) is not read_only)
        await pilot.press("question_mark")
        await until(pilot, lambda: ("cancel the selected job" in everything(pilot)) is not read_only)


async def test_while_a_command_is_typed_no_key_is_shown_that_would_be_text(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "6")
        await until(pilot, lambda: "filter" in keys(pilot))
        await pilot.press("colon")
        await until(pilot, lambda: not keys(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "filter" in keys(pilot))


class FailingPane(Pane):
    """A toy whose question fails, with much to say."""

    def questions(self) -> Mapping[str, ApiQuestion]:
        return {"it": ApiQuestion("it", self._fail)}

    def _fail(self, *_: object) -> None:
        raise ApiError(f"it failed {'once more ' * 20}", hint=f"{'try ' * 20}and read the log")


async def test_why_something_could_not_be_read_is_said_to_the_end(appliance: Appliance) -> None:
    appliance.start()
    toy = View("toy", "1", "toy", "toy", "a toy", FailingPane)
    async with open_app(appliance, views=[toy]).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await until(pilot, lambda: "and read the log" in " ".join(" ".join(drawn(pilot)).split()))


# the curves
@pytest.mark.parametrize("size", SIZES)
async def test_each_tick_of_a_curve_stands_at_its_height(appliance: Appliance, size: tuple[int, int]) -> None:
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=size) as pilot:
        await shown(pilot, "2")
        for name in ("success", "tool_errors_in_correct"):
            plot = app_of(pilot).pane.query_one(f"#plot-{name}", PlotextPlot)
            await until(pilot, lambda plot=plot: "┤" in str(plot.render()))
            lines = str(plot.render()).split("\n")
            first = next(place for place, line in enumerate(lines) if "┌" in line)
            last = next(place for place, line in enumerate(lines) if "└" in line)
            ticks = {last - 1 - place: line.partition("┤")[0] for place, line in enumerate(lines) if "┤" in line}
            rows = last - first - 2
            top = float(ticks[rows].replace(",", ""))
            assert len(ticks) > 2
            for row, tick in ticks.items():
                assert float(tick.replace(",", "")) == pytest.approx(top * row / rows)


async def test_a_night_that_there_is_not_has_no_key(appliance: Appliance) -> None:
    appliance.start()
    for name in ("early", "late"):
        appliance.core.ledger.put_cycle(made.cycle(id=f"night-{name}"))
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "2")
        nights = {"previous night", "next night"}
        await until(pilot, lambda: keys(pilot) & nights == {"previous night"})
        await pilot.press("p")
        await until(pilot, lambda: keys(pilot) & nights == {"next night"})


async def test_a_dialog_that_opens_while_the_program_ends_does_nothing(appliance: Appliance) -> None:
    """Its widgets are gone before it hears that it was opened."""
    appliance.start()
    async with open_app(appliance).run_test() as pilot:
        await shown(pilot)
        for dialog in (
            TypedConfirmation("t", "n", Text(), lambda name: "", to="end"),
            SubmitDialog(lambda job: ""),
            ReadingScreen("t", Text()),
        ):
            dialog.on_mount()
            assert not dialog.is_attached


async def test_a_job_is_asked_for_once_however_often_enter_is_pressed(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("s")
        pilot.app.screen.query_one("#question", Input).value = "find x with 7x+3=45"
        check = pilot.app.screen.query_one("#check", Input)
        check.value = "7*x+3 == 45"
        check.focus()
        await pilot.press("enter", "enter")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
    assert len(appliance.core.ledger.jobs()) == 1


async def test_a_dialog_stays_until_what_was_asked_for_is_answered_and_asks_once(appliance: Appliance) -> None:
    done: list[str] = []
    answered = threading.Event()

    def act(_passphrase: str) -> str:
        done.append("it")
        assert answered.wait(timeout=120)
        return "gone"

    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        asked = TypedConfirmation("Take it out", "be307d69aa51", plain("it"), act, to="take it out")
        app_of(pilot).put(asked)
        await until(pilot, lambda: isinstance(pilot.app.focused, NameInput))
        await type_and_enter(pilot, "be307d69")
        await until(pilot, lambda: done == ["it"])
        await pilot.press("enter", "escape")
        await complaint(pilot, "The request was sent and cannot be cancelled")
        assert pilot.app.screen is asked
        answered.set()
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
    assert done == ["it"]


async def test_a_rollback_takes_out_the_model_whose_digits_were_typed_or_none(appliance: Appliance) -> None:
    appliance.start()
    ledger = appliance.core.ledger
    made_ones = [made.checkpoint(appliance.data, name, parent=None, stage="training", step=1) for name in "abc"]
    for one in made_ones:
        ledger.put_checkpoint(one)
    first, second, third = (one.manifest for one in made_ones)
    ledger.set_aliases({"champion": second, "previous": first}, "promoted", made.at(-3))
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("b")
        await until(pilot, lambda: isinstance(pilot.app.screen, TypedConfirmation))
        ledger.set_aliases({"champion": third, "previous": second}, "promoted meanwhile", made.at(-2))
        await type_and_enter(pilot, second[:8])
        await complaint(pilot, "would no longer withdraw")
    assert (ledger.alias("champion"), ledger.alias("previous")) == (third, second)


async def test_the_palette_opens_over_a_screen_and_not_over_a_dialog(appliance: Appliance) -> None:
    appliance.start()
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.press("s", "ctrl+p")
        await pilot.pause()
        assert isinstance(pilot.app.screen, SubmitDialog)
        await pilot.press("escape", "ctrl+p")
        await until(pilot, lambda: "CommandPalette" in type(pilot.app.screen).__name__)


async def test_a_filter_is_seen_where_it_hides_something(appliance: Appliance) -> None:
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(120, 40)) as pilot:
        for key in ("1", "3"):
            await shown(pilot, key)
            await pilot.press("slash", *"nowhere", "enter")
            await until(pilot, lambda: "/ nowhere" in picture(pilot))
        await shown(pilot, "1")
        assert "No event matches." in everything(pilot)
        await shown(pilot, "9")
        await pilot.press("e", "slash", *"nowhere", "enter")
        await until(pilot, lambda: "No event matches." in everything(pilot))
