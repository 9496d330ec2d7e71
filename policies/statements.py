"""Statements signed by one person in their own name, with an expiry. Pure.

Invariants: a statement has exactly one signature, by the person it names; the current time and the latest recorded time
are arguments, so setting the clock back revives nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self, TypeVar

from pydantic import Field, ValidationError

from policies.contract.decision import PolicyRecord
from policies.contract.keys import NAME, KnownKey
from policies.contract.times import moment
from policies.envelopes import OpenEnvelope, canonical, open_envelope, payload_of
from policies.refusals import Refusal, StatementRefused

SLACK = timedelta(seconds=60)
"""Tolerated difference between two clock readings, as after a time server's correction."""


class PersonStatement(PolicyRecord):
    person: str = Field(pattern=NAME)
    nonce: str = Field(pattern=r"^[0-9a-f]{32}$")
    """Random and unique per statement."""
    made_at: str
    expires_at: str
    """Latest time at which the statement may be submitted."""

    @classmethod
    def valid_for(cls, hours: float, *, made_at: str, **fields: Any) -> Self:
        """Returns a person's unsigned statement that expires after `hours`. Raises ValueError for an invalid name."""
        until = moment(made_at) + timedelta(hours=hours)
        return cls(**fields, made_at=made_at, expires_at=until.isoformat(timespec="milliseconds"))

    def payload(self) -> bytes:
        return canonical(self.model_dump(mode="json"))


P = TypeVar("P", bound=PersonStatement)


def open_statement(envelope: bytes, kind: str, model: type[P], *, hint: str) -> tuple[P, OpenEnvelope]:
    """Parses a person's signed statement without verifying its signature. Raises StatementRefused (`SHAPE`)."""
    read = open_envelope(envelope, kind)
    if len(read.signers) != 1:
        raise StatementRefused(
            Refusal.SHAPE, "it must have exactly one signature", hint="have each person sign their own statement"
        )
    try:
        statement = model.model_validate(payload_of(read))
        moment(statement.made_at), moment(statement.expires_at)
    except (ValidationError, ValueError, OverflowError) as error:
        raise StatementRefused(Refusal.SHAPE, "the signed payload has another form", hint=hint) from error
    return statement, read


def require_own_name(statement: PersonStatement, key: KnownKey) -> None:
    """Raises StatementRefused (`PERSON`) if a statement names another person than the owner of its key."""
    if statement.person != key.person:
        raise StatementRefused(
            Refusal.PERSON,
            f"the statement names {statement.person}, but {key.person} signed it",
            hint="sign in your own name",
        )


def require_timely(statement: PersonStatement, *, valid_hours: float, now: str, latest: str) -> None:
    """Raises StatementRefused if the clock was set back, or a statement is from the future, valid for too long, or
    expired."""
    made, until, today = moment(statement.made_at), moment(statement.expires_at), moment(now)
    if today < moment(latest) - SLACK:
        raise StatementRefused(
            Refusal.CLOCK,
            f"this machine's clock says {now}, but the audit log's latest entry is from {latest}",
            hint="set the clock right, then sign again",
        )
    if made > today + SLACK:
        text = f"made at {statement.made_at}, which is in the future"
        raise StatementRefused(Refusal.FUTURE, text, hint="set the clocks right, then sign again")
    if until - made > timedelta(hours=valid_hours) + SLACK:
        hours = (until - made).total_seconds() / 3600
        text = f"valid for {hours:.1f} hours, more than the {valid_hours:g} allowed"
        raise StatementRefused(Refusal.LIFETIME, text, hint="sign a new statement")
    if max(today, moment(latest)) > until:
        text = f"valid until {statement.expires_at}"
        raise StatementRefused(Refusal.EXPIRED, text, hint="review it again, then sign a new statement")
