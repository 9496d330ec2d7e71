"""Events show progress to people."""

from __future__ import annotations

from pydantic import Field

from appliance.records.record import Record


class Event(Record):
    """Is one line of progress, for people and for the TUI; never acted on."""

    kind: str
    text: str
    figures: dict[str, float] = Field(default_factory=dict)
    created: str
