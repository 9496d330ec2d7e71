"""Progress events for people."""

from __future__ import annotations

from pydantic import Field

from appliance.records.record import Record

SEPARATION = "separation"
"""Kind of the event that counts removed copies of held-out questions: figures by `door/check`."""


class Event(Record):
    """One line of progress, for people and the TUI; never acted on."""

    kind: str
    text: str
    figures: dict[str, float] = Field(default_factory=dict)
    created: str
