"""Messages of the gateway's part of the control API: tokens and kept sessions."""

from __future__ import annotations

from pydantic import Field

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


def would_train(session: KeptSession) -> str:
    """Describes how much of a kept session training could learn from."""
    turns = [node for node in session.nodes if node.sampled]
    samples = len(session.nodes) - len({node.parent for node in session.nodes} - {None})  # leaves
    trained = sum(node.trains for node in turns)
    return f"{trained} of {len(turns)} turns, in {samples} sample{'' if samples == 1 else 's'}"


class SessionDetail(FrozenModel):
    row: SessionRow
    session: KeptSession


class DeletedSessions(FrozenModel):
    deleted: int
