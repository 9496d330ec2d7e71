"""The terminal program: one screen over the control API.

What always holds: nothing here decides anything; what the daemon knows is read again every second, and while it is not
there the screen says so and keeps trying. Text that others wrote reaches the screen only as `tui.text.plain` text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from rich.text import Text
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.theme import Theme
from textual.widgets import ContentSwitcher, Footer

from appliance.client import (
    ApiClient,
    ApiError,
    KeyFileError,
    SubmitJob,
    find_key,
    keys_folder,
    login_name,
    signed_approval,
    unlock,
)
from tui.decisions import decision_detail
from tui.dialogs import Reading, SubmitDialog, TypedConfirmation, help_text
from tui.panels import Absent, CyclePanel, Detail, RecordTable, TopLine
from tui.snapshot import SnapshotReader, StatusSnapshot
from tui.table import Table
from tui.tables import TABLES
from tui.text import DIM, plain, short

THEME = Theme(
    name="assay",
    primary="#7d93ab",
    secondary="#7d93ab",
    accent="#a8bcd1",
    foreground="#d3d7de",
    background="#14171c",
    surface="#14171c",
    panel="#20252d",
    success="#8fbf8f",
    warning="#d7b46a",
    error="#d98880",
    dark=True,
)


class AssayApp(App[None]):
    """`socket` is the daemon's; `seconds` lie between two requests. The key at `key` signs, or that of `name`, else
    the only one that the person has."""

    CSS_PATH = "assay.tcss"
    TITLE = "assay"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - declared so by Textual
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "details"),
        Binding("a", "judge('approve')", "approve"),
        Binding("r", "judge('reject')", "reject"),
        Binding("b", "rollback", "rollback"),
        Binding("s", "submit", "submit job"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "quit", "quit"),
    ]

    class SnapshotRead(Message):
        """The reader has something: a snapshot, or why there is none."""

        def __init__(self, found: StatusSnapshot | ApiError) -> None:
            super().__init__()
            self.found = found

    def __init__(
        self,
        socket: Path,
        *,
        seconds: float = 1.0,
        name: str | None = None,
        key: Path | None = None,
        tables: Sequence[Table] = TABLES,
    ) -> None:
        super().__init__()
        self._tables = tables
        self._parts = ["#absent-text", "#top", "#cycle", "#detail-text", *(f"#{table.name}" for table in tables)]
        self._signs = (key, name)
        self._socket = socket
        self._seconds = seconds
        self._reader = SnapshotReader(
            socket, lambda found: self.post_message(self.SnapshotRead(found)), tables, seconds=seconds
        )
        self._snapshot: StatusSnapshot | None = None
        self._detailed: tuple[str, str | None] = (tables[0].name, None)

    def compose(self) -> ComposeResult:
        with ContentSwitcher(initial="absent"):
            yield Absent(id="absent")
            with Vertical(id="main"):
                yield TopLine(id="top")
                yield CyclePanel(id="cycle")
                with Horizontal(id="tables"):
                    for side in ("left", "right"):
                        with Vertical(id=side):
                            yield from (RecordTable(table) for table in self._tables if table.side == side)
                yield Detail(id="detail")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.register_theme(THEME)
        self.theme = THEME.name
        self._read()

    def on_unmount(self) -> None:
        self._reader.close()

    @work(thread=True)
    def _read(self) -> None:
        self._reader.run()

    # what is shown
    @on(SnapshotRead)
    def _show(self, message: SnapshotRead) -> None:
        if not self._is_whole():
            return
        switcher = self.query_one(ContentSwitcher)
        if isinstance(message.found, ApiError):
            self._snapshot = None
            self.refresh_bindings()
            self.query_one(Absent).show_error(message.found, self._socket, self._seconds)
            switcher.current = "absent"
            return
        self._snapshot = message.found
        self._show_snapshot(message.found)
        if switcher.current != "main":
            self.refresh_bindings()
            switcher.current = "main"
            self._table(self._tables[0].name).focus()

    def _is_whole(self) -> bool:
        """False while the screen is being taken down: what was read meanwhile has nowhere to go."""
        return bool(self.screen_stack) and len(self.query(", ".join(self._parts))) == len(self._parts)

    def _show_snapshot(self, snapshot: StatusSnapshot) -> None:
        self.query_one(TopLine).show_status(snapshot.status)
        self.query_one(CyclePanel).show_cycle(snapshot)
        for table in self._tables:
            records = snapshot.records.get(table.name, ())
            self._table(table.name).show_rows([table.row(record) for record in records])
        self._show_detail()

    def on_resize(self) -> None:
        if self._snapshot is not None and self._is_whole():
            self.call_after_refresh(self.query_one(CyclePanel).show_cycle, self._snapshot)

    def on_descendant_focus(self) -> None:
        self._show_detail()

    @on(RecordTable.RowHighlighted)
    def _highlighted(self) -> None:
        self._show_detail()

    @on(RecordTable.RowSelected)
    def action_open(self) -> None:
        if self._snapshot is not None and not isinstance(self.screen, Reading):
            self.push_screen(Reading(self._detailed[0], self._detail_text()))

    def _show_detail(self) -> None:
        if self._snapshot is None or not self._is_whole() or self.screen is not self.screen_stack[0]:
            return
        name = self.focused.id if isinstance(self.focused, RecordTable) and self.focused.id else self._detailed[0]
        detailed = (name, self._table(name).selected)
        moved, self._detailed = detailed != self._detailed, detailed
        self.query_one(Detail).show_detail(self._detail_text(), moved=moved)

    def _detail_text(self) -> Text:
        name, key = self._detailed
        table = self._table(name).table
        if self._snapshot is not None:
            for record in self._snapshot.records.get(name, ()):
                if table.row(record).key == key:
                    return table.detail(record, self._snapshot.status)
        return plain(table.empty, DIM)

    def _table(self, name: str) -> RecordTable:
        return self.query_one(f"#{name}", RecordTable)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without a daemon there is nothing to act on."""
        return self._snapshot is not None or action not in {"open", "judge", "rollback", "submit"}

    # what a person can do
    def action_judge(self, verdict: Literal["approve", "reject"]) -> None:
        """Approve or reject the candidate, on the very decision that is shown, with a signature over its digest."""
        status = self._snapshot.status if self._snapshot is not None else None
        candidate = status.aliases.get("candidate") if status is not None else None
        if status is None or candidate is None:
            self._say("There is no candidate that waits for a decision.")
            return
        decision = status.decision
        if decision is None or decision.candidate != candidate:
            self._say(f"There is no decision about {short(candidate)} yet: its evaluation is not done.")
            return

        try:
            key = find_key(keys_folder(os.environ), *self._signs)
        except KeyFileError as error:
            self._say(f"{error}: {error.hint}")
            return

        def act(passphrase: str) -> str:
            signer = unlock(key, passphrase)
            api = ApiClient(self._socket)
            judged = api.judge(verdict, candidate, signed_approval(decision, verdict, api.keys(), signer))
            if verdict == "reject":
                return f"{short(candidate)} is rejected."
            if judged.aliases.get("canary") == candidate:
                return f"{short(candidate)} is tried beside the champion."
            return f"{short(candidate)} is in service." if judged.aliases.get("champion") == candidate else "Recorded."

        body = decision_detail(decision)
        body.append_text(
            plain(f"decision digest  {decision.digest()}\npolicy digest    {decision.policy}\n", DIM, lines=True)
        )
        heading = f"{verdict.capitalize()} this candidate"
        self._ask(TypedConfirmation(heading, candidate, body, act, key=str(key.path)))

    def action_rollback(self) -> None:
        """Takes the canary out of service; where there is none, the previous champion returns."""
        aliases = self._snapshot.status.aliases if self._snapshot is not None else {}
        canary, previous = aliases.get("canary"), aliases.get("previous")
        if canary is not None:
            heading, digest = "Take the canary out of service", canary
            effect = f"{short(canary)} is tried beside the champion, which then answers every job."
            done = f"{short(canary)} is out of service."
        elif previous is not None:
            heading, digest = "Roll back to the previous champion", previous
            effect = f"{short(aliases.get('champion'))} leaves service; the model above returns."
            done = f"{short(previous)} is in service again."
        else:
            self._say("There is no previous champion to go back to.")
            return

        def act(_passphrase: str) -> str:
            ApiClient(self._socket).rollback(login_name(), "from the terminal program")
            return done

        self._ask(TypedConfirmation(heading, digest, plain(effect), act))

    def action_submit(self) -> None:
        def submit(request: SubmitJob) -> str:
            return f"{ApiClient(self._socket).submit(request).id} is queued."

        if self._snapshot is not None:
            self._ask(SubmitDialog(submit))

    def action_help(self) -> None:
        self.push_screen(Reading("keys", help_text()))

    def _ask(self, dialog: TypedConfirmation | SubmitDialog) -> None:
        def ended(message: str | None) -> None:
            if message is not None:
                self._say(message)
                self._reader.refresh()

        self.push_screen(dialog, ended)

    def _say(self, text: str) -> None:
        self.notify(plain(text).plain, markup=False, timeout=6)
