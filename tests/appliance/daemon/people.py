"""Persons with keys, who say their word to a core as a client would."""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.client import Approved
from appliance.client.signing import question_about
from appliance.daemon.core import Core
from policies.decision import Decision
from policies.envelopes import Signer, canonical, seal, sign_too
from policies.register import KEY, KeyStatement
from policies.words import WORD, new_word


def signer(name: str) -> Signer:
    return Signer.of(Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest()))


def admission(person: str, *by: str, key: str = "", at: str = "2026-01-02T03:04:05+00:00") -> bytes:
    own = signer(key or person)
    statement = KeyStatement(action="admit", person=person, key=own.public.line, at=at)
    envelope = seal(canonical(statement.model_dump(mode="json")), KEY, own)
    for other in by:
        envelope = sign_too(envelope, signer(other))
    return envelope


def revocation(person: str, by: str, *, at: str = "2026-01-02T03:04:05+00:00") -> bytes:
    statement = KeyStatement(action="revoke", person=person, key=signer(person).public.line, reason="lost", at=at)
    return seal(canonical(statement.model_dump(mode="json")), KEY, signer(by))


def admit(core: Core, *names: str) -> None:
    """The first is trusted on first use, and admits the others."""
    for name in names:
        known = core.trust.register.persons
        core.trust.change_key(admission(name, *known[:1]))


def word(
    core: Core,
    decision: Decision,
    person: str = "ada",
    verdict: str = "approve",
    *,
    key: str = "",
    nonce: str = "",
    made_at: str = "",
    hours: float | None = None,
) -> bytes:
    """A signed word on that decision, as of the core's own clock."""
    question = question_about(decision, verdict, core.trust.keys())  # type: ignore[arg-type]
    made = new_word(
        question,
        person,
        nonce=nonce or hashlib.sha256(f"{person}{decision.digest()}{verdict}".encode()).hexdigest()[:32],
        made_at=made_at or core._now(),
        hours=hours,
    )
    return seal(made.payload(), WORD, signer(key or person))


def approve(core: Core, candidate: str, person: str = "ada") -> Approved:
    return core.approve(candidate, word(core, newest(core, candidate), person))


def reject(core: Core, candidate: str, person: str = "ada") -> Approved:
    return core.reject(candidate, word(core, newest(core, candidate), person, "reject"))


def newest(core: Core, candidate: str) -> Decision:
    return core.ledger.decisions(candidate=core.governance.digest_of(candidate))[0]


def refusals(core: Core) -> list[str]:
    """The names of what was refused, as the audit log has them."""
    entries = core.ledger.audit.entries()  # type: ignore[attr-defined]
    return [str(entry.what["name"]) for entry in entries if entry.kind.endswith(".refused") and "name" in entry.what]
