"""Statements signed by one person in their own name, with an expiry. Pure.

Invariants: a statement has exactly one signature, by the person it names; the current time and the latest recorded time
are arguments, so setting the clock back revives nothing.

Signed edits of the policy file. Pure.

Invariants: an edit names its audit log, the policy it replaces and its number in the sequence of edits, so a replayed
edit has no effect, not even in a log that was started anew. An edit needs as many independent signers as the policy in
force requires for an approval, so nobody can lower that number alone, not even while nobody else is known, nor by
revoking another person's key.

A person's signed validation that a job's check means what was intended, and every reason to refuse one. Pure.

Verification tests an answer against its check; validation asks if the check captures the question, which only a person
can tell. Invariants: a validation names the job and the digest of its content (question, check, files), so it applies
to no other; it carries the page that the person was shown; it needs the signature of a person's valid key, never of a
machine's; it must be submitted before it expires, and only a newer one replaces it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Self, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from policies.contract.decision import NAME, KnownKey, PolicyRecord, moment
from policies.envelopes import PREFIX, OpenEnvelope, PublicKey, canonical, open_envelope, payload_of, require_signatures
from policies.errors import Refusal, StatementRefused
from policies.register import Register

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
    """Raises StatementRefused if the clock went back, or a statement is from the future, too long-lived or expired."""
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


POLICY_TYPE = f"{PREFIX}policy+json"


class PolicyEdit(PolicyRecord):
    """Payload that people sign to put a new policy into force: the digests of the old and the new policy."""

    format: Literal["assay-policy-edit-2"] = "assay-policy-edit-2"
    log: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the first line of its audit log."""
    number: int = Field(ge=1)
    """Number of policies that were in force before."""
    replaces: str = Field(pattern=r"^[0-9a-f]{64}$")
    file: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the new file's bytes, the new policy's digest."""
    at: str


def read_edit(envelope: bytes) -> PolicyEdit:
    """Parses a signed policy edit without checking signatures. Raises StatementRefused for anything else."""
    try:
        return PolicyEdit.model_validate(payload_of(open_envelope(envelope, POLICY_TYPE)))
    except ValidationError as error:
        raise StatementRefused(
            Refusal.SHAPE, "the signed payload is not a policy edit", hint="use `assay policy sign`"
        ) from error


def verify_edit(
    envelope: bytes, register: Register, *, log: str, number: int, in_force: str, digest: str, people: int
) -> tuple[str, ...]:
    """Returns the signers' names if a signed policy edit may put the given policy file into force now.

    `log` is the digest of the audit log's first line, `digest` of the given file, `people` the number of signers that
    the policy in force requires. Raises StatementRefused with the reason's name.
    """
    edit = read_edit(envelope)
    keys = register.signers(open_envelope(envelope, POLICY_TYPE))
    if edit.log != log:
        raise StatementRefused(
            Refusal.REPLAYED,
            f"signed for the audit log that begins with {edit.log[:12]}; this log begins with {log[:12]}",
            hint="sign the file again: a new log was started since",
        )
    if edit.number != number or edit.replaces != in_force:
        raise StatementRefused(
            Refusal.REPLAYED,
            f"this is edit {edit.number} of policy {edit.replaces[:12]}; expected edit {number} of {in_force[:12]}",
            hint="sign the file again, against the policy in force",
        )
    if edit.file != digest:
        raise StatementRefused(
            Refusal.POLICY,
            f"the signed file is {edit.file[:12]}, but this file is {digest[:12]}",
            hint="the file was edited after it was signed: sign it again",
        )
    return register.require_persons(keys, people)


VALIDATION_TYPE = f"{PREFIX}meaning+json"

Digest = Field(pattern=r"^[0-9a-f]{64}$")
Line = str


class ShownExample(PolicyRecord):
    """Example answer that the verifier judged while a person was shown the check."""

    sort: Literal["example", "mutant"]
    """`example`: similar to a wanted answer. `mutant`: altered, so that a sharp check rejects it."""
    what: str = Field(max_length=500)
    """Description of how the example was made."""
    text: str = Field(max_length=4_000)
    outcome: str = Field(max_length=40)
    """Verifier outcome, unmodified."""
    reason: str = Field(max_length=1_000)

    @property
    def accepted(self) -> bool:
        return self.outcome == "pass"


class Page(PolicyRecord):
    """Page shown to a person who validates a job's check. All of it is text, some of it hostile. The signed JSON calls
    the examples `looks`."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    format: Literal["assay-shown-1"] = "assay-shown-1"
    question: tuple[Line, ...] = Field(max_length=1_000)
    files: tuple[Line, ...] = Field(default=(), max_length=64)
    words: tuple[Line, ...] = Field(max_length=1_000)
    """The check in plain words."""
    first: tuple[Line, ...] = Field(max_length=50)
    """Warnings shown first, such as a check that accepts too much."""
    examples: tuple[ShownExample, ...] = Field(max_length=200, validation_alias="looks", serialization_alias="looks")
    notes: tuple[Line, ...] = Field(default=(), max_length=50)
    """Notes on examples that could not be tried."""
    verifier: str = Field(max_length=300)

    def digest(self) -> str:
        return hashlib.sha256(canonical(self.model_dump(mode="json"))).hexdigest()


