"""Keys, words and statements for tests: made from numbers, so that a failure can be made again."""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from policies.approvals import APPROVAL_TYPE, ApprovalSubject, SignedApproval
from policies.contract.decision import KeyStatement
from policies.envelopes import Signer, add_signature, canonical, sign_envelope
from policies.register import KEY_TYPE, Register

NOW = "2026-01-02T04:04:05.000+00:00"
LATER = "2026-01-02T05:04:05.000+00:00"


def private(name: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


def signer(name: str) -> Signer:
    return Signer.of(private(name))


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


MACHINES = {signer(name).public.fingerprint: name for name in ("daemon", "trainer")}
QUESTION = ApprovalSubject(
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
    envelope = sign_envelope(canonical(statement.model_dump(mode="json")), KEY_TYPE, own)
    for other in by:
        envelope = add_signature(envelope, signer(other))
    return envelope


def revocation(person: str, by: str, *, key: str = "", at: str = LATER) -> bytes:
    line = signer(key or person).public.line
    statement = KeyStatement(action="revoke", person=person, key=line, reason="lost", at=at)
    return sign_envelope(canonical(statement.model_dump(mode="json")), KEY_TYPE, signer(by))


def register_of(*persons: str) -> Register:
    """Independent persons: the first is trusted on first use, the machine's owner vouches for the others."""
    register = Register(machines=MACHINES, owner=signer("daemon").public)
    for person in persons:
        by = (persons[0], "daemon") if register.keys else ()
        register = register.after(admission(person, *by), people=20)
    return register


def register_of_one(*persons: str) -> Register:
    """Persons whom the first admitted alone, as a policy with `people = 1` allows; the owner vouched for nobody."""
    register = Register(machines=MACHINES, owner=signer("daemon").public)
    for person in persons:
        register = register.after(admission(person, *persons[:1] if register.keys else ()), people=1)
    return register


def approval_envelope(
    person: str = "ada",
    *,
    key: str = "",
    question: ApprovalSubject = QUESTION,
    nonce: str = "0" * 32,
    made_at: str = NOW,
    hours: float | None = None,
) -> bytes:
    made = approval_statement(question, person, nonce=nonce, made_at=made_at, hours=hours)
    return sign_envelope(made.payload(), APPROVAL_TYPE, signer(key or person))


def approval_statement(
    question: ApprovalSubject,
    person: str = "ada",
    *,
    nonce: str = "0" * 32,
    made_at: str = NOW,
    hours: float | None = None,
) -> SignedApproval:
    about = {name: getattr(question, name) for name in ("verdict", "candidate", "decision", "policy")}
    valid = question.valid_hours if hours is None else hours
    return SignedApproval.valid_for(valid, made_at=made_at, person=person, nonce=nonce, **about)
