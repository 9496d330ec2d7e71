"""Persons with keys, who sign for a core as a client would."""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.audit.machine_keys import load_key
from appliance.cli.audit.read import verified
from appliance.client import Approved
from appliance.daemon.coordination.core import Core
from policies.approvals import APPROVAL_TYPE, SignedApproval
from policies.contract.decision import Decision, KeyStatement
from policies.envelopes import Signer, add_signature, canonical, sign_envelope
from policies.register import KEY_TYPE


def signer(name: str) -> Signer:
    return Signer.of(Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest()))


def admission(person: str, *by: str, key: str = "", at: str = "2026-01-02T03:04:05+00:00") -> bytes:
    own = signer(key or person)
    statement = KeyStatement(action="admit", person=person, key=own.public.line, at=at)
    envelope = sign_envelope(canonical(statement.model_dump(mode="json")), KEY_TYPE, own)
    for other in by:
        envelope = add_signature(envelope, signer(other))
    return envelope


def revocation(person: str, by: str, *, at: str = "2026-01-02T03:04:05+00:00") -> bytes:
    statement = KeyStatement(action="revoke", person=person, key=signer(person).public.line, reason="lost", at=at)
    return sign_envelope(canonical(statement.model_dump(mode="json")), KEY_TYPE, signer(by))


def admit(core: Core, *names: str) -> None:
    """The first is trusted on first use, and admits the others; the machine's owner vouches where it takes more."""
    for name in names:
        known, people = core.trust.register.persons, core.policy.approval.people
        envelope = admission(name, *known[:people])
        if known and len({key.person for key in core.trust.register.independent(people)}) < people:
            envelope = add_signature(envelope, Signer.of(load_key(core.data, "daemon")))
        core.trust.change_key(envelope)


def approval_envelope(
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
    """A signed approval or rejection of that decision, as of the core's own clock."""
    made = SignedApproval.valid_for(
        core.trust.keys().valid_hours if hours is None else hours,
        made_at=made_at or core.now(),
        person=person,
        nonce=nonce or hashlib.sha256(f"{person}{decision.digest()}{verdict}".encode()).hexdigest()[:32],
        verdict=verdict,
        candidate=decision.candidate,
        decision=decision.digest(),
        policy=decision.policy,
    )
    return sign_envelope(made.payload(), APPROVAL_TYPE, signer(key or person))


def approve(core: Core, candidate: str, person: str = "ada") -> Approved:
    return core.governance.approve(candidate, approval_envelope(core, newest(core, candidate), person))


def reject(core: Core, candidate: str, person: str = "ada") -> Approved:
    return core.governance.reject(candidate, approval_envelope(core, newest(core, candidate), person, "reject"))


def newest(core: Core, candidate: str) -> Decision:
    return core.ledger.decisions(candidate=core.governance.digest_of(candidate))[0]


def refusals(core: Core) -> list[str]:
    """The names of what was refused, as the audit log has them."""
    entries = core.ledger.audit.entries()  # type: ignore[attr-defined]
    return [str(entry.what["name"]) for entry in entries if entry.kind.endswith(".refused") and "name" in entry.what]


def log_holds(core: Core) -> bool:
    return verified(core.data, None, None, []).found.holds
