"""A person's signed validation that a job's check means what was intended, and every reason to refuse one. Pure.

Verification tests an answer against its check; validation asks if the check captures the question, which only a person
can tell. Invariants: a validation names the job and the digest of its content (question, check, files), so it applies
to no other; it carries the page that the person was shown; it needs the signature of a person's valid key, never of a
machine's; it must be submitted before it expires, and only a newer one replaces it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from policies.contract.decision import PolicyRecord
from policies.contract.keys import KnownKey
from policies.contract.times import moment
from policies.envelopes import PREFIX, OpenEnvelope, PublicKey, canonical, require_signatures
from policies.refusals import Refusal, StatementRefused
from policies.register import Register
from policies.statements import PersonStatement, open_statement, require_own_name, require_timely

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
