"""A person's word on a candidate, as it is signed, and every reason for which it has no effect.

What always holds: a word counts only for the very decision that was shown, about that candidate, under the policy in
force, once, until it expires, and only with the signature of a person's valid key. It is checked when it is given, and
again whenever a decision rests on it: a record of a word says what was signed, or it counts for nothing. Pure: the time
comes in, with the latest time that was ever on record, so that a clock that was set back brings nothing to life again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import Field, ValidationError

from policies.decision import Record
from policies.envelopes import PREFIX, canonical, opened, payload_of
from policies.refusals import Refusal, Refused
from policies.register import NAME, KnownKey, Register

WORD = f"{PREFIX}word+json"
SLACK = timedelta(seconds=60)
"""What two looks at one clock may differ by, as when a time server corrects it."""
EVERYBODY = "*"

Digest = Field(pattern=r"^[0-9a-f]{64}$")


class SignedWord(Record):
    """What a person signs."""

    format: Literal["assay-word-1"] = "assay-word-1"
    verdict: Literal["approve", "reject"]
    person: str = Field(pattern=NAME)
    candidate: str = Digest
    """Manifest digest of the model."""
    decision: str = Digest
    """Digest of the decision that the person was shown, with every gate's figure."""
    policy: str = Digest
    """Digest of the policy that it was made under."""
    nonce: str = Field(pattern=r"^[0-9a-f]{32}$")
    """Random; no two words have the same."""
    made_at: str
    expires_at: str

    def payload(self) -> bytes:
        return canonical(self.model_dump(mode="json"))


@dataclass(frozen=True)
class Question:
    """What the word has to be about, and under which rules."""

    verdict: Literal["approve", "reject"]
    candidate: str
    decision: str
    policy: str
    valid_hours: float
    who: Sequence[str]
    """Names of persons who may speak; `*` for everybody in the register."""


@dataclass(frozen=True)
class OnRecord:
    """What a record says about the word in its envelope. Anybody who can write the database could have written it."""

    verdict: str
    person: str
    candidate: str
    decision: str
    nonce: str
    key: str
    """Fingerprint."""


def new_word(question: Question, person: str, *, nonce: str, made_at: str, hours: float | None = None) -> SignedWord:
    """A word to be signed; it lives as long as the policy allows, or `hours`. Raises ValueError for a bad name."""
    until = _moment(made_at) + timedelta(hours=question.valid_hours if hours is None else hours)
    return SignedWord(
        verdict=question.verdict,
        person=person,
        candidate=question.candidate,
        decision=question.decision,
        policy=question.policy,
        nonce=nonce,
        made_at=made_at,
        expires_at=until.isoformat(timespec="milliseconds"),
    )


def accepted(
    envelope: bytes,
    question: Question,
    register: Register,
    *,
    used: Collection[str],
    spoken: Mapping[str, str] | None = None,
    now: str,
    latest: str,
) -> tuple[SignedWord, KnownKey]:
    """The word in the envelope and the key that signed it, when it counts. Raises Refused with the reason's name.

    `used` are the nonces of the words on record, `spoken` when each person made their last word about the candidate,
    `latest` the latest time on record; times are UTC in ISO 8601.
    """
    word, key = signed_word(envelope, register)
    last = (spoken or {}).get(word.person)
    if word.nonce in used or (last is not None and _moment(word.made_at) < _moment(last)):
        raise Refused(
            Refusal.REPLAYED,
            "this word was given before, or is older than the person's last one about this candidate",
            hint="sign a new one on what you are shown now",
        )
    if word.candidate != question.candidate:
        raise Refused(
            Refusal.CANDIDATE,
            f"it is about {word.candidate[:12]}, not about {question.candidate[:12]}",
            hint="look at this candidate, and sign your word on it",
        )
    if word.verdict != question.verdict:
        raise Refused(
            Refusal.DECISION, f"it says {word.verdict}, not {question.verdict}", hint="send it to where it belongs"
        )
    if word.policy != question.policy:
        raise Refused(
            Refusal.POLICY,
            f"it was given under the policy {word.policy[:12]}, and {question.policy[:12]} is in force",
            hint="evaluate the candidate under the policy in force, look at the decision, then sign",
        )
    if word.decision != question.decision:
        raise Refused(
            Refusal.DECISION,
            f"there is a newer decision about {word.candidate[:12]} than the one you were shown",
            hint="look at it, then say your word again",
        )
    _require_named(word, question.who)
    require_timely(word.made_at, word.expires_at, valid_hours=question.valid_hours, now=now, latest=latest)
    return word, key


