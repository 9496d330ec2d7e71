"""Reads what an HTTP server answers, within bounds: so many bytes and seconds at most, whatever it sends."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx2


class BoundedTransport(httpx2.HTTPTransport):
    """Is that of the library which openai speaks HTTP with. It gives up an answer that is over the bounds, and one that
    is compressed, which would be larger than what was read of it."""

    def __init__(self, *, seconds: float, most: int) -> None:
        """`seconds` and bytes that one answer may have."""
        super().__init__(trust_env=False)
        self._seconds, self._most = seconds, most

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        until = time.monotonic() + self._seconds
        response = super().handle_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            response.close()
            raise httpx2.DecodingError("the answer is compressed, which was not asked for")
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
