"""API routes of the gateway's tokens and stored sessions."""

from __future__ import annotations

from appliance.client.gateway import DeletedSessions, MadeToken, NewToken, SessionDetail, SessionRow, TokenView
from appliance.daemon.api.requests import Answer, ApiRequest, ApiRoute, get, post
from appliance.daemon.coordination.core import Core


def gateway_routes(core: Core) -> list[ApiRoute]:
    desk = core.gateway

    def make(asked: ApiRequest) -> Answer:
        wanted = asked.body(NewToken)
        return desk.new_token(wanted.name, consent=wanted.consent)

    return [
        get("/v1/gateway/tokens", list[TokenView], lambda asked: desk.tokens(), "Tokens of the gateway."),
        get(
            "/v1/gateway/sessions",
            list[SessionRow],
            lambda asked: desk.sessions(asked.limit(50)),
            "Stored sessions, newest first.",
            ("limit",),
        ),
        get(
            "/v1/gateway/sessions/{id}",
            SessionDetail,
            lambda asked: desk.session(asked.path["id"]),
            "A stored session.",
        ),
        post("/v1/gateway/tokens", MadeToken, make, "Creates a token; its secret is shown only once.", NewToken),
        post(
            "/v1/gateway/tokens/{name}/revoke",
            TokenView,
            lambda asked: desk.revoke_token(asked.path["name"]),
            "Revokes a token.",
        ),
        post(
            "/v1/gateway/sessions/{id}/delete",
            DeletedSessions,
            lambda asked: desk.delete(asked.path["id"]),
            "Deletes a session, or `all`.",
        ),
    ]
