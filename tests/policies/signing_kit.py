"""Keys, words and statements for tests: made from numbers, so that a failure can be made again."""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from policies.envelopes import Signer, canonical, seal, sign_too
from policies.register import KEY, KeyStatement, Register
from policies.words import WORD, Question, new_word

NOW = "2026-01-02T04:04:05.000+00:00"
LATER = "2026-01-02T05:04:05.000+00:00"


def private(name: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


def signer(name: str) -> Signer:
    return Signer.of(private(name))


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


QUESTION = Question(
    verdict="approve",
    candidate=digest("candidate"),
    decision=digest("decision"),
    policy=digest("policy"),
    valid_hours=24.0,
    who=("*",),
)


def admission(person: str, *by: str, key: str = "", at: str = NOW) -> bytes:
    """A statement that admits the person's key, signed by it and by others' keys."""
    own = signer(key or person)
    statement = KeyStatement(action="admit", person=person, key=own.public.line, at=at)
    envelope = seal(canonical(statement.model_dump(mode="json")), KEY, own)
    for other in by:
        envelope = sign_too(envelope, signer(other))
    return envelope


def revocation(person: str, by: str, *, key: str = "", at: str = LATER) -> bytes:
    line = signer(key or person).public.line
    statement = KeyStatement(action="revoke", person=person, key=line, reason="lost", at=at)
    return seal(canonical(statement.model_dump(mode="json")), KEY, signer(by))


def register_of(*persons: str) -> Register:
    """These persons, each admitted by the first; the machine's own keys are known."""
    machines = {signer(name).public.fingerprint: name for name in ("daemon", "trainer")}
    register = Register(machines=machines)
    for person in persons:
        register = register.after(admission(person, *persons[:1] if register.keys else ()), people=1)
    return register


def word(
    person: str = "ada",
    *,
    key: str = "",
    question: Question = QUESTION,
    nonce: str = "0" * 32,
    made_at: str = NOW,
    hours: float | None = None,
) -> bytes:
    made = new_word(question, person, nonce=nonce, made_at=made_at, hours=hours)
    return seal(made.payload(), WORD, signer(key or person))
