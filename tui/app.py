"""The terminal program: one screen over the control API.

What always holds: nothing here decides anything; what the daemon knows is read again every second, and while it is not
there the screen says so and keeps trying. Text that others wrote reaches the screen only as `tui.marks.plain` text.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import ClassVar

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
    signed_word,
    unlock,
)
from tui.detail import decision_detail, job_detail, model_detail, rollout_detail
from tui.dialogs import Reading, SubmitDialog, TypedConfirmation, help_text
from tui.marks import DIM, plain, short
from tui.panels import Absent, CyclePanel, Detail, RecordTable, TopLine
from tui.rows import JOB_COLUMNS, MODEL_COLUMNS, ROLLOUT_COLUMNS, job_row, model_row, rollout_row
from tui.snapshot import Reader, Snapshot

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
PARTS = "#absent-text, #top, #cycle, #rollouts, #models, #jobs, #detail-text"
EMPTY = {
    "rollouts": "No rollout yet.",
    "models": "No model yet: the first cycle makes one.",
    "jobs": "No job yet: s submits one.",
}


class AssayApp(App[None]):
    """`socket` is the daemon's; `seconds` between two looks at it. A word is signed with the key of `name`, or that at
    `key`, otherwise with the only one that the person has."""

    CSS_PATH = "assay.tcss"
    TITLE = "assay"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - declared so by Textual
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "details"),
        Binding("a", "word('approve')", "approve"),
        Binding("r", "word('reject')", "reject"),
        Binding("b", "rollback", "rollback"),
        Binding("s", "submit", "submit job"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "quit", "quit"),
    ]

    class Read(Message):
        """The reader has something: a snapshot, or why there is none."""

        def __init__(self, found: Snapshot | ApiError) -> None:
            super().__init__()
            self.found = found

    def __init__(self, socket: Path, *, seconds: float = 1.0, name: str | None = None, key: Path | None = None) -> None:
        super().__init__()
        self._signs = (key, name)
        self._socket = socket
        self._seconds = seconds
        self._reader = Reader(socket, lambda found: self.post_message(self.Read(found)), seconds=seconds)
        self._snapshot: Snapshot | None = None
        self._detailed: tuple[str, str | None] = ("rollouts", None)

    def compose(self) -> ComposeResult:
        with ContentSwitcher(initial="absent"):
            yield Absent(id="absent")
            with Vertical(id="main"):
                yield TopLine(id="top")
                yield CyclePanel(id="cycle")
                with Horizontal(id="tables"):
                    yield RecordTable(ROLLOUT_COLUMNS, "rollouts", id="rollouts")
                    with Vertical(id="right"):
                        yield RecordTable(MODEL_COLUMNS, "models", id="models")
                        yield RecordTable(JOB_COLUMNS, "jobs", id="jobs")
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
    @on(Read)
    def _show(self, message: Read) -> None:
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
            self.query_one("#rollouts").focus()

    def _is_whole(self) -> bool:
        """False while the screen is being taken down: what was read meanwhile has nowhere to go."""
        return bool(self.screen_stack) and len(self.query(PARTS)) == len(PARTS.split(","))

    def _show_snapshot(self, snapshot: Snapshot) -> None:
        self.query_one(TopLine).show_status(snapshot.status)
        self.query_one(CyclePanel).show_cycle(snapshot)
        self._table("rollouts").show_rows([rollout_row(view) for view in snapshot.rollouts])
        self._table("models").show_rows([model_row(view) for view in snapshot.checkpoints])
        self._table("jobs").show_rows([job_row(job) for job in snapshot.jobs])
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
        snapshot = self._snapshot
        if snapshot is not None:
            if name == "rollouts":
                for rollout in snapshot.rollouts:
                    if rollout.id == key:
                        return rollout_detail(rollout)
            elif name == "models":
                for model in snapshot.checkpoints:
                    if model.checkpoint.manifest == key:
                        return model_detail(model, snapshot.status.canary)
            else:
                for job in snapshot.jobs:
                    if job.id == key:
                        made = {artifact.id: artifact for artifact in snapshot.artifacts}
                        return job_detail(job, made.get(job.artifact or ""))
        return plain(EMPTY[name], DIM)

    def _table(self, name: str) -> RecordTable:
        return self.query_one(f"#{name}", RecordTable)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without a daemon there is nothing to act on."""
        return self._snapshot is not None or action not in {"open", "word", "rollback", "submit"}

    # what a person can do
    def action_word(self, word: str) -> None:
        """Approve or reject the candidate, on the very decision that is shown, with a signature over its digest."""
        status = self._snapshot.status if self._snapshot is not None else None
        candidate = status.aliases.get("candidate") if status is not None else None
        if status is None or candidate is None:
            self._say("There is no candidate that waits for a word.")
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
            with ApiClient(self._socket) as api:
                if word == "approve":
                    judged = api.approve(candidate, signed_word(decision, "approve", api.keys(), signer))
                else:
                    judged = api.reject(candidate, signed_word(decision, "reject", api.keys(), signer))
            if word == "reject":
                return f"{short(candidate)} is rejected."
            if judged.aliases.get("canary") == candidate:
                return f"{short(candidate)} is tried beside the champion."
            return f"{short(candidate)} is in service." if judged.aliases.get("champion") == candidate else "Recorded."

        body = decision_detail(decision)
        body.append_text(
            plain(f"decision digest  {decision.digest()}\npolicy digest    {decision.policy}\n", DIM, lines=True)
        )
        heading = f"{word.capitalize()} this candidate"
        self._ask(TypedConfirmation(heading, candidate, body, act, key=str(key.path)))

    def action_rollback(self) -> None:
        aliases = self._snapshot.status.aliases if self._snapshot is not None else {}
        canary = aliases.get("canary")
        if canary is not None:
            self._take_out(canary)
            return
        previous = aliases.get("previous")
        if previous is None:
            self._say("There is no previous champion to go back to.")
            return

        def act(_passphrase: str) -> str:
            with ApiClient(self._socket) as api:
                api.rollback(person(), "from the terminal program")
            return f"{short(previous)} is in service again."

        body = plain(f"{short(aliases.get('champion'))} leaves service; the model above returns.")
        self._ask(TypedConfirmation("Roll back to the previous champion", previous, body, act))

    def _take_out(self, canary: str) -> None:
        def act(_passphrase: str) -> str:
            with ApiClient(self._socket) as api:
                api.rollback(person(), "from the terminal program")
            return f"{short(canary)} is out of service."

        body = plain(f"{short(canary)} is tried beside the champion, which then answers every job.")
        self._ask(TypedConfirmation("Take the canary out of service", canary, body, act))

    def action_submit(self) -> None:
        def submit(request: SubmitJob) -> str:
            with ApiClient(self._socket) as api:
                return f"{api.submit(request).id} is queued."

        if self._snapshot is not None:
            self._ask(SubmitDialog(submit))

    def action_help(self) -> None:
        self.push_screen(Reading("keys", help_text()))

    def _ask(self, dialog: TypedConfirmation | SubmitDialog) -> None:
        def ended(said: str | None) -> None:
            if said is not None:
                self._say(said)
                self._reader.refresh()

        self.push_screen(dialog, ended)

    def _say(self, text: str) -> None:
        self.notify(plain(text).plain, markup=False, timeout=6)


def person() -> str:
    """Who speaks: the login that owns this process."""
    user = os.getuid()
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"uid {user}"
