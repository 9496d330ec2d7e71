"""What asks a person before something happens: a decision about the candidate, a rollback, a job; and two to read.

What puts a model into service is typed: the first eight digits of the digest that is shown, and then the
passphrase of the key that signs it. What the daemon then refuses is shown here, with its hint, and the dialog stays
open. A passphrase is never shown, and is forgotten when the key was opened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from pydantic import ValidationError
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input

from appliance.client import ApiError, KeyFileError, PredicateSpec, StatementRefused, SubmitJob
from tui.panels import PlainText
from tui.text import BAD, DIM, STRONG, plain

DIGITS = 8


class Dialog(ModalScreen[str | None]):
    """Ends with a sentence to show, or None when it was left."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", show=False)]

    def action_leave(self) -> None:
        self.dismiss(None)

    def complain(self, message: str, hint: str = "") -> None:
        text = Text()
        text.append_text(plain(message, BAD, lines=True))
        if hint:
            text.append_text(plain(f"\n{hint}", lines=True))
        self.query_one("#dialog-error", PlainText).show(text)

    @work(thread=True, exclusive=True)
    def attempt(self, act: Callable[[], str]) -> None:
        """Does it outside the screen's own thread; `act` returns the sentence to end with."""
        try:
            message = act()
        except (ApiError, KeyFileError, StatementRefused) as error:
            self.app.call_from_thread(self.complain, str(error), error.hint)
        else:
            self.app.call_from_thread(self.dismiss, message)


class TypedConfirmation(Dialog):
    """`act` happens when the first digits of `digest` were typed, and after them a passphrase where `key` names what it
    opens. It is called with the passphrase, empty without `key`. `to` says what they are typed for."""

    def __init__(
        self, title: str, digest: str, body: Text, act: Callable[[str], str], *, to: str, key: str = ""
    ) -> None:
        super().__init__()
        self._heading = title
        self._digest = digest
        self._body = body
        self._act = act
        self._to = to
        self._key = key

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            heading = Text().append(f"{self._heading}\n", STRONG)
            heading.append(f"{self._digest[:DIGITS]}", STRONG)
            heading.append(self._digest[DIGITS:], DIM)
            yield PlainText.of(heading)
            with VerticalScroll(id="dialog-body"):
                yield PlainText.of(self._body)
            yield PlainText(f"Type {self._digest[:DIGITS]} to {self._to}; escape leaves everything as it is.")
            yield Input(id="dialog-typed", max_length=64)
            if self._key:
                yield PlainText.of(plain(f"Passphrase of {self._key}, which signs it"))
                yield Input(id="dialog-secret", password=True, max_length=1000)
            yield PlainText(id="dialog-error")

    def on_mount(self) -> None:
        self.query_one("#dialog-typed", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        typed = self.query_one("#dialog-typed", Input).value.strip().lower()
        if len(typed) < DIGITS or not self._digest.startswith(typed):
            self.complain(f"That is not {self._digest[:DIGITS]}: nothing was done.")
            return
        if not self._key:
            self.attempt(lambda: self._act(""))
            return
        secret = self.query_one("#dialog-secret", Input)
        if event.input is not secret:
            secret.focus()
            return
        passphrase, secret.value = secret.value, ""
        self.attempt(lambda: self._act(passphrase))


class SubmitDialog(Dialog):
    """A question and a predicate over its answer; no known answer is needed."""

    def __init__(self, submit: Callable[[SubmitJob], str]) -> None:
        super().__init__()
        self._submit = submit

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield PlainText.of(Text("Submit a job", STRONG))
            yield PlainText("Question")
            yield Input(placeholder="find x with 7x+3=45", id="question", max_length=20_000)
            yield PlainText("Check: what must be true of x, the answer")
            yield Input(placeholder="7*x+3 == 45", id="check", max_length=2_000)
            yield PlainText.of(Text("Other checks: assay submit --help.  Enter submits, escape leaves.", DIM))
            yield PlainText(id="dialog-error")

    def on_mount(self) -> None:
        self.query_one("#question", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        question, check = (self.query_one(f"#{name}", Input) for name in ("question", "check"))
        if event.input is question and not check.value.strip():
            check.focus()
            return
        if not question.value.strip():
            self.complain("There is no question.", "Write what is to be found.")
            return
        if not check.value.strip():
            self.complain(
                "A question without a check cannot be answered with evidence.",
                "Write what must be true of the answer, such as 7*x+3 == 45.",
            )
            return
        try:
            spec = PredicateSpec(predicate=check.value.strip())
            job = SubmitJob(question=question.value.strip(), spec=spec)
        except ValidationError as error:
            self.complain(f"That cannot be a job: {error.errors()[0]['msg']}")
            return
        self.attempt(lambda: self._submit(job))


class ReadingScreen(Dialog):
    """One text on the whole screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,enter,question_mark", "leave", "back", show=False)]

    def __init__(self, title: str, text: Text) -> None:
        super().__init__()
        self._heading = title
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="reading") as pane:
            pane.border_title = plain(self._heading).plain.replace("[", "(")
            pane.border_subtitle = "escape: back"
            yield PlainText.of(self._text)

    def on_mount(self) -> None:
        self.query_one("#reading").focus()
