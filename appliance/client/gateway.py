"""Messages and client of the gateway's part of the control API: tokens and kept sessions."""

from __future__ import annotations

from urllib.parse import quote

from pydantic import Field

from appliance.client.connection import ApiConnection
from appliance.gateway.sessions import KeptSession
from runtime.model import FrozenModel


class NewToken(FrozenModel):
    name: str = Field(max_length=100)
    consent: bool = False


class TokenView(FrozenModel):
    """Access token of the gateway, without its hash."""

    name: str
    consent: bool
    created: str
    revoked: str | None


class MadeToken(FrozenModel):
    """New access token of the gateway; its secret is shown only once."""

    token: TokenView
    secret: str


class SessionRow(FrozenModel):
    """Summary of a gateway session that is kept."""

    id: str
    token: str
    updated: str
    expires: str
    turns: int
    tokens: int
    """Number of kept sampled and forced tokens; 0 after redaction."""
    redacted: bool
    verdict: str | None
    no_task: str
    """Reason why the session becomes no task, including refusals; empty if it may become or is one."""
    task_of: str = ""
    """Taskset that contains the session as a task."""


def becomes_task(row: SessionRow, otherwise: str) -> str:
    """Describes how a kept session became a task, or why it cannot; returns `otherwise` while it may still become
    one."""
    return row.no_task or (f"is one of {row.task_of}" if row.task_of else otherwise)


class SessionDetail(FrozenModel):
    row: SessionRow
    session: KeptSession


class DeletedSessions(FrozenModel):
    deleted: int


class GatewayClient:
    """Client of the gateway's part of the control API, over any connection."""

    def __init__(self, connection: ApiConnection) -> None:
        self._api = connection

    def tokens(self) -> list[TokenView]:
        return self._api.get("/v1/gateway/tokens", list[TokenView])

    def new_token(self, name: str, *, consent: bool) -> MadeToken:
        return self._api.post("/v1/gateway/tokens", NewToken(name=name, consent=consent), MadeToken)

    def revoke_token(self, name: str) -> TokenView:
        path = f"/v1/gateway/tokens/{quote(name, safe='')}/revoke"
        return self._api.read(self._api.request("POST", path, {}, b"{}"), TokenView)

    def sessions(self, limit: int) -> list[SessionRow]:
        """Returns the kept gateway sessions, newest first."""
        return self._api.get("/v1/gateway/sessions", list[SessionRow], limit=limit)

    def session(self, name: str) -> SessionDetail:
        return self._api.get(f"/v1/gateway/sessions/{quote(name, safe='')}", SessionDetail)

    def delete_session(self, name: str) -> DeletedSessions:
        """Deletes a kept gateway session; the name `all` deletes every session."""
        path = f"/v1/gateway/sessions/{quote(name, safe='')}/delete"
        return self._api.read(self._api.request("POST", path, {}, b"{}"), DeletedSessions)
