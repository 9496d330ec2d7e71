"""The terminal program: screens over the control API, one visible at a time.

Invariants: nothing here decides anything. The visible screen is refreshed while open; without a daemon the program says
so and retries. Foreign text reaches a screen only through `text.plain`. With `read_only` no changing request is sent.
Keys are processed in order (`tui.ordered_keys`): text typed after `:` or `/` stays text, and keys typed before a dialog
opens reach the dialog.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import events, on, work
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import DiscoveryHit, Hits
from textual.containers import Vertical
from textual.message import Message
from textual.screen import Screen
from textual.system_commands import SystemCommandsProvider
from textual.theme import Theme
from textual.widgets import ContentSwitcher, Footer, Input

from appliance.client import ApiError
from tui.ordered_keys import OrderedKeysApp
from tui.reader import Reading, ViewReader
from tui.theme import DARK, LIGHT, THEMES, styles_of
from tui.views import all_views
from tui.widgets.command_line import CommandInput, CommandLine, TypedCommand, find_command
from tui.widgets.panels import TALL, WIDE, Absent, PlainText, RecordTable, TopLine, ViewLine
from tui.widgets.text import BAD, plain
from tui.widgets.view import Pane, View

if TYPE_CHECKING:
    from appliance.client import ApiClient
    from tui.widgets.dialogs import Dialog

FRAME_SECONDS = 0.05
"""Delay before the footer keys load, so that the page is drawn first."""
ACTING = {"judge", "rollback", "submit", "cancel_job"}
NEEDS_DAEMON = {*ACTING, "open_view", "filter", "open_record", "older", "newer"}
AT_ONCE = {"q", "T", "question_mark", "ctrl+c", "ctrl+p", "ctrl+q"}
"""Keys that do not wait for the daemon's first answer."""
OF_RECORDS = {"enter", "n", "p", "left_square_bracket", "right_square_bracket"}
"""Keys that wait for the records of a page because their effect depends on them."""
WITHOUT_DAEMON = {"quit", "light", "dark", "help"}
"""Commands that work without a daemon."""


class ScreensFirst(SystemCommandsProvider):
    """Command palette in the order of commands instead of the alphabet: those that change something come last."""

    async def discover(self) -> Hits:
        for name, about, run, _ in self.app.get_system_commands(self.screen):
            yield DiscoveryHit(name, run, help=about)


