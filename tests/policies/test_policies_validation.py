"""A word on a job's meaning counts for that job's content alone, as it was shown, in time, and never by a machine."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from signing_kit import LATER, NOW, admission, digest, register_of, revocation, signer

from policies.approvals import APPROVAL_TYPE
from policies.envelopes import PublicKey, add_signature, canonical, sign_envelope
from policies.errors import Refusal, StatementRefused
from policies.statements import (
    VALIDATION_TYPE,
    Page,
    ShownExample,
    SignedValidation,
    ValidationSubject,
    open_validation,
    read_validation,
    verify_validation,
)

REGISTER = register_of("ada", "bob")
EXAMPLE = ShownExample(sort="mutant", what="one more", text="7", outcome="fail", reason="a different integer")
PAGE = Page(
    question=("What is 2 * 3?",),
    words=("the whole number 6",),
    first=("All rejected",),
    examples=(EXAMPLE,),
    verifier="v",
)
ASKED = ValidationSubject(
    job="job-1", content=digest("content"), question=PAGE.question, files=(), words=PAGE.words, valid_hours=24.0
)


def validation_envelope(person: str = "ada", *, key: str = "", page: Page = PAGE, **about: Any) -> bytes:
    fields = {"job": "job-1", "content": digest("content"), "made_at": NOW, "hours": 24.0, "nonce": "0" * 32} | about
    made = SignedValidation.valid_for(**{"verdict": "meant"} | fields, person=person, page=page)
    return sign_envelope(made.payload(), VALIDATION_TYPE, signer(key or person))


def refusal(envelope: bytes, *, register=REGISTER, asked=ASKED, before=None, now=NOW, latest=NOW) -> Refusal:
    with pytest.raises(StatementRefused) as met:
        verify_validation(envelope, asked, register, before=before, now=now, latest=latest)
    assert met.value.hint
    return met.value.name


@pytest.mark.parametrize("verdict", ["meant", "not_meant"])
def test_a_persons_word_on_what_was_shown_counts(verdict) -> None:
    signed, key = verify_validation(
        validation_envelope(verdict=verdict), ASKED, REGISTER, before=None, now=NOW, latest=NOW
    )
    assert (signed.person, signed.verdict, signed.page.digest()) == ("ada", verdict, PAGE.digest())
    assert key.fingerprint == signer("ada").public.fingerprint


@pytest.mark.parametrize("machine", ["daemon", "trainer"])
def test_no_machine_can_say_what_a_person_meant(machine) -> None:
    assert refusal(validation_envelope(key=machine)) is Refusal.MACHINE_KEY


def test_only_the_person_whose_key_it_is_speaks() -> None:
    assert refusal(validation_envelope(key="mallory")) is Refusal.UNKNOWN_KEY
    assert refusal(validation_envelope("ada", key="bob")) is Refusal.PERSON
    assert refusal(add_signature(validation_envelope(), signer("bob"))) is Refusal.SHAPE


def test_a_revoked_key_has_no_word() -> None:
    assert (
        refusal(validation_envelope(), register=REGISTER.after(revocation("ada", "bob"), people=1)) is Refusal.REVOKED
    )


def test_it_is_about_one_job_and_its_content_as_it_was_shown() -> None:
    assert refusal(validation_envelope(job="job-2")) is Refusal.JOB
    assert refusal(validation_envelope(content=digest("another"))) is Refusal.CONTENT
    assert (
        refusal(validation_envelope(page=PAGE.model_copy(update={"question": ("What is 2 * 4?",)}))) is Refusal.CONTENT
    )
    assert (
        refusal(validation_envelope(page=PAGE.model_copy(update={"words": ("the whole number 8",)}))) is Refusal.CONTENT
    )
    assert refusal(validation_envelope(page=PAGE.model_copy(update={"files": ("a.csv",)}))) is Refusal.CONTENT
    assert refusal(validation_envelope(), asked=replace(ASKED, content=digest("changed"))) is Refusal.CONTENT


def test_it_is_given_in_time_and_by_a_clock_that_was_not_set_back() -> None:
    assert refusal(validation_envelope(hours=0.5), now=LATER, latest=LATER) is Refusal.EXPIRED
    assert refusal(validation_envelope(made_at=LATER)) is Refusal.FUTURE
    assert refusal(validation_envelope(hours=1000.0)) is Refusal.LIFETIME
    assert refusal(validation_envelope(hours=-1.0)) is Refusal.EXPIRED
    assert refusal(validation_envelope(), latest=LATER) is Refusal.CLOCK


def test_a_newer_word_replaces_an_older_one_and_never_the_other_way() -> None:
    first, second = (
        validation_envelope(),
        validation_envelope(made_at="2026-01-02T03:04:06+00:00", verdict="not_meant", nonce="1" * 32),
    )
    before, after = sorted([first, second], key=lambda envelope: open_validation(envelope)[0].made_at)
    late = max(NOW, open_validation(after)[0].made_at)
    signed, _ = verify_validation(after, ASKED, REGISTER, before=before, now=late, latest=late)
    assert signed == open_validation(after)[0]
    assert refusal(before, before=after, now=late) is Refusal.REPLAYED
    assert refusal(after, before=after, now=late) is Refusal.REPLAYED


def test_a_word_of_another_kind_or_an_edited_one_is_none() -> None:
    payload = open_validation(validation_envelope())[0].payload()
    assert "looks" in json.loads(payload)["page"], "what was signed before keeps its name and its digest"
    assert refusal(sign_envelope(payload, APPROVAL_TYPE, signer("ada"))) is Refusal.SHAPE
    assert (
        refusal(sign_envelope(canonical({"format": "assay-meaning-1"}), VALIDATION_TYPE, signer("ada")))
        is Refusal.SHAPE
    )
    assert refusal(admission("carl")) is Refusal.SHAPE
    parts = json.loads(validation_envelope())
    parts["payload"] = json.loads(validation_envelope(verdict="not_meant"))["payload"]
    assert refusal(canonical(parts)) is Refusal.SIGNATURE


def test_whoever_has_the_persons_public_key_reads_it_without_a_register() -> None:
    assert read_validation(validation_envelope(), signer("ada").public).verdict == "meant"
    with pytest.raises(StatementRefused, match="unknown key"):
        read_validation(validation_envelope(), signer("bob").public)
    parts = json.loads(validation_envelope())
    parts["payload"] = json.loads(validation_envelope(job="job-2"))["payload"]
    with pytest.raises(StatementRefused, match="signature"):
        read_validation(canonical(parts), PublicKey(signer("ada").public.line))
