"""Whether a check says what was meant is a person's word: on this very job, checked, on record, and apart from what is
verified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from people import admit, refusals, revocation, signer

from appliance.audit.machine_keys import load_or_make
from appliance.client.messages import SubmitJob
from appliance.config.configuration import Settings
from appliance.daemon.contract import NotThereError, RefusedByPolicyError
from appliance.daemon.coordination.core import Core
from appliance.errors import exit_code
from appliance.jobs.bundle import write_bundle
from appliance.jobs.layout import MEANING as INSIDE
from appliance.jobs.layout import canonical
from appliance.jobs.statement import mark, statement
from appliance.jobs.validation import (
    content_of,
    files_in_words,
    in_words,
    meaning_file,
    question_lines,
    signed_validation,
)
from appliance.records.jobs import Artifact, Job, JobState, Validation
from policies.envelopes import Signer, sign_envelope
from policies.errors import StatementRefused
from policies.statements import VALIDATION_TYPE, Page, SignedValidation
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.predicate.spec import PredicateSpec

NOW = "2026-01-02T04:04:05.000+00:00"
PASSED = Verdict(
    outcome=Outcome.PASS,
    score=1.0,
    reason="makes the predicate true",
    ground=Ground.PROVED,
    verifier="predicate",
    version="2",
    seconds=0.1,
)


class Clock:
    def __init__(self) -> None:
        self.at = NOW

    def __call__(self) -> str:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def core(data, clock):
    with Core(Settings(data=data), now=clock) as running:
        admit(running, "ada", "bob")
        yield running


def submit(core: Core, check: str = "7*x + 3 == 45") -> Job:
    return core.jobs.submit(SubmitJob(question="What is x?", spec=PredicateSpec(predicate=check, domain="integer")))


def page(job: Job, **other: Any) -> Page:
    shown = {
        "question": question_lines(job.question),
        "files": files_in_words(job.files),
        "words": in_words(job.spec),
        "first": ("All rejected",),
        "looks": (),
        "verifier": "predicate 2",
    }
    return Page.model_validate(shown | other)


def validation_envelope(
    job: Job, person: str = "ada", *, key: str = "", shown: Page | None = None, by: Signer | None = None, **other: Any
) -> bytes:
    fields = {"job": job.id, "content": content_of(job), "made_at": NOW, "nonce": "0" * 32, "hours": 24.0} | other
    made = SignedValidation.valid_for(**{"verdict": "meant"} | fields, person=person, page=shown or page(job))
    return sign_envelope(made.payload(), VALIDATION_TYPE, by or signer(key or person))


def solve(core: Core, job: Job, *, meaning: Validation | None = None, verdict: Verdict = PASSED) -> Path:
    """As the worker does: the bundle, its record, the job's end."""
    folder = core.data / "artifacts" / job.id
    manifest = write_bundle(
        folder,
        answer="6",
        question=job.question,
        spec=job.spec,
        verdict=verdict,
        transcript=[],
        versions={},
        statement=statement(job.model_copy(update={"validation": meaning}), verdict),
        solved_by="policy model",
        meaning=meaning,
    )
    core.ledger.put_artifact(
        Artifact(
            id=job.id,
            job=job.id,
            folder=f"artifacts/{job.id}",
            manifest=manifest,
            answer="6",
            weights="",
            verdict=verdict,
            created=NOW,
        )
    )
    core.ledger.put_job(job.model_copy(update={"state": JobState.SOLVED, "artifact": job.id}))
    return folder


def entries(core: Core, kind: str) -> list[dict[str, Any]]:
    return [dict(entry.what) for entry in core.ledger.audit.entries() if entry.kind == kind]  # type: ignore[attr-defined]


def refused(core: Core, job: Job, envelope: bytes) -> str:
    """The name that the refusal has, which is in the log as well."""
    with pytest.raises(RefusedByPolicyError) as met:
        core.validations.record(job.id, envelope)
    assert exit_code(met.value) == 4
    assert met.value.hint
    found = core.ledger.job(job.id)
    assert found is not None
    assert found.validation == job.validation
    return refusals(core)[-1]


