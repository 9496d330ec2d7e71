"""A person's validation of a job: whether its check says what was meant, as it is signed, and every reason for which it
has no effect.

Verification asks whether an answer meets its check; validation asks whether the check says what the question means, and
only a person can tell. What always holds: it names the job and the digest of its content (question, check, files), so
that it says nothing about any other; it carries the very page that the person was shown; it counts with the signature
of a person's valid key, never of a machine's; it has to be given before it expires, and is replaced only by a newer
one. Pure.
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
    """One thing that the verifier was asked about while the person was shown the check."""

    sort: Literal["example", "mutant"]
    """`example`: something like what is wanted. `mutant`: something changed, which a sharp check rejects."""
    what: str = Field(max_length=500)
    """How it was made."""
    text: str = Field(max_length=4_000)
    outcome: str = Field(max_length=40)
    """The verifier's, as it was said."""
    reason: str = Field(max_length=1_000)

    @property
    def accepted(self) -> bool:
        return self.outcome == "pass"


class Page(PolicyRecord):
    """What the person was shown. All of it is text, some of it hostile. What is signed calls the examples `looks`."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    format: Literal["assay-shown-1"] = "assay-shown-1"
    question: tuple[Line, ...] = Field(max_length=1_000)
    files: tuple[Line, ...] = Field(default=(), max_length=64)
    words: tuple[Line, ...] = Field(max_length=1_000)
    """The check in plain words."""
    first: tuple[Line, ...] = Field(max_length=50)
    """What has to be said before anything else: a check that accepts what it should not."""
    examples: tuple[ShownExample, ...] = Field(max_length=200, validation_alias="looks", serialization_alias="looks")
    notes: tuple[Line, ...] = Field(default=(), max_length=50)
    """What could not be tried."""
    verifier: str = Field(max_length=300)

    def digest(self) -> str:
        return hashlib.sha256(canonical(self.model_dump(mode="json"))).hexdigest()


class SignedValidation(PersonStatement):
    """What a person signs. What was given in time stays valid."""

    format: Literal["assay-meaning-1"] = "assay-meaning-1"
    verdict: Literal["meant", "not_meant"]
    job: str = Field(min_length=1, max_length=200)
    content: str = Digest
    """Digest of the job's question, check and files."""
    page: Page


@dataclass(frozen=True)
class ValidationSubject:
    """What the validation has to be about."""

    job: str
    content: str
    question: tuple[str, ...]
    files: tuple[str, ...]
    words: tuple[str, ...]
    valid_hours: float


def open_validation(envelope: bytes) -> tuple[SignedValidation, OpenEnvelope]:
    """What it says; nothing about the signature. Raises StatementRefused (`SHAPE`)."""
    hint = "use `assay jobs validate`"
    signed, read = open_statement(envelope, VALIDATION_TYPE, SignedValidation, hint=hint)
    if any(datetime.fromisoformat(time).tzinfo is None for time in (signed.made_at, signed.expires_at)):
        raise StatementRefused(Refusal.SHAPE, "it has a time without its zone", hint=hint)
    return signed, read


def read_validation(envelope: bytes, key: PublicKey) -> SignedValidation:
    """The validation, when that key signed it: for those who have a bundle and a person's public key. Raises
    StatementRefused.

    Whether the key was revoked since is not seen here.
    """
    signed, read = open_validation(envelope)
    if read.signers != (key.fingerprint,):
        raise StatementRefused(
            Refusal.UNKNOWN_KEY,
            f"it is signed with {read.signers[0]}, not with {key.fingerprint}",
            hint="name the public key of the person who validated it",
        )
    require_signatures(read, [key])
    return signed


def verify_validation(
    envelope: bytes, asked: ValidationSubject, register: Register, *, before: bytes | None, now: str, latest: str
) -> tuple[SignedValidation, KnownKey]:
    """The validation and the key that signed it, when it counts. Raises StatementRefused with the reason's name.

    `before` is the one on record about this job, which a newer one replaces; `latest` the latest time on record. Times
    are UTC in ISO 8601.
    """
    signed, read = open_validation(envelope)
    key = register.signers(read)[0]
    require_own_name(signed, key)
    if before is not None and moment(signed.made_at) <= moment(open_validation(before)[0].made_at):
        raise StatementRefused(
            Refusal.REPLAYED,
            "it was given before, or is older than the one on record",
            hint="sign a new one on what you are shown now",
        )
    if signed.job != asked.job:
        text = f"it is about {signed.job!r}, not about {asked.job!r}"
        raise StatementRefused(Refusal.JOB, text, hint="look at this job, and sign again")
    if (signed.content, signed.page.question, signed.page.files) != (asked.content, asked.question, asked.files):
        raise StatementRefused(
            Refusal.CONTENT,
            "what was shown is not what the job has: its question, its check or a file is another",
            hint="look at the job again, then sign",
        )
    if signed.page.words != asked.words:
        raise StatementRefused(
            Refusal.CONTENT,
            "the check was shown in other words than this version has for it",
            hint="use the `assay` of the daemon's version, and sign again",
        )
    require_timely(signed, valid_hours=asked.valid_hours, now=now, latest=latest)
    return signed, key
