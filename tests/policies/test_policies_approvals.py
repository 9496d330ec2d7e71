"""A person's word counts once, on what was shown, with a valid key and in time; everything else is refused by name."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
from signing_kit import (
    LATER,
    NOW,
    QUESTION,
    admission,
    approval_envelope,
    approval_statement,
    digest,
    register_of,
    revocation,
    signer,
)
from tables import table

from policies.approvals import APPROVAL_TYPE, is_valid_at, read_approval, verify_approval, verify_recorded_approval
from policies.envelopes import PublicKey, add_signature, canonical, open_envelope, sign_envelope
from policies.errors import Refusal, StatementRefused
from policies.register import KEY_TYPE

REGISTER = register_of("ada", "bob")


def refusal(
    envelope: bytes, *, register=REGISTER, question=QUESTION, used=(), last_at=None, now=NOW, latest=NOW
) -> Refusal:
    with pytest.raises(StatementRefused) as met:
        verify_approval(envelope, question, register, used=used, last_at=last_at, now=now, latest=latest)
    assert met.value.hint
    assert str(met.value).startswith(f"{met.value.name.value}: ")
    return met.value.name


def counts(envelope: bytes, register=REGISTER, *, at: str) -> bool:
    return is_valid_at(*read_approval(envelope, register, also_revoked=True), at=at, taken_back={})


def record(envelope: bytes, **other: str) -> dict[str, str]:
    """The record of what `approval_envelope()` gives, with that envelope."""
    return {
        "verdict": "approve",
        "person": "ada",
        "candidate": digest("candidate"),
        "decision": digest("decision"),
        "nonce": "0" * 32,
        "key": signer("ada").public.fingerprint,
        "envelope": envelope.decode(),
        **other,
    }


def test_a_word_of_a_person_on_what_was_shown_counts() -> None:
    signed, key = verify_approval(approval_envelope(), QUESTION, REGISTER, used=(), now=NOW, latest=NOW)
    assert (signed.person, signed.verdict, signed.candidate) == ("ada", "approve", digest("candidate"))
    assert key.fingerprint == signer("ada").public.fingerprint


@pytest.mark.parametrize("machine", ["daemon", "trainer"])
def test_no_key_of_the_machine_has_a_word(machine: str) -> None:
    assert refusal(approval_envelope(key=machine)) is Refusal.MACHINE_KEY


def test_a_key_that_nobody_admitted_has_no_word() -> None:
    assert refusal(approval_envelope(key="mallory")) is Refusal.UNKNOWN_KEY


def test_a_revoked_key_has_no_word_and_what_it_said_before_counts_no_longer() -> None:
    assert counts(approval_envelope(), at=NOW)
    later = REGISTER.after(revocation("ada", "bob"), people=1)
    assert refusal(approval_envelope(), register=later) is Refusal.REVOKED
    assert not counts(approval_envelope(), later, at=NOW)


def test_nobody_speaks_in_anothers_name() -> None:
    assert refusal(approval_envelope("ada", key="bob")) is Refusal.PERSON


def test_a_person_whom_the_policy_does_not_name_has_no_word() -> None:
    assert refusal(approval_envelope("bob"), question=replace(QUESTION, who=("ada",))) is Refusal.NOT_NAMED


@pytest.mark.parametrize(
    ("about", "name"), [("candidate", Refusal.CANDIDATE), ("decision", Refusal.DECISION), ("policy", Refusal.POLICY)]
)
def test_a_word_is_about_one_candidate_one_decision_and_one_policy(about: str, name: Refusal) -> None:
    other = replace(QUESTION, **{about: digest("other")})
    assert refusal(approval_envelope(question=other)) is name


def test_a_rejection_counts_under_whatever_policy_the_decision_was_shown() -> None:
    question = replace(QUESTION, verdict="reject")
    shown = approval_envelope(question=replace(question, policy=digest("other")))
    signed, _ = verify_approval(shown, question, REGISTER, used=(), now=NOW, latest=NOW)
    assert signed.verdict == "reject"


def test_a_rejection_does_not_pass_as_an_approval() -> None:
    assert refusal(approval_envelope(question=replace(QUESTION, verdict="reject"))) is Refusal.DECISION


def test_a_word_is_given_once() -> None:
    assert refusal(approval_envelope(nonce="7" * 32), used=("7" * 32,)) is Refusal.REPLAYED


def test_a_word_that_is_older_than_the_persons_last_one_is_refused() -> None:
    assert refusal(approval_envelope(), last_at={"ada": LATER}) is Refusal.REPLAYED
    for last_at in ({"ada": NOW}, {"bob": LATER}):
        verify_approval(approval_envelope(), QUESTION, REGISTER, used=(), last_at=last_at, now=NOW, latest=NOW)


def test_a_record_of_a_word_says_what_was_signed() -> None:
    signed, key = verify_recorded_approval(record(approval_envelope()), REGISTER, who=("*",))
    assert (signed.person, key.person) == ("ada", "ada")


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ({"candidate": digest("other")}, Refusal.CANDIDATE),
        ({"decision": digest("other")}, Refusal.DECISION),
        ({"verdict": "reject"}, Refusal.DECISION),
        ({"person": "bob"}, Refusal.PERSON),
        ({"key": signer("bob").public.fingerprint}, Refusal.PERSON),
        ({"nonce": "1" * 32}, Refusal.REPLAYED),
    ],
)
def test_a_record_that_says_anything_else_than_what_was_signed_is_refused_by_name(other, name: Refusal) -> None:
    with pytest.raises(StatementRefused) as met:
        verify_recorded_approval(record(approval_envelope(), **other), REGISTER, who=("*",))
    assert met.value.name is name


def test_a_word_on_record_of_a_person_whom_the_policy_does_not_name_is_refused() -> None:
    with pytest.raises(StatementRefused) as met:
        verify_recorded_approval(record(approval_envelope()), REGISTER, who=("bob",))
    assert met.value.name is Refusal.NOT_NAMED


def test_a_word_on_record_does_not_count_before_it_was_made() -> None:
    assert not counts(approval_envelope(made_at=LATER), at=NOW)


def test_a_time_beyond_every_calendar_is_none() -> None:
    made = approval_statement(QUESTION, made_at="0001-01-01T00:00:00+00:00")
    early = made.model_copy(update={"made_at": "0001-01-01T00:00:00+23:00"})
    assert refusal(sign_envelope(early.payload(), APPROVAL_TYPE, signer("ada"))) is Refusal.SHAPE


def test_a_word_expires() -> None:
    short = approval_envelope(hours=0.5)
    verify_approval(short, QUESTION, REGISTER, used=(), now=NOW, latest=NOW)
    assert refusal(short, now=LATER, latest=NOW) is Refusal.EXPIRED
    assert counts(short, at=NOW)
    assert not counts(short, at=LATER)


def test_setting_the_clock_back_brings_no_word_back_to_life() -> None:
    assert refusal(approval_envelope(hours=0.5), now=NOW, latest=LATER) is Refusal.CLOCK
    assert refusal(approval_envelope(hours=0.01), now=NOW, latest="2026-01-02T04:05:00.000+00:00") is Refusal.EXPIRED


def test_a_word_from_the_future_or_for_too_long_is_none() -> None:
    assert refusal(approval_envelope(made_at=LATER)) is Refusal.FUTURE
    assert refusal(approval_envelope(hours=25.0)) is Refusal.LIFETIME


def test_a_word_that_ends_before_it_begins_is_none() -> None:
    assert refusal(approval_envelope(hours=-1.0)) is Refusal.EXPIRED


def test_what_was_edited_after_it_was_signed_is_refused() -> None:
    envelope = json.loads(approval_envelope())
    payload = json.loads(base64.b64decode(envelope["payload"]))
    payload["candidate"] = digest("swapped")
    envelope["payload"] = base64.b64encode(canonical(payload)).decode()
    swapped = replace(QUESTION, candidate=digest("swapped"))
    assert refusal(canonical(envelope), question=swapped) is Refusal.SIGNATURE


def test_a_signature_of_one_kind_of_statement_does_not_pass_as_another() -> None:
    approval = approval_statement(QUESTION)
    assert refusal(sign_envelope(approval.payload(), KEY_TYPE, signer("ada"))) is Refusal.SHAPE
    moved = json.loads(sign_envelope(approval.payload(), KEY_TYPE, signer("ada"))) | {"payloadType": APPROVAL_TYPE}
    assert refusal(canonical(moved)) is Refusal.SIGNATURE


def test_a_forged_signature_is_refused() -> None:
    envelope = json.loads(approval_envelope(key="mallory"))
    envelope["signatures"][0]["keyid"] = signer("ada").public.fingerprint
    assert refusal(canonical(envelope)) is Refusal.SIGNATURE


def test_two_signatures_are_not_one_word() -> None:
    assert refusal(add_signature(approval_envelope(), signer("bob"))) is Refusal.SHAPE


@table(
    "rubbish",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"payload":1}',
        b"\xff",
        b"[" * 100_000,
        b'{"payload":"","payloadType":"","signatures":[]}',
    ],
)
def test_rubbish_is_refused(rubbish: bytes) -> None:
    assert refusal(rubbish) is Refusal.SHAPE


def test_an_envelope_holds_nothing_that_is_not_signed() -> None:
    envelope = json.loads(approval_envelope())
    assert refusal(canonical(envelope | {"note": "approved"})) is Refusal.SHAPE
    envelope["signatures"][0]["note"] = "approved"
    assert refusal(canonical(envelope)) is Refusal.SHAPE


def test_a_signature_is_by_a_key_that_is_named_as_text() -> None:
    envelope = json.loads(approval_envelope())
    envelope["signatures"][0]["keyid"] = 5
    assert refusal(canonical(envelope)) is Refusal.SHAPE


def test_every_single_changed_bit_of_a_word_is_seen() -> None:
    sound = approval_envelope()
    verify_approval(sound, QUESTION, REGISTER, used=(), now=NOW, latest=NOW)
    for place in range(len(sound)):
        changed = bytearray(sound)
        changed[place] ^= 1 << place % 8
        refusal(bytes(changed))


def test_a_public_key_is_ed25519_in_opensshs_form() -> None:
    line = signer("ada").public.line
    assert PublicKey.read(f"{line} ada@example\n") == PublicKey(line)
    for other in ("", "ssh-ed25519", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ", "ssh-ed25519 AAAA", "\0"):
        with pytest.raises(ValueError, match=r"key"):
            PublicKey.read(other)


def test_an_admission_is_no_word() -> None:
    assert refusal(admission("ada")) is Refusal.SHAPE
    assert open_envelope(approval_envelope()).signers == (signer("ada").public.fingerprint,)
