"""Disconnects clients that read an answer too slowly, so that no memory is held for them.

Invariants: a part not taken in time ends the answer, and the server closes the connection. The generator of the parts
is closed with the answer, on any disconnect.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

STALL_SECONDS = 20.0


class _StalledReader(Exception):
    """The client took no data of an answer for too long."""


async def answer_in_time(app: ASGIApp, scope: Scope, receive: Receive, send: Send, seconds: float) -> None:
    """Runs an ASGI application, and ends its answer if the client takes longer than `seconds` for one part of it."""

    async def send_in_time(message: Message) -> None:
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError as error:
            raise _StalledReader from error

    with contextlib.suppress(_StalledReader):  # the server closes what was not ended
        await app(scope, receive, send_in_time)


class TimedStream(StreamingResponse):
    """Streaming response that ends if the client takes too long for one part."""

    stall_seconds: float = STALL_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await answer_in_time(super().__call__, scope, receive, send, self.stall_seconds)
        finally:
            if isinstance(self.body_iterator, AsyncGenerator):
                await self.body_iterator.aclose()
