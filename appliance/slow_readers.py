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


class TimedStream(StreamingResponse):
    """A stream whose reader has so many seconds for each part."""

    stall_seconds: float = STALL_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(self.stall_seconds):
                    await send(message)
            except TimeoutError as error:
                raise StalledReader from error

        try:
            with contextlib.suppress(StalledReader):
                await super().__call__(scope, receive, send_in_time)
        finally:
            if isinstance(self.body_iterator, AsyncGenerator):
                await self.body_iterator.aclose()
