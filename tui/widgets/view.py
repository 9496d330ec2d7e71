"""What a screen of the program is: a pane that says what it wants to know, and shows it when it is read.

What always holds: a pane never asks the control API itself; only those of the visible one are asked, so a screen
that nobody sees costs nothing. A new screen is one module with a `Pane` and one row in `tui.views`.
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
    """Something to read. Two with the same key are the same question, and have one answer."""

    key: Hashable
    read: Callable[[ApiClient, Status], Any] = field(compare=False)
    """Raises ApiError. It runs in the reader's thread."""
    fixed: bool = False
    """Its answer never changes: it is read once."""
    live: bool = False
    """It is read in every round, whether or not the status says that something happened."""
    seconds: float = 0.0
    """They lie at least between two readings."""


Answers = Mapping[str, Any]
"""By the name that the pane gave the question; one that is not read yet, or could not be, is missing."""


class Host(Protocol):
    """What a pane may ask of the program that it is in."""

    client: Callable[[], ApiClient]
    read_only: bool

    def ask(self) -> None:
        """The pane has other questions now."""

    def say(self, text: str) -> None:
        """Shows a sentence for some seconds."""

    def put(self, dialog: Any) -> None:
        """Opens a dialog, or says the sentence that stands for it."""


class Pane(Vertical):
    """One screen. It is made when it is first looked at, and stays."""

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Its own keys and what they do, for the help."""
    ACTING: ClassVar[Mapping[str, str]] = {}
    """Those of its keys that change something, each with its action: not there where the screen only reads."""
    FILTER: ClassVar[str] = ""
    """What can be typed behind `/`; empty where there is nothing to filter."""
    filtered_by = ""

    @property
    def host(self) -> Host:
        return cast(Host, self.app)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in self.ACTING.values() and self.host.read_only:
            return False
        return super().check_action(action, parameters)

    def questions(self) -> Mapping[str, ApiQuestion]:
        """What it wants to know now."""
        return {}

    def show(self, status: Status, answers: Answers) -> None:
        """Shows what is known; called whenever something of it was read."""

    def filter_by(self, text: str) -> str:
        """Shows only what fits. Returns why it cannot, or an empty text."""
        self.filtered_by = text.strip()
        return ""

    def focus_first(self) -> None:
        """Where the keys go when the screen is opened."""
        for widget in self.query("*"):
            if widget.focusable:
                widget.focus(scroll_visible=False)
                return


@dataclass(frozen=True)
class View:
    """A row of the table of screens."""

    name: str
    """As it is typed behind `:`."""
    key: str
    """The number key that opens it."""
    title: str
    brief: str
    """Its title where there is little room."""
    about: str
    """What it shows, in a sentence."""
    pane: str | type[Pane]
    """The class, or where it is: `module:Class` is loaded when the screen is first opened."""

    def make(self) -> Pane:
        made = self.pane
        if isinstance(made, str):
            module, _, name = made.partition(":")
            made = getattr(importlib.import_module(module), name)
        assert isinstance(made, type)
        assert issubclass(made, Pane)
        return made(id=f"view-{self.name}")