@pytest.mark.parametrize("verdict", ["meant", "not_meant"])
def test_a_word_is_checked_logged_and_on_the_job(core, verdict) -> None:
    job = submit(core)
    assert [one.id for one in core.validations.waiting(10)] == [job.id]
    updated = core.validations.record(job.id, validation_envelope(job, verdict=verdict))
    assert updated.validation is not None
    assert (updated.validation.verdict, updated.validation.person, updated.state) == (verdict, "ada", JobState.QUEUED)
    assert updated.validation.shown == page(job).digest()
    assert signed_validation(updated.validation, content_of(job), signer("ada").public).verdict == verdict
    assert core.validations.waiting(10) == []
    [logged] = entries(core, "meaning")
    assert (logged["job"], logged["verdict"], logged["content"]) == (job.id, verdict, content_of(job))
    expected = "verified and validated" if verdict == "meant" else "verified, but not what was meant"
    assert mark(statement(updated, PASSED)) == expected


def test_neither_the_daemon_nor_the_trainer_can_validate(core, data) -> None:
    job = submit(core)
    for machine in ("daemon", "trainer"):
        own = Signer.of(load_or_make(data, machine))
        assert refused(core, job, validation_envelope(job, by=own)) == "a machine's key"


def test_what_was_shown_has_to_be_what_the_job_has(core) -> None:
    job, other = submit(core), submit(core, "x*x == 49")
    assert refused(core, job, validation_envelope(other)) == "another job"
    assert refused(core, job, validation_envelope(job, content=content_of(other))) == "another content"
    assert (
        refused(core, job, validation_envelope(job, shown=page(job, words=in_words(other.spec)))) == "another content"
    )
    assert refused(core, job, validation_envelope(job, shown=page(job, question=("What is y?",)))) == "another content"


def test_a_word_of_nobody_or_too_late_or_twice_is_refused(core, clock) -> None:
    job = submit(core)
    assert refused(core, job, validation_envelope(job, key="mallory")) == "unknown key"
    assert refused(core, job, validation_envelope(job, "ada", key="bob")) == "another person"
    assert refused(core, job, validation_envelope(job, hours=1_000.0)) == "valid for too long"
    assert refused(core, job, b"{}") == "not a signed statement"
    soon = validation_envelope(job, hours=0.5)
    clock.at = "2026-01-02T05:04:05.000+00:00"
    assert refused(core, job, soon) == "expired"
    first = validation_envelope(job)
    job = core.validations.record(job.id, first)
    assert refused(core, job, first) == "replayed"
    later = core.validations.record(
        job.id, validation_envelope(job, made_at="2026-01-02T04:05:05.000+00:00", verdict="not_meant")
    )
    assert later.validation is not None
    assert later.validation.verdict == "not_meant"
    assert refused(core, later, first) == "replayed"


def test_jobs_that_are_not_there_or_have_ended_without_an_artifact_are_refused(core) -> None:
    job = submit(core)
    with pytest.raises(NotThereError, match="no such job: 'nope'"):
        core.validations.record("nope", validation_envelope(job))
    core.jobs.cancel(job.id)
    with pytest.raises(RefusedByPolicyError, match="is cancelled"):
        core.validations.record(job.id, validation_envelope(job))
    failed = submit(core)
    core.ledger.put_job(failed.model_copy(update={"state": JobState.UNSOLVED, "reason": "none was verified"}))
    with pytest.raises(RefusedByPolicyError, match="is unsolved"):
        core.validations.record(failed.id, validation_envelope(failed))
    assert core.validations.waiting(10) == []


def test_a_word_after_the_bundle_lies_beside_it_and_its_bytes_stay(core) -> None:
    job = submit(core)
    folder = solve(core, job)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert [one.id for one in core.validations.waiting(10)] == [job.id]
    updated = core.validations.record(job.id, validation_envelope(job))
    assert updated.validation is not None
    assert meaning_file(folder).read_bytes() == canonical(updated.validation.model_dump(mode="json"))
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_word_that_is_in_the_bundle_is_not_laid_beside_it(core) -> None:
    job = core.validations.record((made := submit(core)).id, validation_envelope(made))
    folder = solve(core, job, meaning=job.validation)
    assert (folder / INSIDE).is_file()
    assert not meaning_file(folder).exists()


