"""Lets go of whoever reads an answer too slowly, so that nothing is kept for them.

What always holds: a part of the answer that is not taken in time ends the answer; the server closes what was not ended;
what makes the parts has ended when the answer has, whoever went away.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

STALL_SECONDS = 20.0


class _StalledReader(Exception):
    """Took nothing for too long."""


async def answer_in_time(app: ASGIApp, scope: Scope, receive: Receive, send: Send, seconds: float) -> None:
    """Has the application answer a reader who has so many seconds for each part."""

    async def send_in_time(message: Message) -> None:
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError as error:
            raise _StalledReader from error

    with contextlib.suppress(_StalledReader):  # the server closes what was not ended
        await app(scope, receive, send_in_time)


class TimedStream(StreamingResponse):
    """A stream whose reader has so many seconds for each part."""

    stall_seconds: float = STALL_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await answer_in_time(super().__call__, scope, receive, send, self.stall_seconds)
        finally:
            if isinstance(self.body_iterator, AsyncGenerator):
                await self.body_iterator.aclose()