def signed_word(envelope: bytes, register: Register, *, also_revoked: bool = False) -> tuple[SignedWord, KnownKey]:
    """Who said it, and what: the shape, the key and the signature, and nothing about the time. Raises Refused."""
    read = opened(envelope, WORD)
    if len(read.signers) != 1:
        raise Refused(Refusal.SHAPE, "a word has one signature", hint="each person signs a word of their own")
    key = register.signers(read, also_revoked=also_revoked)[0]
    try:
        word = SignedWord.model_validate(payload_of(read))
        made, until = _moment(word.made_at), _moment(word.expires_at)
    except (ValidationError, ValueError, OverflowError) as error:
        raise Refused(Refusal.SHAPE, "what is signed is no word on a candidate", hint="use `assay model`") from error
    if until <= made:
        raise Refused(Refusal.EXPIRED, "it expires before it was made", hint="sign a new one")
    if word.person != key.person:
        raise Refused(
            Refusal.PERSON,
            f"it is in the name of {word.person}, and signed by {key.person}",
            hint="sign in your own name",
        )
    return word, key


def word_on_record(
    envelope: bytes, told: OnRecord, register: Register, *, who: Sequence[str]
) -> tuple[SignedWord, KnownKey]:
    """The word behind a record of it, and its key, which may have been revoked since.

    Raises Refused with the reason's name where it was not signed as it must be, or the record says anything else.
    """
    word, key = signed_word(envelope, register, also_revoked=True)
    for name, said, recorded in (
        (Refusal.CANDIDATE, word.candidate, told.candidate),
        (Refusal.DECISION, word.verdict, told.verdict),
        (Refusal.DECISION, word.decision, told.decision),
        (Refusal.PERSON, word.person, told.person),
        (Refusal.PERSON, key.fingerprint, told.key),
        (Refusal.REPLAYED, word.nonce, told.nonce),
    ):
        if said != recorded:
            raise Refused(
                name,
                f"the word on record is told as {recorded!r}, and what was signed is {said!r}",
                hint="somebody wrote into the database: say your word again, on what you are shown now",
            )
    _require_named(word, who)
    return word, key


def still_counts(word: SignedWord, key: KnownKey, *, at: str) -> bool:
    """Whether a word on record counts for a decision made at that time: an approval while its key is valid, from when
    it was made until it expires; a rejection stands until its person says otherwise."""
    if word.verdict == "reject":
        return True
    made, until, then = _moment(word.made_at), _moment(word.expires_at), _moment(at)
    return key.valid and made - then <= SLACK and then <= until


def in_utc(moment: str) -> str:
    """The time in one form, so that times compare as text."""
    return _moment(moment).isoformat(timespec="microseconds")


def require_clock(*, now: str, latest: str) -> None:
    """Raises Refused (`CLOCK`) when the clock shows less than what is on record."""
    if _moment(now) < _moment(latest) - SLACK:
        raise Refused(
            Refusal.CLOCK,
            f"it is {now} by this machine's clock, and the audit log's latest entry is of {latest}",
            hint="set the clock right, then sign again",
        )


def require_timely(made_at: str, expires_at: str, *, valid_hours: float, now: str, latest: str) -> None:
    """Raises Refused: the clock was set back, or it is from the future, valid for too long, or expired."""
    made, until, today = _moment(made_at), _moment(expires_at), _moment(now)
    require_clock(now=now, latest=latest)
    if made > today + SLACK:
        raise Refused(
            Refusal.FUTURE, f"it was made at {made_at}, which is not yet", hint="set the clocks right, sign again"
        )
    if until - made > timedelta(hours=valid_hours) + SLACK:
        raise Refused(
            Refusal.LIFETIME,
            f"it would be valid for {(until - made).total_seconds() / 3600:.1f} hours, more than the "
            f"{valid_hours:g} allowed",
            hint="sign a new one",
        )
    if max(today, _moment(latest)) > until:
        raise Refused(Refusal.EXPIRED, f"it was valid until {expires_at}", hint="look again, and sign a new one")


def _require_named(word: SignedWord, who: Sequence[str]) -> None:
    if EVERYBODY not in who and word.person not in who:
        raise Refused(
            Refusal.NOT_NAMED,
            f"the policy does not name {word.person} among those who may approve",
            hint="approval.who in the policy file names them",
        )


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
