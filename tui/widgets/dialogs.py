"""Dialogs that ask before something happens (a decision, a rollback, a job), and a screen for reading.

To put a model into service, a person types the first eight digits of its digest and the passphrase of the signing key.
If the daemon refuses, its message and hint appear in the dialog, which stays open.

Invariants: a passphrase is never shown, even when typed too early, and is forgotten once the key is open. Messages
stand above the input and long text scrolls, so both are visible on 24 lines. Each dialog has its own footer; keys of
the screen behind are inactive and not shown. A request is sent once, however often enter is pressed, and the dialog
stays until the answer comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from pydantic import ValidationError
from rich.text import Text
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Footer, Input

from appliance.client import ApiError, KeyFileError, PredicateSpec, StatementRefused, SubmitJob
from tui.widgets.panels import PlainText
from tui.widgets.text import BAD, CARE, DIM, STRONG, markup_safe, plain

DIGITS = 8
HEXADECIMAL = "0123456789abcdef"
LEAST_LINES = 3
"""Minimum lines of a dialog's scrolling text; must match assay.tcss."""


class Dialog(ModalScreen[str | None]):
    """A modal dialog; returns a sentence to show, or None if it was left."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave")]
    working = False
    """True while a request waits for its answer."""

    def action_leave(self) -> None:
        if self.working:
            self.tell(plain("The request was sent and cannot be cancelled: wait for the answer.", CARE))
        else:
            self.dismiss(None)

    def complain(self, message: str, hint: str = "") -> None:
        text = Text()
        text.append_text(plain(message, BAD, lines=True))
        if hint:
            text.append_text(plain(f"\n{hint}", lines=True))
        self.tell(text)

    def tell(self, text: Text) -> None:
        """Shows a message in its reserved place, which takes no line while empty; ignored once the dialog is closed."""
        for place in self.query("#dialog-error").results(PlainText):
            place.show(text)
            place.display = bool(text)

    def attempt(self, act: Callable[[], str]) -> None:
        """Runs `act` in a thread, unless one is running. `act` returns the sentence that closes the dialog."""
        if not self.working:
            self.working = True
            self.tell(plain("working …", DIM))
            self._do(act)

    @work(thread=True)
    def _do(self, act: Callable[[], str]) -> None:
        try:
            message = act()
        except (ApiError, KeyFileError, StatementRefused) as error:
            self.app.call_from_thread(self._refused, str(error), error.hint)
        else:
            self.app.call_from_thread(self.dismiss, message)

    def _refused(self, message: str, hint: str) -> None:
        self.working = False
        self.complain(message, hint)


class DialogBox(Vertical):
    """Dialog frame as high as its content, at most the screen; its scrolling text takes the height that the other parts
    leave."""

    @property
    def _has_relative_children_height(self) -> bool:
        """Always False; otherwise Textual would stretch the box to the screen's height."""
        return False

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Returns the dialog's height with its whole text, for which the layout counts only the minimum."""
        whole = self.query_one("#dialog-body").get_content_height(container, viewport, width)
        return self.arrange(Size(width, 0)).total_region.height + max(0, whole - LEAST_LINES)


class NameInput(Input):
    """Input that accepts a prefix of the requested name; pasting the whole name counts as its prefix. Any other text
    may be a passphrase and is shown as dots."""

    def __init__(self, asked: str, *, id: str) -> None:  # noqa: A002
        digits = set(asked) <= set(HEXADECIMAL)
        super().__init__(id=id, max_length=len(asked), restrict="[0-9a-fA-F]*" if digits else None)
        self._asked = asked
        self._strange = False

    @property
    def is_right(self) -> bool:
        return self.value.strip().lower() == self._asked.lower()

    def restricted(self) -> None:
        """Shows the input as dots after a key that cannot occur in the requested name."""
        super().restricted()
        self._strange = True
        self._hide()

    def watch_value(self, value: str) -> None:
        self._strange = self._strange and bool(value)
        self._hide()

    def _hide(self) -> None:
        self.password = self._strange or not self._asked.lower().startswith(self.value.lower())

    def on_paste(self, event: events.Paste) -> None:
        if self._asked.lower() in event.text.lower():
            event.prevent_default()
            event.stop()
            self.value = self._asked


