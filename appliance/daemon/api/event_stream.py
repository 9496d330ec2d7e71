"""Server-sent events (HTML Standard, section 9.2) of the ledger's events.

Invariants: a stream reads the ledger only after its reader took the previous events, so nothing is buffered for slow
readers; a reader that takes nothing for `STALL_SECONDS` is dropped and can resume with its last event number. The
number of streams is bounded. An event is JSON in one line, so no text in it can end a line of the stream.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from appliance.client.connection import Failure
from appliance.client.messages import NumberedEvent
from appliance.daemon.api.requests import number
from appliance.daemon.contract import RequestError
from appliance.daemon.views import ledger_views as views
from appliance.ledger.ledger import Ledger
from appliance.system.slow_readers import STALL_SECONDS, TimedStream

POLL_SECONDS = 0.5
"""Interval between looks at the ledger, in seconds."""
BEAT_SECONDS = 15.0
"""Interval between comments on an idle stream, in seconds, which reveal a disconnected reader."""
MOST_STREAMS = 32
PART = 100
"""Events per read."""


class EventStream:
    """The event streams of one ledger."""

    def __init__(self, ledger: Ledger, *, stall_seconds: float = STALL_SECONDS) -> None:
        self._ledger = ledger
        self.stall_seconds = stall_seconds
        self.open = 0
        """Number of open streams."""

    async def endpoint(self, request: Request) -> Response:
        """Streams events after `Last-Event-ID` or `?after=`, by default from now on.

        A number beyond the newest event also starts now: it comes from another ledger, such as one before a backup was
        restored.
        """
        text = request.headers.get("last-event-id", request.query_params.get("after"))
        try:
            after = None if text is None else number("after", text, 0)
        except RequestError as error:
            return _refused(Failure(message=str(error), hint=error.hint, exit_code=2), 400)
        newest = await run_in_threadpool(self._ledger.newest_event)
        if self.open >= MOST_STREAMS:  # no await between this check and the start of the stream
            text = f"{MOST_STREAMS} event streams are open"
            return _refused(Failure(message=text, hint="close one, or poll /v1/events", exit_code=4), 429)
        return _Stream(self, newest if after is None else min(after, newest))

    async def lines(self, after: int) -> AsyncIterator[bytes]:
        """Yields the stream's bytes, starting after that event."""
        yield b"retry: 2000\n\n"
        loop = asyncio.get_running_loop()
        said = loop.time()
        while True:
            found = await run_in_threadpool(views.numbered_events, self._ledger, after=after, limit=PART)
            if found:
                after = found[-1].number
                yield b"".join(map(framed, found))
                said = loop.time()
                continue
            if loop.time() - said > BEAT_SECONDS:
                yield b": nothing new\n\n"
                said = loop.time()
            await asyncio.sleep(POLL_SECONDS)


def framed(one: NumberedEvent) -> bytes:
    """Encodes one event for the stream."""
    data = json.dumps(one.event.model_dump(mode="json"))
    return f"id: {one.number}\nevent: event\ndata: {data}\n\n".encode()


class _Stream(TimedStream):
    """One stream, counted while open."""

    def __init__(self, owner: EventStream, after: int) -> None:
        super().__init__(owner.lines(after), media_type="text/event-stream", headers={"cache-control": "no-store"})
        self._owner, self.stall_seconds = owner, owner.stall_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._owner.open += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._owner.open -= 1


def _refused(failure: Failure, status: int) -> Response:
    return Response(failure.model_dump_json(), status_code=status, media_type="application/json")
