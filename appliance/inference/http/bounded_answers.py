"""HTTP transport that bounds the size and duration of an answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import httpx2

LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=0)
"""One connection per request, so that an overdue answer can be closed alone."""


class BoundedTransport(httpx2.HTTPTransport):
    """HTTP transport for openai's client library. Fails for an answer over the limits, and for a compressed one, which
    could expand beyond them."""

    def __init__(self, *, seconds: float, most: int) -> None:
        """Creates the HTTP transport with limits of one answer, in seconds and bytes."""
        super().__init__(trust_env=False, limits=LIMITS)
        self._seconds, self._most = seconds, most

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        until = time.monotonic() + self._seconds
        opened: list[socket.socket] = []

        def end() -> None:
            for one in opened:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

        def seen(event: str, info: Mapping[str, Any]) -> None:
            if event == "connection.connect_tcp.complete":
                opened.append(info["return_value"].get_extra_info("socket"))
                if time.monotonic() > until:
                    end()

        request.extensions = {**request.extensions, "trace": seen}
        # A read timeout restarts with each byte of a head, and with each head before the answer's own.
        timer = threading.Timer(self._seconds, end)
        timer.daemon = True
        timer.start()
        try:
            response = super().handle_request(request)
        except httpx2.TransportError as error:
            if time.monotonic() > until:
                raise httpx2.ReadTimeout("the answer takes too long") from error
            raise
        finally:
            timer.cancel()
        if response.headers.get("content-encoding", "identity") != "identity":
            response.close()
            raise httpx2.DecodingError("the answer is compressed, which was not requested")
        response.stream = _Beginning(response.stream, until, self._most)
        return response


class _Beginning(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, until: float, most: int) -> None:
        assert isinstance(stream, httpx2.SyncByteStream)
        self._stream, self._until, self._most = stream, until, most

    def __iter__(self) -> Iterator[bytes]:
        read = 0
        for part in self._stream:
            read += len(part)
            if read > self._most:
                raise httpx2.DecodingError(f"the answer has more than {self._most} bytes")
            if time.monotonic() > self._until:
                raise httpx2.ReadTimeout("the answer takes too long")
            yield part

    def close(self) -> None:
        self._stream.close()
