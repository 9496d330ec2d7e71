"""The newest events, read incrementally."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # loaded with the first answer
    from appliance.client import ApiClient, Event, Status


MOST = 500
Numbered: TypeAlias = "tuple[int, Event]"


class EventFeed:
    """Event cache for one thread; each `read` fetches only new events."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._data = ""
        self._known: tuple[Numbered, ...] = ()

    def read(self, client: ApiClient, status: Status) -> tuple[Numbered, ...]:
        """Fetches the daemon's new events; returns the newest, old and new, in ascending order. Raises ApiError."""
        if status.data != self._data or (self._known and status.last_event < self._known[-1][0]):
            self._known, self._data = (), status.data
        after = max(self._known[-1][0] if self._known else 0, status.last_event - self._most)
        if status.last_event > after:
            found = client.events(after=after, limit=self._most)
            self._known = (*self._known, *((one.number, one.event) for one in found))[-self._most :]
        return self._known
