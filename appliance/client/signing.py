"""What a person signs, made from what they were shown: a word on a decision, a key's admission, an edit of the policy.

What always holds: the digest that is signed is computed here from the decision that is shown, never taken from the
daemon's word about it.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Literal

from appliance.client.messages import Keys, PolicyInForce
from policies.decision import Decision
from policies.edits import POLICY, PolicyEdit, edit_in
from policies.envelopes import PublicKey, Signer, canonical, seal, sign_too
from policies.meaning import MEANING, Page, new_meaning
from policies.refusals import Refusal, Refused
from policies.register import KEY, KeyStatement
from policies.words import WORD, Question, new_word


def question_about(decision: Decision, verdict: Literal["approve", "reject"], keys: Keys) -> Question:
    return Question(
        verdict=verdict,
        candidate=decision.candidate,
        decision=decision.digest(),
        policy=decision.policy,
        valid_hours=keys.valid_hours,
        who=keys.who,
    )


def signed_word(
    decision: Decision, verdict: Literal["approve", "reject"], keys: Keys, signer: Signer, *, hours: float | None = None
) -> bytes:
    """The envelope for `ApiClient.approve` or `reject`; valid as long as the policy allows, or `hours`.

    Raises Refused when the key is nobody's that the daemon knows: said before a passphrase is wasted on it.
    """
    person = person_behind(keys, signer.public)
    word = new_word(
        question_about(decision, verdict, keys), person, nonce=secrets.token_hex(16), made_at=_now(), hours=hours
    )
    return seal(word.payload(), WORD, signer)


def signed_meaning(
    verdict: Literal["meant", "not_meant"], *, job: str, content: str, page: Page, keys: Keys, signer: Signer
) -> bytes:
    """The envelope for `ApiClient.give_meaning`, about the page that was shown. Raises Refused as `signed_word`."""
    word = new_meaning(
        verdict,
        person_behind(keys, signer.public),
        job=job,
        content=content,
        page=page,
        nonce=secrets.token_hex(16),
        made_at=_now(),
        hours=keys.valid_hours,
    )
    return seal(word.payload(), MEANING, signer)


def person_behind(keys: Keys, public: PublicKey) -> str:
    """Whose key it is by the daemon's register. Raises Refused for an unknown or revoked one."""
    known = next((key for key in keys.keys if key.fingerprint == public.fingerprint), None)
    if known is None:
        raise Refused(
            Refusal.UNKNOWN_KEY,
            f"{public.fingerprint} is nobody's that the daemon knows",
            hint="`assay key ls` shows whose keys are known; `assay key new` and `assay key admit` add one",
        )
    if not known.valid:
        raise Refused(
            Refusal.REVOKED, f"the key of {known.person} was revoked at {known.revoked_at}", hint="use another key"
        )
    return known.person


def admission(person: str, signer: Signer) -> bytes:
    """A statement that admits the signer's own key, signed by it alone so far."""
    return _about_key("admit", person, signer.public, "", signer)


def revocation(person: str, key: PublicKey, reason: str, signer: Signer) -> bytes:
    return _about_key("revoke", person, key, reason, signer)


def policy_edit(content_digest: str, in_force: PolicyInForce, signer: Signer, before: bytes | None) -> bytes:
    """A signed edit from the policy in force to the file of that digest; one more signature on `before` when that is
    the same edit, signed by others."""
    if before is not None:
        try:
            edit = edit_in(before)
        except Refused:
            edit = None
        if edit is not None and (edit.log, edit.number, edit.replaces, edit.file) == (
            in_force.log,
            in_force.number,
            in_force.digest,
            content_digest,
        ):
            return sign_too(before, signer)
    made = PolicyEdit(
        log=in_force.log, number=in_force.number, replaces=in_force.digest, file=content_digest, at=_now()
    )
    return seal(canonical(made.model_dump(mode="json")), POLICY, signer)


def _about_key(action: Literal["admit", "revoke"], person: str, key: PublicKey, reason: str, signer: Signer) -> bytes:
    statement = KeyStatement(action=action, person=person, key=key.line, reason=reason, at=_now())
    return seal(canonical(statement.model_dump(mode="json")), KEY, signer)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
