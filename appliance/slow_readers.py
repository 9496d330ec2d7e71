"""Lets go of whoever reads an answer too slowly, so that nothing is kept for them.

What always holds: a part of the answer that is not taken in time ends the answer; the server closes what was not ended;
what makes the parts has ended when the answer has, whoever went away.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

STALL_SECONDS = 20.0


class StalledReader(Exception):
    """Took nothing for too long."""


def in_time(send: Send, seconds: float) -> Send:
    """Sends each part so; raises StalledReader for one that was not taken."""

    async def send_in_time(message: Message) -> None:
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError as error:
            raise StalledReader from error

    return send_in_time


class TimedStream(StreamingResponse):
    """A stream whose reader has so many seconds for each part."""

    stall_seconds: float = STALL_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with contextlib.suppress(StalledReader):
                await super().__call__(scope, receive, in_time(send, self.stall_seconds))
        finally:
            if isinstance(self.body_iterator, AsyncGenerator):
                await self.body_iterator.aclose()
