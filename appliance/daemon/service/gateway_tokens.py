"""Creates and revokes gateway tokens, and shows and deletes stored sessions.

Invariants: creating or revoking a token is in the audit log, without its hash; expired sessions are deleted before
anything is shown or learned from.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from pydantic import ValidationError

from appliance.client.gateway import DeletedSessions, MadeToken, SessionDetail, SessionRow, TokenView
from appliance.client.status import GatewayStatus
from appliance.config.configuration import GatewaySettings
from appliance.daemon.contract import BrokenError, RequestError
from appliance.daemon.governance.trust import Trust
from appliance.daemon.service.own_work import DecidedQuestion
from appliance.daemon.views.ledger_views import session_named
from appliance.gateway.sessions import (
    KeptSession,
    KeptSessionError,
    KeptSessions,
    PassedSession,
    passed_session,
    why_no_task,
)
from appliance.gateway.tokens import GatewayToken, new_token, read_tokens, revoke_token
from curriculum.own.rows import QUESTION_CHARS, key_of_question

EVERY = "all"
LISTEN_SECONDS = 0.2
RETENTION_SECONDS = 600.0
"""Interval between deletions of expired sessions, in seconds."""
log = structlog.get_logger("assay")


@dataclass
class GatewayDesk:
    """Creates and revokes gateway tokens, shows and deletes stored sessions; thread-safe."""

    trust: Trust
    data: Path
    settings: GatewaySettings
    now: Callable[[], str]
    decided: Callable[[], Mapping[str, DecidedQuestion]] = dict
    """Returns the outcome of collected questions, by key."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def status(self) -> GatewayStatus:
        """Returns the gateway's address, its number of valid tokens, and whether something listens there."""
        family = socket.AF_INET6 if ":" in self.settings.address else socket.AF_INET
        with socket.socket(family) as probe:
            probe.settimeout(LISTEN_SECONDS)
            answers = probe.connect_ex((self.settings.address, self.settings.port)) == 0
        in_use = [one for one in read_tokens(self.data) if one.revoked is None]
        return GatewayStatus(
            enabled=self.settings.enabled, base_url=self.settings.base_url, answers=answers, tokens=len(in_use)
        )

    def tokens(self) -> list[TokenView]:
        return [_view(one) for one in read_tokens(self.data)]

    def new_token(self, name: str, *, consent: bool) -> MadeToken:
        """Creates a gateway token and returns it with its secret. Raises RequestError for an invalid name,
        GatewayTokenError, BrokenError."""
        with self._lock:
            try:
                made, secret = new_token(self.data, name, consent=consent, now=self.now())
            except ValidationError:
                raise RequestError(
                    f"invalid token name {name[:40]!r}", hint="use lowercase letters, digits, _, . and -"
                ) from None
            except OSError as error:
                raise BrokenError(f"the token cannot be stored: {error.strerror}", hint="free some space") from error
            self.trust.log("gateway.token.made", name=name, consent="yes" if consent else "no")
        return MadeToken(token=_view(made), secret=secret)

    def revoke_token(self, name: str) -> TokenView:
        """Revokes a gateway token by name. Raises GatewayTokenError, BrokenError."""
        with self._lock:
            try:
                revoked = revoke_token(self.data, name, self.now())
            except OSError as error:
                raise BrokenError(f"the tokens cannot be written: {error.strerror}", hint="free some space") from error
            self.trust.log("gateway.token.revoked", name=name)
        return _view(revoked)

    def sessions(self, limit: int) -> list[SessionRow]:
        """Returns stored gateway sessions, newest first; deletes expired ones before."""
        decided = self.decided()
        return [_row(one, decided) for one in self._kept().all(limit)]

    def session(self, name: str) -> SessionDetail:
        """Returns a stored gateway session by name or prefix. Raises KeptSessionError, AmbiguousPrefixError."""
        kept = self._kept()
        found = kept.get(session_named(kept.names(), name))
        return SessionDetail(row=_row(found, self.decided()), session=found)

    def delete(self, name: str) -> DeletedSessions:
        """Deletes a stored gateway session by name or prefix, or all of them for `all`. Raises KeptSessionError,
        AmbiguousPrefixError, BrokenError."""
        kept = self._kept()
        known = kept.names()
        names = known if name == EVERY else [session_named(known, name)]
        deleted = 0
        try:
            for one in names:
                try:
                    kept.delete(one)
                    deleted += 1
                except KeptSessionError:
                    if name != EVERY:
                        raise  # when deleting all, one may have been deleted meanwhile
        except OSError as error:
            raise BrokenError(f"{one} cannot be deleted: {error.strerror}", hint="check the disk") from error
        return DeletedSessions(deleted=deleted)

    def passed(self) -> list[PassedSession]:
        """Returns stored gateway sessions that may become tasks, newest first."""
        return [found for one in self._kept().all() if (found := passed_session(one)) is not None]

    def expire(self) -> float:
        """Deletes expired gateway sessions; returns the seconds until the next run. A failure is only logged."""
        try:
            self._kept()
        except BrokenError as error:
            log.warning("sessions were not deleted", problem=str(error), hint=error.hint)
        return RETENTION_SECONDS

    def _kept(self) -> KeptSessions:
        kept = KeptSessions(self.data)
        try:
            kept.expire(self.now(), self.settings.retention_days)
        except OSError as error:
            raise BrokenError(f"old sessions cannot be deleted: {error.strerror}", hint="check the disk") from error
        return kept


def _view(token: GatewayToken) -> TokenView:
    return TokenView(name=token.name, consent=token.consent, created=token.created, revoked=token.revoked)


def _row(kept: KeptSession, decided: Mapping[str, DecidedQuestion]) -> SessionRow:
    task_of, no_task = became(kept, decided)
    return SessionRow(
        id=kept.id,
        token=kept.token,
        updated=kept.updated,
        expires=kept.expires,
        turns=kept.turns,
        tokens=sum(len(node.ids) for node in kept.nodes),
        redacted=kept.redacted,
        verdict=None if kept.verdict is None else kept.verdict.outcome.value,
        no_task=no_task,
        task_of=task_of,
    )


def became(kept: KeptSession, decided: Mapping[str, DecidedQuestion]) -> tuple[str, str]:
    """Returns the taskset that has a gateway session's task, and why the session cannot become one; both empty if it
    still may."""
    passed = passed_session(kept)
    if passed is None:
        return "", why_no_task(kept)
    if not 0 < len(passed.question) <= QUESTION_CHARS:
        return "", f"a task's question has at most {QUESTION_CHARS:,} characters"
    known = decided.get(key_of_question(passed.question))
    if known is None:
        return "", ""
    if known.refused:
        return "", f"refused: {known.refused}"
    if known.origin == f"session {kept.id}":
        return known.taskset, ""
    return "", f"its question is in {known.taskset} already"