class SignedValidation(PersonStatement):
    """Person's signed verdict on whether a job's check is what was meant. Stays valid once submitted in time."""

    format: Literal["assay-meaning-1"] = "assay-meaning-1"
    verdict: Literal["meant", "not_meant"]
    job: str = Field(min_length=1, max_length=200)
    content: str = Digest
    """Digest of the job's question, check and files."""
    page: Page


@dataclass(frozen=True)
class ValidationSubject:
    """Job, question and check that a person's validation must match."""

    job: str
    content: str
    question: tuple[str, ...]
    files: tuple[str, ...]
    words: tuple[str, ...]
    valid_hours: float


def open_validation(envelope: bytes) -> tuple[SignedValidation, OpenEnvelope]:
    """Parses a person's validation of a job without verifying its signature. Raises StatementRefused (`SHAPE`)."""
    hint = "use `assay jobs validate`"
    signed, read = open_statement(envelope, VALIDATION_TYPE, SignedValidation, hint=hint)
    if any(datetime.fromisoformat(time).tzinfo is None for time in (signed.made_at, signed.expires_at)):
        raise StatementRefused(Refusal.SHAPE, "a time has no time zone", hint=hint)
    return signed, read


def read_validation(envelope: bytes, key: PublicKey) -> SignedValidation:
    """Returns a person's validation of a job if that key signed it. For a holder of a bundle and a person's public key;
    a later revocation of the key is not visible here. Raises StatementRefused."""
    signed, read = open_validation(envelope)
    if read.signers != (key.fingerprint,):
        raise StatementRefused(
            Refusal.UNKNOWN_KEY,
            f"signed with {read.signers[0]}, not with {key.fingerprint}",
            hint="name the public key of the person who validated it",
        )
    require_signatures(read, [key])
    return signed


def verify_validation(
    envelope: bytes, asked: ValidationSubject, register: Register, *, before: bytes | None, now: str, latest: str
) -> tuple[SignedValidation, KnownKey]:
    """Returns a person's validation of a job and its signing key, if it counts. Raises StatementRefused with the
    reason's name. `before` is the recorded validation of this job, which a newer one replaces; `latest` the latest time
    on record. Times are UTC in ISO 8601."""
    signed, read = open_validation(envelope)
    key = register.signers(read)[0]
    require_own_name(signed, key)
    if before is not None and moment(signed.made_at) <= moment(open_validation(before)[0].made_at):
        raise StatementRefused(
            Refusal.REPLAYED,
            "already given, or older than the one on record",
            hint="sign a new statement on what is shown now",
        )
    if signed.job != asked.job:
        text = f"the validation is about {signed.job!r}, not {asked.job!r}"
        raise StatementRefused(Refusal.JOB, text, hint="review this job, then sign again")
    if (signed.content, signed.page.question, signed.page.files) != (asked.content, asked.question, asked.files):
        raise StatementRefused(
            Refusal.CONTENT,
            "the page shown does not match the job: its question, check or files differ",
            hint="review the job again, then sign",
        )
    if signed.page.words != asked.words:
        raise StatementRefused(
            Refusal.CONTENT,
            "the check was shown in a wording that differs from this version's",
            hint="use the `assay` of the daemon's version, and sign again",
        )
    require_timely(signed, valid_hours=asked.valid_hours, now=now, latest=latest)
    return signed, key
