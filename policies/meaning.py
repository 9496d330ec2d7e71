"""A person's word on whether a check says what was meant, as it is signed, and every reason for which it has no effect.

Verification asks whether an answer meets its check; validation asks whether the check says what the question means, and
only a person can tell. What always holds: the word names the job and the digest of its content (question, check,
files), so that it says nothing about any other; it carries the very page that the person was shown; it counts with the
signature of a person's valid key, never of a machine's; it has to be given before it expires, and is replaced only by
a newer one. Pure.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field, ValidationError

from policies.decision import Record
from policies.envelopes import PREFIX, Opened, PublicKey, canonical, opened, payload_of, require_signatures
from policies.refusals import Refusal, Refused
from policies.register import NAME, KnownKey, Register
from policies.words import require_timely

MEANING = f"{PREFIX}meaning+json"

Digest = Field(pattern=r"^[0-9a-f]{64}$")
Line = str


class Look(Record):
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


class Page(Record):
    """What the person was shown. All of it is text, some of it hostile."""

    format: Literal["assay-shown-1"] = "assay-shown-1"
    question: tuple[Line, ...] = Field(max_length=1_000)
    files: tuple[Line, ...] = Field(default=(), max_length=64)
    words: tuple[Line, ...] = Field(max_length=1_000)
    """The check in plain words."""
    first: tuple[Line, ...] = Field(max_length=50)
    """What has to be said before anything else: a check that accepts what it should not."""
    looks: tuple[Look, ...] = Field(max_length=200)
    notes: tuple[Line, ...] = Field(default=(), max_length=50)
    """What could not be tried."""
    verifier: str = Field(max_length=300)

    def digest(self) -> str:
        return hashlib.sha256(canonical(self.model_dump(mode="json"))).hexdigest()


class SignedMeaning(Record):
    """What a person signs."""

    format: Literal["assay-meaning-1"] = "assay-meaning-1"
    verdict: Literal["meant", "not_meant"]
    person: str = Field(pattern=NAME)
    job: str = Field(min_length=1, max_length=200)
    content: str = Digest
    """Digest of the job's question, check and files."""
    page: Page
    nonce: str = Field(pattern=r"^[0-9a-f]{32}$")
    """Random; no two words have the same."""
    made_at: str
    expires_at: str
    """Until when it may be given. What was given in time stands."""

    def payload(self) -> bytes:
        return canonical(self.model_dump(mode="json"))


@dataclass(frozen=True)
class Asked:
    """What the word has to be about."""

    job: str
    content: str
    question: tuple[str, ...]
    files: tuple[str, ...]
    words: tuple[str, ...]
    valid_hours: float


def new_meaning(
    verdict: Literal["meant", "not_meant"],
    person: str,
    *,
    job: str,
    content: str,
    page: Page,
    nonce: str,
    made_at: str,
    hours: float,
) -> SignedMeaning:
    """A word to be signed, that may be given within so many hours. Raises ValueError for a bad name."""
    until = datetime.fromisoformat(made_at) + timedelta(hours=hours)
    return SignedMeaning(
        verdict=verdict,
        person=person,
        job=job,
        content=content,
        page=page,
        nonce=nonce,
        made_at=made_at,
        expires_at=until.isoformat(timespec="milliseconds"),
    )


def meaning_in(envelope: bytes) -> tuple[SignedMeaning, Opened]:
    """What it says; nothing about the signature. Raises Refused (`SHAPE`)."""
    read = opened(envelope, MEANING)
    if len(read.signers) != 1:
        raise Refused(Refusal.SHAPE, "a word has one signature", hint="each person signs a word of their own")
    try:
        word = SignedMeaning.model_validate(payload_of(read))
        made, until = datetime.fromisoformat(word.made_at), datetime.fromisoformat(word.expires_at)
        if made.tzinfo is None or until.tzinfo is None:
            raise ValueError("a time without its zone")
    except (ValidationError, ValueError) as error:
        raise Refused(
            Refusal.SHAPE, "what is signed is no word on a job's meaning", hint="use `assay jobs validate`"
        ) from error
    return word, read


def read_meaning(envelope: bytes, key: PublicKey) -> SignedMeaning:
    """The word, when that key signed it: for those who have a bundle and a person's public key. Raises Refused.

    Whether the key was revoked since is not seen here.
    """
    word, read = meaning_in(envelope)
    if read.signers != (key.fingerprint,):
        raise Refused(
            Refusal.UNKNOWN_KEY,
            f"it is signed with {read.signers[0]}, not with {key.fingerprint}",
            hint="name the public key of the person who validated it",
        )
    require_signatures(read, [key])
    return word


def accepted_meaning(
    envelope: bytes, asked: Asked, register: Register, *, before: bytes | None, now: str, latest: str
) -> tuple[SignedMeaning, KnownKey]:
    """The word and the key that signed it, when it counts. Raises Refused with the reason's name.

    `before` is the word on record about this job, which a newer one replaces; `latest` the latest time on record. Times
    are UTC in ISO 8601.
    """
    word, read = meaning_in(envelope)
    key = register.signers(read)[0]
    if word.person != key.person:
        raise Refused(
            Refusal.PERSON,
            f"it is in the name of {word.person}, and signed by {key.person}",
            hint="sign in your own name",
        )
    if before is not None and not _newer(word, meaning_in(before)[0]):
        raise Refused(
            Refusal.REPLAYED,
            "this word was given before, or is older than the one on record",
            hint="sign a new one on what you are shown now",
        )
    if word.job != asked.job:
        raise Refused(
            Refusal.JOB, f"it is about {word.job!r}, not about {asked.job!r}", hint="look at this job, and sign again"
        )
    if word.content != asked.content or word.page.question != asked.question or word.page.files != asked.files:
        raise Refused(
            Refusal.CONTENT,
            "what was shown is not what the job has: its question, its check or a file is another",
            hint="look at the job again, then sign",
        )
    if word.page.words != asked.words:
        raise Refused(
            Refusal.CONTENT,
            "the check was shown in other words than this version has for it",
            hint="use the `assay` of the daemon's version, and sign again",
        )
    require_timely(word.made_at, word.expires_at, valid_hours=asked.valid_hours, now=now, latest=latest)
    return word, key


def _newer(word: SignedMeaning, before: SignedMeaning) -> bool:
    return datetime.fromisoformat(word.made_at) > datetime.fromisoformat(before.made_at)
