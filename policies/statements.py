"""What one person signs: a statement in their own name that may be given until it expires. Pure.

What always holds: it has one signature, by the person whom it names; the time comes in, with the latest time that was
ever on record, so that a clock that was set back brings nothing to life again.
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
"""What two readings of one clock may differ by, as when a time server corrects it."""


class PersonStatement(PolicyRecord):
    person: str = Field(pattern=NAME)
    nonce: str = Field(pattern=r"^[0-9a-f]{32}$")
    """Random; no two statements have the same."""
    made_at: str
    expires_at: str
    """Until when it may be given."""

    @classmethod
    def valid_for(cls, hours: float, *, made_at: str, **fields: Any) -> Self:
        """A statement that may be given for so many hours. Raises ValueError for a bad name."""
        until = moment(made_at) + timedelta(hours=hours)
        return cls(**fields, made_at=made_at, expires_at=until.isoformat(timespec="milliseconds"))

    def payload(self) -> bytes:
        return canonical(self.model_dump(mode="json"))


P = TypeVar("P", bound=PersonStatement)


def open_statement(envelope: bytes, kind: str, model: type[P], *, hint: str) -> tuple[P, OpenEnvelope]:
    """What it says; nothing about the signature. Raises StatementRefused (`SHAPE`)."""
    read = open_envelope(envelope, kind)
    if len(read.signers) != 1:
        raise StatementRefused(Refusal.SHAPE, "it has one signature", hint="each person signs a statement of their own")
    try:
        statement = model.model_validate(payload_of(read))
        moment(statement.made_at), moment(statement.expires_at)
    except (ValidationError, ValueError, OverflowError) as error:
        raise StatementRefused(Refusal.SHAPE, "what is signed is something else", hint=hint) from error
    return statement, read


def require_own_name(statement: PersonStatement, key: KnownKey) -> None:
    """Raises StatementRefused (`PERSON`) when the key is another person's."""
    if statement.person != key.person:
        raise StatementRefused(
            Refusal.PERSON,
            f"it is in the name of {statement.person}, and signed by {key.person}",
            hint="sign in your own name",
        )


def require_timely(statement: PersonStatement, *, valid_hours: float, now: str, latest: str) -> None:
    """Raises StatementRefused: the clock was set back, or it is from the future, valid for too long, or expired."""
    made, until, today = moment(statement.made_at), moment(statement.expires_at), moment(now)
    if today < moment(latest) - SLACK:
        raise StatementRefused(
            Refusal.CLOCK,
            f"it is {now} by this machine's clock, and the audit log's latest entry is of {latest}",
            hint="set the clock right, then sign again",
        )
    if made > today + SLACK:
        text = f"it was made at {statement.made_at}, which is not yet"
        raise StatementRefused(Refusal.FUTURE, text, hint="set the clocks right, sign again")
    if until - made > timedelta(hours=valid_hours) + SLACK:
        hours = (until - made).total_seconds() / 3600
        text = f"it would be valid for {hours:.1f} hours, more than the {valid_hours:g} allowed"
        raise StatementRefused(Refusal.LIFETIME, text, hint="sign a new one")
    if max(today, moment(latest)) > until:
        text = f"it was valid until {statement.expires_at}"
        raise StatementRefused(Refusal.EXPIRED, text, hint="look again, and sign a new one")
