"""Keys that come faster than a screen is drawn: none is lost, and none acts on the screen behind the one it was for."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import sys
import termios
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tui_records as made
from test_tui_app import Screen, app_of, cells, detail, everything, of_absence, of_pane, open_app, shown, until
from textual import events
from textual.widgets import Input

from appliance.records.jobs import JobState
from tui.widgets.dialogs import SubmitDialog, TypedConfirmation
from verifiers.contract.verdict import Outcome

if TYPE_CHECKING:
    from conftest import Appliance

NAMES = {
    "\n": "enter",
    "\x1b": "escape",
    "\t": "tab",
    " ": "space",
    "/": "slash",
    ":": "colon",
    "=": "equals_sign",
    "?": "question_mark",
}


def typed_at_once(pilot: Screen, text: str) -> None:
    """All keys come before the first is dealt with, as from a paste of a terminal that does not say so."""
    for one in text:
        name = NAMES.get(one, one)
        pilot.app.post_message(events.Key(name, None if unicodedata.category(one) == "Cc" else one))


async def settled(pilot: Screen) -> None:
    app = app_of(pilot)
    await until(pilot, lambda: not app._busy and not app._typed)
    await pilot.pause()


async def test_what_follows_a_colon_is_text_however_fast_it_comes(appliance: Appliance) -> None:
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "6")
        for text in ("rollouts fail", "submit", "approve", "bax"):
            typed_at_once(pilot, f":{text}")
            await settled(pilot)
            assert app_of(pilot).query_one("#command-typed", Input).value == text
            assert len(pilot.app.screen_stack) == 1
            typed_at_once(pilot, "\x1b")
            await settled(pilot)
            assert app_of(pilot).current.key == "6"
        typed_at_once(pilot, ":rollouts fail\n")
        await until(pilot, lambda: "/ fail" in of_pane(pilot))
        assert len(pilot.app.screen_stack) == 1


async def test_what_follows_a_slash_is_text_and_what_follows_enter_goes_to_the_filtered_table(
    appliance: Appliance,
) -> None:
    appliance.start()
    ledger = appliance.core.ledger
    ledger.put_job(made.job("aa11", JobState.QUEUED, "sraxb one"))
    ledger.put_job(made.job("bb22", JobState.QUEUED, "another"))
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "6")
        await until(pilot, lambda: len(cells(pilot)) == 2)
        typed_at_once(pilot, "/sraxb\n")
        await until(pilot, lambda: len(cells(pilot)) == 1)
        assert len(pilot.app.screen_stack) == 1
        typed_at_once(pilot, "/another\nx")
        await until(pilot, lambda: isinstance(pilot.app.screen, TypedConfirmation))
        assert "bb22" in everything(pilot)


async def test_what_is_typed_behind_a_key_that_opens_a_dialog_stands_in_the_dialog(appliance: Appliance) -> None:
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "6")
        typed_at_once(pilot, "sfind x, q 1 / 2\nx == 1")
        await settled(pilot)
        assert isinstance(pilot.app.screen, SubmitDialog)
        assert pilot.app.screen.query_one("#question", Input).value == "find x, q 1 / 2"
        assert pilot.app.screen.query_one("#check", Input).value == "x == 1"
        typed_at_once(pilot, "\x1b5:submit\nabc")
        await settled(pilot)
        assert app_of(pilot).current.name == "checkpoints"
        assert isinstance(pilot.app.screen, SubmitDialog)
        assert pilot.app.screen.query_one("#question", Input).value == "abc"


async def test_a_key_behind_another_that_opens_a_screen_acts_on_that_screen(appliance: Appliance) -> None:
    appliance.start()
    decision = made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "5")
        await shown(pilot, "6")
        await until(pilot, lambda: bool(cells(pilot)))
        typed_at_once(pilot, "5j6" + "?q" * 3 + "5\n")
        await settled(pilot)
        assert len(pilot.app.screen_stack) == 2
        assert decision.candidate in everything(pilot)
        typed_at_once(pilot, "\x1b6")
        await settled(pilot)
        assert app_of(pilot).current.name == "jobs"
        await until(pilot, lambda: "find x" in detail(pilot) or "divisor" in detail(pilot))


async def test_two_pages_that_are_turned_at_once_are_two_pages(appliance: Appliance) -> None:
    appliance.start()
    appliance.core.ledger.put_rollouts([made.judged(f"r{i:03}", family=f"f{i}") for i in range(230)])
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot, "4")
        await until(pilot, lambda: len(cells(pilot)) == 100)
        typed_at_once(pilot, "nn")
        await until(pilot, lambda: len(cells(pilot)) == 30)
        assert "page 3" in of_pane(pilot)
        typed_at_once(pilot, "pp")
        await until(pilot, lambda: bool(cells(pilot)) and "| f229 |" in cells(pilot)[0])


async def test_a_passphrase_never_stands_in_the_line_for_digits(
    appliance: Appliance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from appliance.client.person_keys import keys_folder, make_key, unlock
    from appliance.client.signing import admission

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    appliance.start()
    key = make_key(keys_folder(os.environ), "ada", "correct horse")
    appliance.core.trust.change_key(admission("ada", unlock(key, "correct horse")))
    decision = made.put_night(appliance.core.ledger, appliance.data)
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        typed_at_once(pilot, f"r{decision.candidate[:8]}\ncorrect horse")
        await settled(pilot)
        assert pilot.app.screen.query_one("#dialog-typed", Input).value == decision.candidate[:8]
        assert pilot.app.screen.query_one("#dialog-secret", Input).value == "correct horse"
        typed_at_once(pilot, "\n")
        await until(pilot, lambda: bool(appliance.core.ledger.approvals()))


async def test_what_is_typed_before_the_first_answer_waits_for_it(appliance: Appliance) -> None:
    appliance.start()
    appliance.core.ledger.put_rollouts([made.judged("wrong", outcome=Outcome.FAIL), made.judged("right")])
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        assert app_of(pilot)._asking
        typed_at_once(pilot, ":rollouts fail\n6s")
        assert len(pilot.app.screen_stack) == 1
        await until(pilot, lambda: isinstance(pilot.app.screen, SubmitDialog))
        assert app_of(pilot).current.name == "jobs"
        typed_at_once(pilot, "\x1b4")
        await until(pilot, lambda: "/ fail" in of_pane(pilot) and len(cells(pilot)) == 1)


async def test_a_line_that_was_begun_while_the_daemon_is_not_there_stays_a_line_when_it_comes(
    appliance: Appliance,
) -> None:
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "assay serve" in of_absence(pilot))
        typed_at_once(pilot, ":rollo")
        await settled(pilot)
        appliance.start()
        await shown(pilot)
        typed_at_once(pilot, "uts\n")
        await until(pilot, lambda: app_of(pilot).current.name == "rollouts")
        assert len(pilot.app.screen_stack) == 1


async def test_without_a_daemon_a_command_that_needs_it_says_so_and_quit_quits(appliance: Appliance) -> None:
    async with open_app(appliance).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "assay serve" in of_absence(pilot))
        typed_at_once(pilot, ":submit\n")
        await settled(pilot)
        notices = [notice.message for notice in app_of(pilot)._notifications]
        assert notices == ["submit needs the daemon, which does not answer."]
        typed_at_once(pilot, "x:quit\n")
        await until(pilot, lambda: not pilot.app.is_running)
    assert pilot.app.return_code == 0


# in a terminal
@pytest.fixture
def terminal(appliance: Appliance) -> Iterator[int]:
    """The program, in a terminal of its own; the number of the other end."""
    appliance.start()
    made.put_night(appliance.core.ledger, appliance.data)
    pid, line = pty.fork()
    if pid == 0:
        termios.tcsetwinsize(0, (24, 80))
        command = [sys.executable, "-m", "tui", "--socket", str(appliance.socket)]
        os.execve(sys.executable, command, {**os.environ, "TERM": "xterm-256color"})
    yield line
    os.kill(pid, signal.SIGKILL)  # it has ended, unless the test failed; nobody else has waited for it
    os.close(line)
    os.waitpid(pid, 0)


async def test_a_command_that_comes_in_one_piece_from_a_terminal_is_a_command(terminal: int) -> None:
    seen = b""

    def read_until(words: bytes) -> None:
        nonlocal seen
        while words not in seen:
            assert select.select([terminal], [], [], 60.0)[0], seen[-500:]
            seen += os.read(terminal, 65536)

    def drive() -> None:
        nonlocal seen
        read_until(b"candidate")
        os.write(terminal, b"6")
        read_until(b"largest divisor")
        os.write(terminal, b":rollouts fail\r")
        read_until(b"/ fail")
        assert b"Reject" not in seen
        assert b"Submit a job" not in seen
        os.write(terminal, b":quit\r")
        read_until(b"\x1b[?1049l")

    await asyncio.to_thread(drive)
