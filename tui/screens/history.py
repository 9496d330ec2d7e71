"""The screen History: per taskset, what each promotion gained and lost against the champion, and against the anchor.

Invariants: figures are those that the decision counted; a taskset without its anchor's answers says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import work

from appliance.client import ApiClient, ApiError
from appliance.client.nights import PromotionView, TasksetChange
from tui.widgets.dialogs import ReadingScreen
from tui.widgets.panels import PlainText
from tui.widgets.text import BAD, CARE, DIM, GOOD, STRONG, plain, short

MOST = 100
"""Promotions shown."""


def history_text(promotions: Sequence[PromotionView]) -> Text:
    """Lists the promotions, newest first, each with its tasksets."""
    text = Text()
    for one in promotions:
        text.append_text(plain(f"{one.at[:10]}  {short(one.candidate)}", STRONG))
        text.append_text(plain(f" after {short(one.champion)}: {one.reason}\n", DIM))
        if one.taken_back:
            text.append_text(plain(f"  taken back: {one.taken_back}\n", BAD))
        for change in one.families:
            text.append_text(_line(change, one.champion))
        text.append("\n")
    return text if promotions else plain("No promotion yet.", DIM)


def _line(change: TasksetChange, champion: str) -> Text:
    text = plain(f"  {change.family:<20} ", DIM, limit=24)
    text.append(f"+{change.gained:<4}", GOOD if change.gained else DIM)
    text.append(f" -{change.lost:<4}", BAD if change.lost else DIM)
    text.append(f" of {change.items:<5}")
    if change.to_anchor:
        whose = "the champion" if change.anchor == champion else short(change.anchor)
        lost = change.anchor_gained < change.anchor_lost or not change.anchor_items
        link = "to" if change.anchor_items else "beside"
        text.append_text(plain(f" {change.to_anchor} {link} the best before, {whose}", CARE if lost else DIM))
    text.append("\n")
    return text


class HistoryScreen(ReadingScreen):
    def __init__(self, client: ApiClient) -> None:
        super().__init__("gains and losses of promotions", plain("reading …", DIM))
        self._client = client

    def on_mount(self) -> None:
        super().on_mount()
        self._read()

    @work(thread=True)
    def _read(self) -> None:
        try:
            text = history_text(self._client.promotions(MOST))
        except ApiError as error:
            text = plain(f"{error}: {error.hint}", BAD, lines=True)
        self.app.call_from_thread(self._arrived, text)

    def _arrived(self, text: Text) -> None:
        if self.is_mounted:
            self.query_one(PlainText).show(text)
