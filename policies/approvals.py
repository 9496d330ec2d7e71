"""A person's approval or rejection of a candidate, as it is signed, and every reason for which it has no effect.

What always holds: it counts only for the very decision that was shown, about that candidate, once, and only with the
signature of a person's valid key; an approval moreover only under the policy in force, until it expires. It is checked
when it is given, and again whenever a decision rests on it: a record of it says what was signed, or it counts for
nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from policies.contract.keys import KnownKey
from policies.contract.times import moment
from policies.envelopes import PREFIX
from policies.refusals import Refusal, StatementRefused
from policies.register import Register
from policies.statements import SLACK, PersonStatement, open_statement, require_own_name, require_timely

APPROVAL_TYPE = f"{PREFIX}word+json"
EVERYBODY = "*"
RECORDED = {
    "candidate": Refusal.CANDIDATE,
    "verdict": Refusal.DECISION,
    "decision": Refusal.DECISION,
    "person": Refusal.PERSON,
    "key": Refusal.PERSON,
    "nonce": Refusal.REPLAYED,
}
"""The fields of a record of an approval, and what it is refused for where one is not what was signed."""

Digest = Field(pattern=r"^[0-9a-f]{64}$")


class SignedApproval(PersonStatement):
    """What a person signs."""

    format: Literal["assay-word-1"] = "assay-word-1"
    verdict: Literal["approve", "reject"]
    candidate: str = Digest
    """Manifest digest of the model."""
    decision: str = Digest
    """Digest of the decision that the person was shown, with every gate's figure."""
    policy: str = Digest
    """Digest of the policy that it was made under."""


@dataclass(frozen=True)
class ApprovalSubject:
    """What the statement has to be about, and under which rules."""

    verdict: Literal["approve", "reject"]
    candidate: str
    decision: str
    policy: str
    valid_hours: float
    who: Sequence[str]
    """Names of persons who may approve; `*` for everybody in the register."""


def verify_approval(
    envelope: bytes,
    question: ApprovalSubject,
    register: Register,
    *,
    used: Collection[str],
    last_at: Mapping[str, str] | None = None,
    now: str,
    latest: str,
) -> tuple[SignedApproval, KnownKey]:
    """The statement in the envelope and the key that signed it, when it counts. Raises StatementRefused with the
    reason's name.

    `used` are the nonces on record, `last_at` when each person made their last statement about the candidate, `latest`
    the latest time on record; times are UTC in ISO 8601.
    """
    signed, key = read_approval(envelope, register)
    last = (last_at or {}).get(signed.person)
    if signed.nonce in used or (last is not None and moment(signed.made_at) < moment(last)):
        raise StatementRefused(
            Refusal.REPLAYED,
            "it was given before, or is older than the person's last one about this candidate",
            hint="sign a new one on what you are shown now",
        )
    if signed.candidate != question.candidate:
        raise StatementRefused(
            Refusal.CANDIDATE,
            f"it is about {signed.candidate[:12]}, not about {question.candidate[:12]}",
            hint="look at this candidate, and sign for it",
        )
    if signed.verdict != question.verdict:
        text = f"it says {signed.verdict}, not {question.verdict}"
        raise StatementRefused(Refusal.DECISION, text, hint="send it to where it belongs")
    if signed.verdict == "approve" and signed.policy != question.policy:
        raise StatementRefused(
            Refusal.POLICY,
            f"it was given under the policy {signed.policy[:12]}, and {question.policy[:12]} is in force",
            hint="evaluate the candidate under the policy in force, look at the decision, then sign",
        )
    if signed.decision != question.decision:
        raise StatementRefused(
            Refusal.DECISION,
            f"there is a newer decision about {signed.candidate[:12]} than the one you were shown",
            hint="look at it, then sign again",
        )
    _require_named(signed, question.who)
    require_timely(signed, valid_hours=question.valid_hours, now=now, latest=latest)
    return signed, key


def read_approval(
    envelope: bytes, register: Register, *, also_revoked: bool = False
) -> tuple[SignedApproval, KnownKey]:
    """Who signed, and what: the shape, the key and the signature, and nothing about the time now. Raises
    StatementRefused."""
    signed, read = open_statement(envelope, APPROVAL_TYPE, SignedApproval, hint="use `assay model`")
    key = register.signers(read, also_revoked=also_revoked)[0]
    if moment(signed.expires_at) <= moment(signed.made_at):
        raise StatementRefused(Refusal.EXPIRED, "it expires before it was made", hint="sign a new one")
    require_own_name(signed, key)
    return signed, key


def verify_recorded_approval(
    record: Mapping[str, str], register: Register, *, who: Sequence[str]
) -> tuple[SignedApproval, KnownKey]:
    """The statement behind a record of it, and its key, which may have been revoked since. Whoever can write the
    database could have written the record: the envelope, the key's fingerprint and the fields of the statement.

    Raises StatementRefused with the reason's name where it was not signed as it must be, or the record says anything
    else.
    """
    signed, key = read_approval(record["envelope"].encode(), register, also_revoked=True)
    was_signed = {**signed.model_dump(), "key": key.fingerprint}
    for field, name in RECORDED.items():
        if was_signed[field] != record[field]:
            raise StatementRefused(
                name,
                f"the record has {record[field]!r}, and what was signed is {was_signed[field]!r}",
                hint="somebody wrote into the database: sign again, on what you are shown now",
            )
    _require_named(signed, who)
    return signed, key


def taken_back_until(signed: Iterable[tuple[SignedApproval, KnownKey]], *, at: str) -> dict[str, datetime]:
    """By person, until when their rejections were taken back by an approval, which may have expired since."""
    found: dict[str, datetime] = {}
    for one, key in signed:
        made = moment(one.made_at)
        if one.verdict == "approve" and key.valid and made - moment(at) <= SLACK:
            found[one.person] = max(made, found.get(one.person, made))
    return found


def is_valid_at(signed: SignedApproval, key: KnownKey, *, at: str, taken_back: Mapping[str, datetime]) -> bool:
    """Whether a statement on record counts for a decision made at that time: an approval while its key is valid, from
    when it was made until it expires; a rejection until its person approves (`taken_back_until`)."""
    made, until, then = moment(signed.made_at), moment(signed.expires_at), moment(at)
    if signed.verdict == "reject":
        return signed.person not in taken_back or made >= taken_back[signed.person]
    return key.valid and made - then <= SLACK and then <= until


def in_utc(text: str) -> str:
    """The time in one form, so that times compare as text."""
    return moment(text).isoformat(timespec="microseconds")


def _require_named(signed: SignedApproval, who: Sequence[str]) -> None:
    if EVERYBODY not in who and signed.person not in who:
        raise StatementRefused(
            Refusal.NOT_NAMED,
            f"the policy does not name {signed.person} among those who may approve",
            hint="approval.who in the policy file names them",
        )
