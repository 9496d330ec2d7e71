"""Statements that a person signs: approvals, validations, key admissions and policy edits.

Invariants: the signed digest is computed here from the decision shown, never taken from the daemon's answer.
"""

from __future__ import annotations

import secrets
from typing import Literal

from appliance.client.messages import Keys, PolicyInForce
from appliance.system.clock import utc_now
from policies.approvals import APPROVAL_TYPE, SignedApproval
from policies.contract.decision import Decision, KeyStatement
from policies.envelopes import PublicKey, Signer, add_signature, canonical, sign_envelope
from policies.errors import Refusal, StatementRefused
from policies.register import KEY_TYPE
from policies.statements import POLICY_TYPE, VALIDATION_TYPE, Page, PolicyEdit, SignedValidation, read_edit


def signed_approval(
    decision: Decision, verdict: Literal["approve", "reject"], keys: Keys, signer: Signer, *, hours: float | None = None
) -> bytes:
    """Signs a person's approval or rejection of a decision. Returns the envelope for `ApiClient.judge`, valid for
    `hours` or as long as the policy allows. Raises StatementRefused for a key unknown to the daemon, before a
    passphrase is asked for."""
    statement = SignedApproval.valid_for(
        keys.valid_hours if hours is None else hours,
        made_at=utc_now(),
        person=person_behind(keys, signer.public),
        nonce=secrets.token_hex(16),
        verdict=verdict,
        candidate=decision.candidate,
        decision=decision.digest(),
        policy=decision.policy,
    )
    return sign_envelope(statement.payload(), APPROVAL_TYPE, signer)


def signed_validation(
    verdict: Literal["meant", "not_meant"], *, job: str, content: str, page: Page, keys: Keys, signer: Signer
) -> bytes:
    """Signs a person's verdict on what a job's check means, about the page shown. Returns the envelope for
    `ApiClient.validate`. Raises as `signed_approval`."""
    statement = SignedValidation.valid_for(
        keys.valid_hours,
        made_at=utc_now(),
        person=person_behind(keys, signer.public),
        nonce=secrets.token_hex(16),
        verdict=verdict,
        job=job,
        content=content,
        page=page,
    )
    return sign_envelope(statement.payload(), VALIDATION_TYPE, signer)


def person_behind(keys: Keys, public: PublicKey) -> str:
    """Returns the owner of a key among the keys known to the daemon. Raises StatementRefused if unknown or revoked."""
    known = next((key for key in keys.keys if key.fingerprint == public.fingerprint), None)
    if known is None:
        raise StatementRefused(
            Refusal.UNKNOWN_KEY,
            f"unknown key {public.fingerprint}",
            hint="add it with `assay key admit`; `assay key ls` lists known keys",
        )
    if not known.valid:
        raise StatementRefused(
            Refusal.REVOKED, f"the key of {known.person} was revoked at {known.revoked_at}", hint="use another key"
        )
    return known.person


def admission(person: str, signer: Signer) -> bytes:
    """Returns a statement that admits the signer's own key, signed by that key alone."""
    return _signed_by(signer, KeyStatement(action="admit", person=person, key=signer.public.line, at=utc_now()))


def revocation(person: str, key: PublicKey, reason: str, signer: Signer) -> bytes:
    return _signed_by(signer, KeyStatement(action="revoke", person=person, key=key.line, reason=reason, at=utc_now()))


def policy_edit(content_digest: str, in_force: PolicyInForce, signer: Signer, before: bytes | None) -> bytes:
    """Signs the change from the policy in force to a file with that digest. Adds the signature to `before` if that is
    the same edit, signed by others."""
    if before is not None:
        try:
            edit = read_edit(before)
        except StatementRefused:
            edit = None
        if edit is not None and (edit.log, edit.number, edit.replaces, edit.file) == (
            in_force.log,
            in_force.number,
            in_force.digest,
            content_digest,
        ):
            return add_signature(before, signer)
    made = PolicyEdit(
        log=in_force.log, number=in_force.number, replaces=in_force.digest, file=content_digest, at=utc_now()
    )
    return sign_envelope(canonical(made.model_dump(mode="json")), POLICY_TYPE, signer)


def _signed_by(signer: Signer, statement: KeyStatement) -> bytes:
    return sign_envelope(canonical(statement.model_dump(mode="json")), KEY_TYPE, signer)