class TypedConfirmation(Dialog):
    """Dialog that runs `act` after a person typed the first characters of `name`, and the passphrase of `key` if given.
    `act` gets the passphrase, empty without `key`. `to` says what the confirmation does; `kind` is the common prefix of
    such names, which is not typed. Enter always moves from the digits to the passphrase, right or wrong: the next text
    typed belongs into a hidden line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,pagedown", "read(1)", "read on", key_display="↑ ↓", priority=True),
        Binding("up,pageup", "read(-1)", "read back", show=False, priority=True),
    ]

    def __init__(
        self, title: str, name: str, body: Text, act: Callable[[str], str], *, to: str, key: str = "", kind: str = ""
    ) -> None:
        super().__init__()
        self._heading = title
        self._kind = kind if name.startswith(kind) else ""
        self._whole = name.removeprefix(self._kind)
        self._asked = self._whole[:DIGITS]
        self._body = body
        self._act = act
        self._to = to
        self._key = key

    def compose(self) -> ComposeResult:
        with DialogBox(id="dialog"):
            heading = Text().append(f"{self._heading}\n", STRONG)
            heading.append(self._kind, DIM)
            heading.append(self._asked, STRONG)
            heading.append(self._whole[DIGITS:], DIM)
            yield PlainText.of(heading)
            with VerticalScroll(id="dialog-body"):
                yield PlainText.of(self._body)
            yield PlainText(id="dialog-error")
            yield PlainText(f"Type {self._asked} to {self._to}; escape cancels.")
            yield NameInput(self._asked, id="dialog-typed")
            if self._key:
                yield PlainText.of(plain(f"Passphrase of {self._key}, which signs it"))
                yield Input(id="dialog-secret", password=True, max_length=1000)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        if self.query_one_optional("#dialog-typed") is None:
            return  # the program ends while it opens
        self.tell(Text())
        self._typed.focus()
        self.watch(self.query_one("#dialog-body"), "show_vertical_scrollbar", self.refresh_bindings)

    @property
    def _typed(self) -> NameInput:
        return self.query_one("#dialog-typed", NameInput)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enables the scroll keys only if the dialog's text does not fit."""
        if action == "read":
            body = self.query_one_optional("#dialog-body", VerticalScroll)
            return body is not None and body.show_vertical_scrollbar
        return super().check_action(action, parameters)

    def action_read(self, direction: int) -> None:
        body = self.query_one("#dialog-body", VerticalScroll)
        body.scroll_relative(y=direction * max(1, body.size.height - 1), animate=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self.working:
            return
        typed, wrong = self._typed, f"Wrong digits, expected {self._asked}: nothing was done."
        secret = self.query_one_optional("#dialog-secret", Input)
        if secret is not None and event.input is typed:
            secret.focus()
            if typed.is_right:
                self.tell(Text())
            else:
                self.complain(wrong, "Press enter to type them again.")
            return
        passphrase = "" if secret is None else secret.value
        if secret is not None:
            secret.value = ""
        if not typed.is_right:
            typed.value = ""
            typed.focus()
            self.complain(wrong)
            return
        self.attempt(lambda: self._act(passphrase))


class SubmitDialog(Dialog):
    """Dialog that submits a job: a question, and a predicate over its answer; no known answer is needed."""

    def __init__(self, submit: Callable[[SubmitJob], str]) -> None:
        super().__init__()
        self._submit = submit

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield PlainText.of(Text("Submit a job", STRONG))
            yield PlainText(id="dialog-error")
            yield PlainText("Question")
            yield Input(placeholder="find x with 7x+3=45", id="question", max_length=20_000)
            yield PlainText("Check: what must be true of x, the answer")
            yield Input(placeholder="7*x+3 == 45", id="check", max_length=2_000)
            yield PlainText.of(Text("Other checks: assay submit --help.  Enter submits, escape leaves.", DIM))
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        if self.query_one_optional("#question") is None:
            return  # the program ends while it opens
        self.tell(Text())
        self.query_one("#question", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self.working:
            return
        question, check = (self.query_one(f"#{name}", Input) for name in ("question", "check"))
        if event.input is question and not check.value.strip():
            check.focus()
            return
        if not question.value.strip():
            self.complain("The question is empty.", "Enter a question.")
            return
        if not check.value.strip():
            self.complain(
                "A question without a check cannot be answered with evidence.",
                "Enter a condition on the answer, such as 7*x+3 == 45.",
            )
            return
        try:
            spec = PredicateSpec(predicate=check.value.strip())
            job = SubmitJob(question=question.value.strip(), spec=spec)
        except ValidationError as error:
            self.complain(f"Invalid job: {error.errors()[0]['msg']}")
            return
        self.attempt(lambda: self._submit(job))


class ReadingScreen(Dialog):
    """Dialog that shows one text on the whole screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "leave", "back")]

    def __init__(self, title: str, text: Text) -> None:
        super().__init__()
        self._heading = title
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="reading") as pane:
            pane.border_title = markup_safe(self._heading)
            yield PlainText.of(self._text)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        if (pane := self.query_one_optional("#reading")) is not None:  # else the program ends while it opens
            pane.focus()
