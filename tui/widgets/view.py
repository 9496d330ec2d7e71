"""The contract of a screen: a pane declares its questions and shows their answers.

Invariants: a pane never calls the control API itself; only the visible pane's questions are asked, so a hidden screen
costs nothing. A new screen is one module with a `Pane` and one row in `tui.views`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from textual.containers import Vertical

if TYPE_CHECKING:  # loaded with the first answer
    from appliance.client import ApiClient, Status


@dataclass(frozen=True)
class ApiQuestion:
    """One read of the daemon's control API for a screen. Questions with the same key share one answer."""

    key: Hashable
    read: Callable[[ApiClient, Status], Any] = field(compare=False)
    """Runs in the reader's thread. Raises ApiError."""
    fixed: bool = False
    """True if the answer never changes, so one read suffices."""
    live: bool = False
    """True to read in every round, even if the status did not change."""
    seconds: float = 0.0
    """Minimum interval between two reads."""


Answers = Mapping[str, Any]
"""Answers by question name; unread and failed questions are missing."""


class Host(Protocol):
    """Interface of the program for its screens."""

    client: Callable[[], ApiClient]
    read_only: bool

    def ask(self) -> None:
        """Announces that a screen's questions to the daemon changed."""

    def say(self, text: str) -> None:
        """Shows a sentence as a notification for some seconds."""

    def put(self, dialog: Any) -> None:
        """Opens a dialog, or shows the given sentence instead."""


class Pane(Vertical):
    """Base class of a screen's content; created when first opened, then kept."""

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = ()
    """The screen's own keys and their effect, for the help."""
    ACTING: ClassVar[Mapping[str, str]] = {}
    """Keys that change something, each with its action; disabled in read-only screens."""
    FILTER: ClassVar[str] = ""
    """Hint for the text after `/`; empty if the screen has no filter."""
    filtered_by = ""

    @property
    def host(self) -> Host:
        return cast(Host, self.app)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in self.ACTING.values() and self.host.read_only:
            return False
        return super().check_action(action, parameters)

    def questions(self) -> Mapping[str, ApiQuestion]:
        """Returns the screen's current questions to the daemon, by name."""
        return {}

    def show(self, status: Status, answers: Answers) -> None:
        """Shows the daemon's answers known so far; called whenever one was read."""

    def filter_by(self, text: str) -> str:
        """Shows only the screen's content that matches the filter text. Returns an error message, or an empty text."""
        self.filtered_by = text.strip()
        return ""

    def focus_first(self) -> None:
        """Focuses the screen's first focusable widget; called when the screen opens."""
        for widget in self.query("*"):
            if widget.focusable:
                widget.focus(scroll_visible=False)
                return


@dataclass(frozen=True)
class View:
    """Entry in the table of screens."""

    name: str
    """Name typed after `:`."""
    key: str
    """Number key that opens the screen."""
    title: str
    brief: str
    """Short title for narrow terminals."""
    about: str
    """Summary of the screen, in a sentence."""
    pane: str | type[Pane]
    """The class, or `module:Class`, which is imported when the screen first opens."""

    def make(self) -> Pane:
        made = self.pane
        if isinstance(made, str):
            module, _, name = made.partition(":")
            made = getattr(importlib.import_module(module), name)
        assert isinstance(made, type)
        assert issubclass(made, Pane)
        return made(id=self.pane_id)

    @property
    def pane_id(self) -> str:
        """Name of the widget; that of a screen from outside has a slash, which Textual does not accept."""
        return f"view-{self.name.replace('/', '--')}"
