"""The line at the bottom: a filter after `/`, a command after `:`, with completion.

Invariants: typed text is only looked up in a table of commands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input

from tui.widgets.panels import PlainText


@dataclass(frozen=True)
class TypedCommand:
    name: str
    about: str
    run: Callable[[str], object]
    """Called with the text typed after the name."""
    acts: bool = False
    """True if the command changes something; read-only screens do not have it."""


def completed(names: Sequence[str], typed: str) -> tuple[str, str]:
    """Completes a typed command to the longest common prefix of the matching names, with a sentence that lists them if
    several."""
    fitting = [name for name in names if typed and name.startswith(typed.lower())]
    if not fitting:
        return typed, ""
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*fitting, strict=False))
    common = "".join(letters[0] for letters in same)
    return common, may_be(common, fitting) if len(fitting) > 1 else ""


def may_be(typed: str, names: Sequence[str]) -> str:
    return f"{typed!r} may be {', '.join(names)}."


def find_command(commands: Sequence[TypedCommand], typed: str) -> tuple[TypedCommand, str] | str:
    """Returns the typed command and its argument, or an error message. A unique prefix of the name suffices."""
    name, _, rest = typed.strip().partition(" ")
    fitting = [one for one in commands if one.name == name] or [one for one in commands if one.name.startswith(name)]
    if len(fitting) == 1 and name:
        return fitting[0], rest.strip()
    if not fitting or not name:
        return f"Unknown command {name!r}: ? lists the screens, tab completes."
    return may_be(name, [one.name for one in fitting])


class CommandInput(Input):
    """Input for commands with tab completion; several matches are announced with `Undecided`."""

    names: Sequence[str] = ()

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", show=False),
        Binding("escape", "give_up", show=False),
    ]

    class Undecided(Message):
        """Message that the completed text is a prefix of several command names."""

        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    def action_complete(self) -> None:
        self.value, several = completed(self.names, self.value)
        self.action_end()
        if several:
            self.post_message(self.Undecided(several))

    async def action_submit(self) -> None:
        self.line.enter(self.value)

    def action_give_up(self) -> None:
        self.line.leave()

    @property
    def line(self) -> CommandLine:
        assert isinstance(self.parent, CommandLine)
        return self.parent


class CommandLine(Horizontal):
    """Line at the bottom for commands and filters; hidden until opened."""

    class Entered(Message):
        def __init__(self, sign: str, typed: str) -> None:
            super().__init__()
            self.sign = sign
            self.typed = typed

    class Left(Message):
        """Message that the command line was left without a command."""

    def __init__(self) -> None:
        super().__init__(id="command-line")
        self.sign = ""

    def compose(self) -> ComposeResult:
        yield PlainText(id="command-sign")
        typed = CommandInput(id="command-typed", compact=True, max_length=400)
        typed.can_focus = False
        yield typed

    def open(self, sign: str, hint: str, value: str = "", names: Sequence[str] = ()) -> None:
        self.sign = sign
        self.query_one("#command-sign", PlainText).update(sign)
        typed = self.query_one(CommandInput)
        typed.can_focus = True
        typed.placeholder = hint
        typed.names = names
        typed.suggester = SuggestFromList(names, case_sensitive=False) if names else None
        typed.value = value
        self.add_class("-open")
        typed.focus()

    def close(self) -> None:
        """Hides the command line; no key reaches it while closed."""
        self.query_one(CommandInput).can_focus = False
        self.remove_class("-open")

    def enter(self, typed: str) -> None:
        """Closes the command line and posts its text before the program processes the next key."""
        self.close()
        self.app.post_message(self.Entered(self.sign, typed))

    def leave(self) -> None:
        self.close()
        self.app.post_message(self.Left())
