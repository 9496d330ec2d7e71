"""Signed approvals and rejections of a candidate, and every reason to refuse one. Pure.

Invariants: a statement counts only for the decision that was shown, for that candidate, once, and with the signature of
a person's valid key. An approval also needs the policy in force and expires. Statements are checked when given and
again whenever a decision rests on one: a record that differs from what was signed counts for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from policies.contract.decision import KnownKey, moment
from policies.envelopes import PREFIX
from policies.errors import Refusal, StatementRefused
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
"""Recorded approval fields, each with the refusal used when it differs from what was signed."""

Digest = Field(pattern=r"^[0-9a-f]{64}$")


class SignedApproval(PersonStatement):
    """Statement that a person signs to approve or reject a candidate."""

    format: Literal["assay-word-1"] = "assay-word-1"
    verdict: Literal["approve", "reject"]
    candidate: str = Digest
    """Manifest digest of the model."""
    decision: str = Digest
    """Digest of the decision shown to the person, with every gate's figure."""
    policy: str = Digest
    """Digest of the policy under which the decision was made."""


@dataclass(frozen=True)
class ApprovalSubject:
    """Candidate, decision and policy that a signed approval or rejection must match, and the rules for approvals."""

    verdict: Literal["approve", "reject"]
    candidate: str
    decision: str
    policy: str
    valid_hours: float
    who: Sequence[str]
    """Names of persons who may approve; `*` means everybody in the register."""


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
    """Returns the signed approval or rejection in an envelope, and its signing key, if it counts now.

    Raises StatementRefused with the reason's name. `used` are the nonces on record, `last_at` the time of each person's
    last statement about the candidate, `latest` the latest time on record; times are UTC in ISO 8601.
    """
    signed, key = read_approval(envelope, register)
    last = (last_at or {}).get(signed.person)
    if signed.nonce in used or (last is not None and moment(signed.made_at) < moment(last)):
        raise StatementRefused(
            Refusal.REPLAYED,
            "already given, or older than the person's last statement about this candidate",
            hint="sign a new statement on what is shown now",
        )
    if signed.candidate != question.candidate:
        raise StatementRefused(
            Refusal.CANDIDATE,
            f"the statement is about {signed.candidate[:12]}, not {question.candidate[:12]}",
            hint="review this candidate, then sign",
        )
    if signed.verdict != question.verdict:
        text = f"the statement says {signed.verdict}, not {question.verdict}"
        raise StatementRefused(Refusal.DECISION, text, hint="submit it with the command for that verdict")
    if signed.verdict == "approve" and signed.policy != question.policy:
        raise StatementRefused(
            Refusal.POLICY,
            f"made under policy {signed.policy[:12]}, but {question.policy[:12]} is in force",
            hint="evaluate the candidate under the policy in force, review the decision, then sign",
        )
    if signed.decision != question.decision:
        raise StatementRefused(
            Refusal.DECISION,
            f"a newer decision about {signed.candidate[:12]} has replaced the one shown",
            hint="review the new decision, then sign again",
        )
    _require_named(signed, question.who)
    require_timely(signed, valid_hours=question.valid_hours, now=now, latest=latest)
    return signed, key


def read_approval(
    envelope: bytes, register: Register, *, also_revoked: bool = False
) -> tuple[SignedApproval, KnownKey]:
    """Returns a signed approval or rejection and its key after checking shape, key and signature, but not the time.
    Raises StatementRefused."""
    signed, read = open_statement(envelope, APPROVAL_TYPE, SignedApproval, hint="use `assay model`")
    key = register.signers(read, also_revoked=also_revoked)[0]
    if moment(signed.expires_at) <= moment(signed.made_at):
        raise StatementRefused(Refusal.EXPIRED, "expires before it was made", hint="sign a new statement")
    require_own_name(signed, key)
    return signed, key


def verify_recorded_approval(
    record: Mapping[str, str], register: Register, *, who: Sequence[str]
) -> tuple[SignedApproval, KnownKey]:
    """Returns a recorded approval and its key, which may have been revoked since.

    Anyone who can write the database can forge a record, so the envelope, the key's fingerprint and the statement's
    fields are all compared. Raises StatementRefused with the reason's name if the signature or any field is wrong.
    """
    signed, key = read_approval(record["envelope"].encode(), register, also_revoked=True)
    was_signed = {**signed.model_dump(), "key": key.fingerprint}
    for field, name in RECORDED.items():
        if was_signed[field] != record[field]:
            raise StatementRefused(
                name,
                f"the record's {field} ({record[field]!r}) differs from the signed value ({was_signed[field]!r})",
                hint="the database was modified: sign again on what is shown now",
            )
    _require_named(signed, who)
    return signed, key


def taken_back_until(signed: Iterable[tuple[SignedApproval, KnownKey]], *, at: str) -> dict[str, datetime]:
    """Returns, by person, the time of their latest approval up to `at`; even expired, it revokes rejections before."""
    found: dict[str, datetime] = {}
    for one, key in signed:
        made = moment(one.made_at)
        if one.verdict == "approve" and key.valid and made - moment(at) <= SLACK:
            found[one.person] = max(made, found.get(one.person, made))
    return found


def is_valid_at(signed: SignedApproval, key: KnownKey, *, at: str, taken_back: Mapping[str, datetime]) -> bool:
    """True if a recorded approval or rejection counts for a decision made at time `at`.

    An approval counts while its key is valid, until it expires; a rejection until its person approves
    (`taken_back_until`).
    """
    made, until, then = moment(signed.made_at), moment(signed.expires_at), moment(at)
    if signed.verdict == "reject":
        return signed.person not in taken_back or made >= taken_back[signed.person]
    return key.valid and made - then <= SLACK and then <= until


def in_utc(text: str) -> str:
    """Returns an ISO 8601 time in one UTC form, so that times compare as text."""
    return moment(text).isoformat(timespec="microseconds")


def _require_named(signed: SignedApproval, who: Sequence[str]) -> None:
    if EVERYBODY not in who and signed.person not in who:
        raise StatementRefused(
            Refusal.NOT_NAMED,
            f"the policy does not name {signed.person} among those who may approve",
            hint="see approval.who in the policy file",
        )