class AssayApp(OrderedKeysApp):
    """Full-screen program over the daemon's control `socket`. Status is read every `seconds`; each read waits
    `patience_seconds`. Signatures use the key at `key`, or that of `name`, or else the person's only key."""

    CSS_PATH = "assay.tcss"
    TITLE = "assay"
    COMMANDS = {ScreensFirst}  # noqa: RUF012 - declared so by Textual
    COMMAND_PALETTE_BINDING = "ctrl+p"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - declared so by Textual
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]  # noqa: RUF012 - declared so by Textual
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "judge('approve')", "approve", show=False),
        Binding("r", "judge('reject')", "reject", show=False),
        Binding("b", "rollback", "rollback", show=False),
        Binding("s", "submit", "submit", show=False),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("colon", "command", "command", key_display=":"),
        Binding("T", "turn_theme", "light/dark", show=False),
        Binding("R", "read_again", "read again", show=False),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "quit", "quit"),
    ]

    class Arrived(Message):
        """Message from the reader thread: new data, or an error if the daemon did not answer."""

        def __init__(self, found: Reading | ApiError) -> None:
            super().__init__()
            self.found = found

    def __init__(
        self,
        socket: Path,
        *,
        seconds: float = 1.0,
        name: str | None = None,
        key: Path | None = None,
        views: Sequence[View] | None = None,
        first: str = "",
        read_only: bool = False,
        light: bool = False,
        patience_seconds: float = 5.0,
    ) -> None:
        super().__init__()
        self.views = views = all_views() if views is None else views
        self.read_only = read_only
        self._signs = (key, name)
        self._socket = socket
        self._seconds = seconds
        self._reader = ViewReader(
            lambda: self.client(seconds=patience_seconds),
            lambda found: self.post_message(self.Arrived(found)),
            seconds=seconds,
        )
        self._reading: Reading | None = None
        self._asking = True
        self._first = next((view for view in views if view.name == first), views[0])
        self.current = self._first
        self._light = light
        for view in views:
            self.bind(view.key, f"open_view('{view.name}')", description=view.title, show=False)

    def client(self, *, seconds: float = 10.0) -> ApiClient:
        """Returns a new client of the daemon that waits up to `seconds` for an answer."""
        from appliance.client import ApiClient
        from tui.help import ReadOnlyClient

        return (ReadOnlyClient if self.read_only else ApiClient)(self._socket, timeout_seconds=seconds)

    def compose(self) -> ComposeResult:
        with ContentSwitcher(initial="absent", id="whole"):
            yield Absent(id="absent")
            with Vertical(id="main"):
                yield TopLine(id="top")
                yield ViewLine(self.views)
                with ContentSwitcher(initial=self._first.pane_id, id="panes"):
                    yield self._first.make()
                yield PlainText(id="problem")
        yield CommandLine()
        yield Footer(show_command_palette=False)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(DARK.variables)

    def on_mount(self) -> None:
        for theme in THEMES:
            self.register_theme(theme)
        self.console.push_theme(styles_of(DARK))
        self.theme_changed_signal.subscribe(self, self._recolour)
        self.theme = LIGHT.name if self._light else DARK.name
        # What it loads would keep the first frame waiting: the page, and then the keys in the last line.
        self.call_after_refresh(self.set_timer, FRAME_SECONDS, self._read)

    def on_unmount(self) -> None:
        self._reader.close()

    @work(thread=True)
    def _read(self) -> None:
        self._reader.run()

    def _recolour(self, theme: Theme) -> None:
        self.console.pop_theme()
        self.console.push_theme(styles_of(theme))
        for screen in self.screen_stack:
            for widget in screen.query("*"):
                if isinstance(widget, (PlainText, RecordTable)):
                    widget.draw()

    # what is shown
    @property
    def pane(self) -> Pane:
        return self.main.query_one(f"#{self.current.pane_id}", Pane)

    @property
    def main(self) -> Screen[object]:
        return self.screen_stack[0]

    @property
    def is_there(self) -> bool:
        """True if the daemon answers."""
        return self._reading is not None

    def ask(self) -> None:
        """Passes the visible screen's current questions about the daemon's data to the reader thread."""
        if self._is_whole():
            self._reader.ask(self.pane.questions())

    def _is_whole(self) -> bool:
        """True if the screen's widgets exist; data that arrives while it is built or torn down has nowhere to go."""
        if not self.is_running or not self.screen_stack:
            return False
        found = [
            self.main.query_one_optional(name) for name in (f"#{self.current.pane_id}", "#problem", "#command-line")
        ]
        return all(one is not None and one.is_mounted for one in found)

    def holds(self, typed: events.Key | events.Paste) -> bool:
        """True if a typed key has to wait: all keys until the daemon's first answer, record keys until the records are
        read."""
        key = typed.key if isinstance(typed, events.Key) else ""
        if self.screen is not self.main or key in AT_ONCE:
            return False
        return self._asking or (key in OF_RECORDS and not isinstance(self.focused, Input) and self._records_come())

    def _records_come(self) -> bool:
        """True if the table of this screen is still being read."""
        page = self.pane.questions().get("page") if self._reading is not None else None
        if page is None or self._reading is None:
            return False
        known = self._reading.asked.get("page")
        is_known = known is not None and known.key == page.key
        return not (is_known and ("page" in self._reading.answers or "page" in self._reading.failed))

    async def _answered(self) -> None:
        """Passes waiting keys on after the daemon's first answer or first failure."""
        self._asking = False
        await self.keys_may_go()

    @on(Arrived)
    async def _show(self, message: Arrived) -> None:
        if not self._is_whole():
            return
        switcher = self.main.query_one("#whole", ContentSwitcher)
        if isinstance(message.found, ApiError):
            self._reading = None
            self.main.query_one(Absent).show_error(message.found, self._socket, self._seconds)
            if switcher.current != "absent":
                switcher.current = "absent"
                self.refresh_bindings()
            await self._answered()
            return
        self._reading = message.found
        self._show_reading()
        if switcher.current != "main":
            switcher.current = "main"
            self.refresh_bindings()
            self.call_after_refresh(self._came)

    async def _came(self) -> None:
        """Finishes the switch to the main page, once drawn, from the page without a daemon; passes waiting keys on."""
        self._opened()
        await self._answered()

    def _opened(self) -> None:
        if self._is_whole():
            self.main.query_one(ViewLine).show_current(self.current.name)
            if self.screen is self.main and not self.main.query_one(CommandLine).has_class("-open"):
                self.pane.focus_first()
            self._show_reading()

    def _show_reading(self) -> None:
        """Shows the visible screen the answers known for its questions, and asks the reader for the rest."""
        reading, pane = self._reading, self.pane
        if reading is None:
            return
        self.main.query_one(TopLine).show_status(reading.status, read_only=self.read_only, now=datetime.now(UTC))
        asked = pane.questions()
        same = {name for name, one in asked.items() if name in reading.asked and reading.asked[name].key == one.key}
        pane.show(reading.status, {name: one for name, one in reading.answers.items() if name in same})
        faults = [f"{error}: {error.hint}" for name, error in reading.failed.items() if name in same]
        problem = self.main.query_one("#problem", PlainText)
        problem.show(plain(f"! {faults[0]}" if faults else "", BAD, limit=400))
        problem.display = bool(faults)
        self.ask()
        self.call_later(self.keys_may_go)

    def on_resize(self) -> None:
        if self._reading is not None and self._is_whole():
            self.call_after_refresh(self._opened_again)

    def _opened_again(self) -> None:
        if self._is_whole():
            self.main.query_one(ViewLine).show_current(self.current.name)
            self._show_reading()

    async def open_view(self, name: str) -> None:
        """Opens the screen of that name, and builds it on first use."""
        view = next(one for one in self.views if one.name == name)
        panes = self.main.query_one("#panes", ContentSwitcher)
        self.current = view
        with self.batch_update():  # one frame with all of it
            if not self.main.query(f"#{view.pane_id}"):
                await panes.mount(view.make())
            panes.current = view.pane_id
            self._opened()
            self.refresh_bindings()

    @on(ViewLine.Clicked)
    async def _clicked(self, message: ViewLine.Clicked) -> None:
        await self.open_view(message.name)

    async def action_open_view(self, name: str) -> None:
        """Opens a screen by its number key, unless a dialog or an input line has the focus."""
        if self.screen is self.main:
            await self.open_view(name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disables actions that need a daemon while none answers, and all changes in a read-only screen."""
        if action in ACTING and self.read_only:
            return False
        if action == "filter" and self.is_there and self._is_whole():
            return bool(self.pane.FILTER) and not self.main.query_one(CommandLine).has_class("-open")
        return self._reading is not None or action not in NEEDS_DAEMON

    # the line at the bottom
    def action_filter(self) -> None:
        if self.pane.FILTER and self.screen is self.main:
            line = self.main.query_one(CommandLine)
            line.open("/", self.pane.FILTER, self.pane.filtered_by)

    def action_command(self) -> None:
        if self.screen is self.main:
            names = [one.name for one in self.commands() if self.is_there or one.name in WITHOUT_DAEMON]
            self.main.query_one(CommandLine).open(":", "a screen or a command; tab completes", names=names)

    @on(CommandInput.Undecided)
    def _undecided(self, message: CommandInput.Undecided) -> None:
        self.say(message.why)

    @on(CommandLine.Left)
    def _left_line(self) -> None:
        if self.is_there:
            self.pane.focus_first()
        else:
            self.main.set_focus(None)

    @on(CommandLine.Entered)
    async def _entered(self, message: CommandLine.Entered) -> None:
        self._left_line()
        if message.sign == "/":
            wrong = self.pane.filter_by(message.typed)
            if wrong:
                self.say(wrong)
            self._show_reading()
            return
        found = find_command(self.commands(), message.typed)
        if isinstance(found, str):
            self.say(found)
            return
        command, rest = found
        if not self.is_there and command.name not in WITHOUT_DAEMON:
            self.say(f"{command.name} needs the daemon, which does not answer.")
            return
        done = command.run(rest)
        if isawaitable(done):
            await done

    def commands(self) -> list[TypedCommand]:
        """Returns the commands that can be typed after `:` and found in the palette."""

        def opens(view: View) -> TypedCommand:
            async def run(typed: str) -> None:
                await self._open_filtered(view, typed)

            return TypedCommand(view.name, f"{view.title}: {view.about}", run)

        acting = [
            TypedCommand("approve", "approve the candidate", lambda _: self.action_judge("approve"), acts=True),
            TypedCommand("reject", "reject the candidate", lambda _: self.action_judge("reject"), acts=True),
            TypedCommand("rollback", "return to the previous champion", lambda _: self.action_rollback(), acts=True),
            TypedCommand("submit", "submit a job", lambda _: self.action_submit(), acts=True),
        ]
        return [
            *map(opens, self.views),
            TypedCommand("light", "light colours", lambda _: self._set_theme(LIGHT.name)),
            TypedCommand("dark", "dark colours", lambda _: self._set_theme(DARK.name)),
            TypedCommand("help", "every key", lambda _: self.action_help()),
            TypedCommand("quit", "quit; the daemon keeps running", lambda _: self.exit()),
            *([] if self.read_only else acting),  # behind the screens: what acts never stands first
        ]

    async def _open_filtered(self, view: View, typed: str) -> None:
        await self.open_view(view.name)
        if typed:
            wrong = self.pane.filter_by(typed) if self.pane.FILTER else f"{view.title} has nothing to filter."
            if wrong:
                self.say(wrong)
            self._show_reading()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for one in self.commands():
            if self.is_there or one.name in WITHOUT_DAEMON:
                yield SystemCommand(one.name, one.about, lambda run=one.run: run(""))

    def _set_theme(self, name: str) -> None:
        self.theme = name

    def action_turn_theme(self) -> None:
        self.theme = DARK.name if self.theme == LIGHT.name else LIGHT.name

    def action_read_again(self) -> None:
        self._reader.refresh()

    def action_help_quit(self) -> None:
        """Tells on Ctrl-C which key quits."""
        self.say("q quits; the daemon keeps running")

    # what a person can do
    def action_judge(self, verdict: Literal["approve", "reject"]) -> None:
        from tui.widgets.person import judging

        if self._reading is not None:
            self.put(judging(verdict, self._reading.status, self.client, self._signs))

    def action_rollback(self) -> None:
        from tui.widgets.person import rolling_back

        if self._reading is not None:
            self.put(rolling_back(self._reading.status, self.client))

    def action_submit(self) -> None:
        from tui.widgets.person import submitting

        if self._reading is not None:
            self.put(submitting(self.client))

    def action_command_palette(self) -> None:
        """Opens the palette, but not over a dialog: its commands would act on the screen behind."""
        if self.screen is self.main:
            super().action_command_palette()

    def action_help(self) -> None:
        from tui.help import help_text
        from tui.widgets.dialogs import Dialog, ReadingScreen

        if not isinstance(self.screen, Dialog):
            self.push_screen(
                ReadingScreen("keys", help_text(self.views, self.current, self.pane, read_only=self.read_only))
            )

    def put(self, dialog: Dialog | str) -> None:
        """Opens a dialog, or shows the reason why it cannot be opened."""
        from tui.widgets.dialogs import Dialog

        if isinstance(dialog, str):
            self.say(dialog)
        elif not isinstance(self.screen, Dialog):
            self.push_screen(dialog, self._ended)

    def _ended(self, message: str | None) -> None:
        if message is not None:
            self.say(message)
            self._reader.refresh()

    def say(self, text: str) -> None:
        """Shows a sentence as a notification for six seconds."""
        self.notify(plain(text).plain, markup=False, timeout=6)
