"""The screen Logs: the worker's log, the broker's log and all events, each with a filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from appliance.client import ApiClient, LogPart, Status
from tui.screens.now import events_text, events_with, without_repeats
from tui.widgets.panels import Detail, PlainText
from tui.widgets.text import BAD, CARE, DIM, EventFeed, plain
from tui.widgets.view import Answers, ApiQuestion, Pane

LINES = 500
SOURCES = ("worker", "broker", "events")
ALARMS = (("error", BAD), ("traceback", BAD), ("warning", CARE))


class LogsPane(Pane):
    FILTER = "words of a line"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "source('worker')", "worker"),
        Binding("b", "source('broker')", "broker"),
        Binding("e", "source('events')", "events"),
        Binding("f", "follow", "follow"),
    ]
    KEYS = (("w, b, e", "worker's log, broker's log, events"), ("f", "follow the newest line, or stop"))

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._source = SOURCES[0]
        self._follows = True
        self._feed = EventFeed()

    def compose(self) -> ComposeResult:
        yield PlainText(classes="pane-line")
        yield Detail(id="log")

    def questions(self) -> Mapping[str, ApiQuestion]:
        if self._source == "events":
            return {"lines": ApiQuestion("log events", self._feed.read)}
        source = self._source

        def read(client: ApiClient, _status: Status) -> LogPart:
            return client.log(source, limit=LINES)

        return {"lines": ApiQuestion(("log", source), read, live=True)}

    def show(self, status: Status, answers: Answers) -> None:
        text = plain("")
        for name in SOURCES:
            text.append(f" {name} ", "bold reverse" if name == self._source else DIM)
        text.append("   follows" if self._follows else "   f follows", DIM)
        text.append("   times in UTC   / step lists every step" if self._source == "events" else "", DIM)
        if self.filtered_by:
            text.append_text(plain(f"   / {self.filtered_by}", "bold", limit=60))
        self.query_one(".pane-line", PlainText).show(text)
        log = self.query_one("#log", Detail)
        found = answers.get("lines")
        if found is None:
            log.show_detail(plain("reading …", DIM), moved=False)
        elif isinstance(found, LogPart):
            log.show_detail(lines_text(found.lines, self.filtered_by, self._source), moved=False)
        else:
            shown = events_with(found, self.filtered_by) if self.filtered_by else without_repeats(found[::-1])[::-1]
            log.show_detail(events_text(shown, self.filtered_by), moved=False)
        if self._follows:
            log.call_after_refresh(log.scroll_end, animate=False)

    def action_source(self, name: str) -> None:
        self._source = name
        self.host.ask()

    def action_follow(self) -> None:
        self._follows = not self._follows
        self.host.ask()


def lines_text(lines: Sequence[str], wanted: str, source: str) -> Text:
    fitting = [line for line in lines if wanted.casefold() in line.casefold()]
    if not fitting:
        return plain(
            "No line matches." if wanted else f"The {source}'s log is empty. It fills while a night or a job runs.", DIM
        )
    text = Text()
    for line in fitting:
        lowered = line.casefold()
        style = next((style for word, style in ALARMS if word in lowered), "")
        text.append_text(plain(line, style, limit=2_000))
        text.append("\n")
    return text
