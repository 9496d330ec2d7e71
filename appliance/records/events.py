"""Events show progress to people."""

from __future__ import annotations

from pydantic import Field

from appliance.records.record import Record

SEPARATION = "separation"
"""The kind that says what was thrown out as a copy of what is kept apart: figures by `door/check`."""


class Event(Record):
    """Is one line of progress, for people and for the TUI; never acted on."""

    kind: str
    text: str
    figures: dict[str, float] = Field(default_factory=dict)
    created: str
