"""A client of the control API that refuses every request that could change something."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.client import ApiClient, ApiError


class ReadOnlyClient(ApiClient):
    """Client of the daemon that raises ApiError for every request but GET, before it is sent."""

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        if method != "GET":
            raise ApiError("the screen was opened read-only", hint="open it without --read-only")
        return super().request(method, path, query, body, headers)