def test_a_word_that_came_while_the_bundle_was_written_is_not_lost(core) -> None:
    job = submit(core)
    core.validations.record(job.id, validation_envelope(job))
    folder = solve(core, job)
    assert meaning_file(folder).is_file()


def test_what_a_kill_left_undone_is_done_at_the_next_start(data, clock) -> None:
    with Core(Settings(data=data), now=clock) as core:
        admit(core, "ada")
        job = submit(core)
        folder = solve(core, job)
        core.validations.record(job.id, validation_envelope(job))
    content = meaning_file(folder).read_bytes()
    meaning_file(folder).unlink()
    with Core(Settings(data=data), now=clock):
        assert meaning_file(folder).read_bytes() == content


def test_a_revoked_key_takes_its_words_off_what_has_not_ended(core) -> None:
    job, done = submit(core), submit(core)
    core.validations.record(job.id, validation_envelope(job))
    solve(core, done)
    core.validations.record(done.id, validation_envelope(done))
    core.trust.change_key(revocation("ada", "bob", at=NOW))
    open_job, ended = core.ledger.job(job.id), core.ledger.job(done.id)
    assert open_job is not None
    assert open_job.validation is None
    assert ended is not None
    assert ended.validation is not None
    assert [one["job"] for one in entries(core, "meaning.dropped")] == [job.id]
    assert {one.id for one in core.validations.waiting(10)} == {job.id, done.id}
    assert refused(core, open_job, validation_envelope(job)) == "revoked key"
    assert core.validations.record(job.id, validation_envelope(job, "bob")).validation is not None


def test_a_word_that_somebody_wrote_into_the_database_counts_for_nothing(core) -> None:
    job = submit(core)
    honest = core.validations.record(job.id, validation_envelope(job))
    assert core.validations.as_it_counts(honest) == honest
    [listed] = core.validations.listed(10)
    assert listed.validation == honest.validation.model_copy(update={"envelope": ""})
    forged = json.loads(validation_envelope(job, key="mallory"))
    forged["signatures"][0]["keyid"] = signer("ada").public.fingerprint
    envelope = json.dumps(forged, sort_keys=True, separators=(",", ":"))
    for change in ({"envelope": envelope}, {"key": signer("mallory").public.fingerprint}, {"envelope": "{}"}):
        made = core.ledger.put_validation(job.id, honest.validation.model_copy(update=change))
        assert core.validations.as_it_counts(made).validation is None
        assert [(one.id, one.validation) for one in core.validations.waiting(10)] == [(job.id, None)]
        assert core.validations.listed(10)[0].validation is None
    other = core.ledger.put_validation(submit(core).id, honest.validation)
    assert core.validations.as_it_counts(other).validation is None


def test_a_record_that_says_something_else_than_was_signed_is_found_out(core) -> None:
    job = submit(core)
    meaning = core.validations.record(job.id, validation_envelope(job, verdict="not_meant")).validation
    assert meaning is not None
    for change in ({"verdict": "meant"}, {"person": "bob"}, {"shown": "0" * 64}, {"key": "SHA256:x"}):
        with pytest.raises(StatementRefused):
            signed_validation(meaning.model_copy(update=change), content_of(job))
    with pytest.raises(StatementRefused, match="another content"):
        signed_validation(meaning, "0" * 64)
    forged = json.loads(meaning.envelope)
    forged["payload"] = json.loads(validation_envelope(job))["payload"]
    envelope = json.dumps(forged, sort_keys=True, separators=(",", ":"))
    changed = meaning.model_copy(update={"verdict": "meant", "envelope": envelope})
    assert signed_validation(changed, content_of(job)).verdict == "meant"
    with pytest.raises(StatementRefused, match="signature"):
        signed_validation(changed, content_of(job), signer("ada").public)
