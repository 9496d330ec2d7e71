"""What the control API says of the gateway's tokens and of the sessions that are kept."""

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
    """A token without its hash."""

    name: str
    consent: bool
    created: str
    revoked: str | None


class MadeToken(FrozenModel):
    """A new token; the secret is shown this once."""

    token: TokenView
    secret: str


class SessionRow(FrozenModel):
    """A session that is kept, in one line."""

    id: str
    token: str
    updated: str
    expires: str
    turns: int
    tokens: int
    """Sampled and forced ones that are kept; 0 where redaction took them."""
    redacted: bool
    verdict: str | None
    no_task: str
    """Why it becomes no task, refused ones included; empty where it may become one, or is one."""
    task_of: str = ""
    """The taskset that it is a task of by now."""


def becomes_task(row: SessionRow, otherwise: str) -> str:
    """Whether a session became a task, in words; `otherwise` where it may still become one."""
    return row.no_task or (f"is one of {row.task_of}" if row.task_of else otherwise)


class SessionDetail(FrozenModel):
    row: SessionRow
    session: KeptSession


class DeletedSessions(FrozenModel):
    deleted: int


class GatewayClient:
    """The gateway's part of the control API, over any connection to it."""

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
        """Newest first."""
        return self._api.get("/v1/gateway/sessions", list[SessionRow], limit=limit)

    def session(self, name: str) -> SessionDetail:
        return self._api.get(f"/v1/gateway/sessions/{quote(name, safe='')}", SessionDetail)

    def delete_session(self, name: str) -> DeletedSessions:
        """`all` are all of them."""
        path = f"/v1/gateway/sessions/{quote(name, safe='')}/delete"
        return self._api.read(self._api.request("POST", path, {}, b"{}"), DeletedSessions)
