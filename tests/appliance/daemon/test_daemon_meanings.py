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
from appliance.config import Settings
from appliance.daemon.core import Core
from appliance.daemon.errors import NotThereError, RefusedByPolicyError
from appliance.errors import exit_code
from appliance.jobs.bundle import write_bundle
from appliance.jobs.content import content_of, files_in_words, meaning_file, read_word
from appliance.jobs.format import MEANING as INSIDE
from appliance.jobs.format import canonical
from appliance.jobs.in_words import in_words, question_lines
from appliance.jobs.statement import mark, statement
from appliance.records import Artifact, Job, JobState, Meaning
from policies.envelopes import Signer, seal
from policies.meaning import MEANING, Page, new_meaning
from policies.refusals import Refused
from verifiers.spec import PredicateSpec
from verifiers.verdict import Ground, Outcome, Verdict

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
    return core.desk.submit(SubmitJob(question="What is x?", spec=PredicateSpec(predicate=check, domain="integer")))


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


def word(job: Job, person: str = "ada", *, key: str = "", shown: Page | None = None, **other: Any) -> bytes:
    fields = {"job": job.id, "content": content_of(job), "made_at": NOW, "nonce": "0" * 32, "hours": 24.0} | other
    verdict = fields.pop("verdict", "meant")
    made = new_meaning(verdict, person, page=shown or page(job), **fields)
    return seal(made.payload(), MEANING, signer(key or person))


def solve(core: Core, job: Job, *, meaning: Meaning | None = None, verdict: Verdict = PASSED) -> Path:
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
        statement=statement(job.model_copy(update={"meaning": meaning}), verdict),
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
        core.give_meaning(job.id, envelope)
    assert exit_code(met.value) == 4
    assert met.value.hint
    found = core.ledger.job(job.id)
    assert found is not None
    assert found.meaning == job.meaning
    return refusals(core)[-1]


@pytest.mark.parametrize("verdict", ["meant", "not_meant"])
def test_a_word_is_checked_logged_and_on_the_job(core, verdict) -> None:
    job = submit(core)
    assert [one.id for one in core.meanings.waiting(10)] == [job.id]
    kept = core.give_meaning(job.id, word(job, verdict=verdict))
    assert kept.meaning is not None
    assert (kept.meaning.verdict, kept.meaning.person, kept.state) == (verdict, "ada", JobState.QUEUED)
    assert kept.meaning.shown == page(job).digest()
    assert read_word(kept.meaning, content_of(job), signer("ada").public).verdict == verdict
    assert core.meanings.waiting(10) == []
    [logged] = entries(core, "meaning")
    assert (logged["job"], logged["verdict"], logged["content"]) == (job.id, verdict, content_of(job))
    expected = "verified and validated" if verdict == "meant" else "verified, but not what was meant"
    assert mark(statement(kept, PASSED)) == expected


def test_neither_the_daemon_nor_the_trainer_can_validate(core, data) -> None:
    job = submit(core)
    for machine in ("daemon", "trainer"):
        own = Signer.of(load_or_make(data, machine))
        made = new_meaning(
            "meant", "ada", job=job.id, content=content_of(job), page=page(job), nonce="0" * 32, made_at=NOW, hours=1.0
        )
        assert refused(core, job, seal(made.payload(), MEANING, own)) == "a machine's key"


def test_what_was_shown_has_to_be_what_the_job_has(core) -> None:
    job, other = submit(core), submit(core, "x*x == 49")
    assert refused(core, job, word(other)) == "another job"
    assert refused(core, job, word(job, content=content_of(other))) == "another content"
    assert refused(core, job, word(job, shown=page(job, words=in_words(other.spec)))) == "another content"
    assert refused(core, job, word(job, shown=page(job, question=("What is y?",)))) == "another content"


def test_a_word_of_nobody_or_too_late_or_twice_is_refused(core, clock) -> None:
    job = submit(core)
    assert refused(core, job, word(job, key="mallory")) == "unknown key"
    assert refused(core, job, word(job, "ada", key="bob")) == "another person"
    assert refused(core, job, word(job, hours=1_000.0)) == "valid for too long"
    assert refused(core, job, b"{}") == "not a signed statement"
    soon = word(job, hours=0.5)
    clock.at = "2026-01-02T05:04:05.000+00:00"
    assert refused(core, job, soon) == "expired"
    first = word(job)
    job = core.give_meaning(job.id, first)
    assert refused(core, job, first) == "replayed"
    later = core.give_meaning(job.id, word(job, made_at="2026-01-02T04:05:05.000+00:00", verdict="not_meant"))
    assert later.meaning is not None
    assert later.meaning.verdict == "not_meant"
    assert refused(core, later, first) == "replayed"


def test_jobs_that_are_not_there_or_have_ended_without_an_artifact_are_refused(core) -> None:
    job = submit(core)
    with pytest.raises(NotThereError, match="no job 'nope'"):
        core.give_meaning("nope", word(job))
    core.desk.cancel(job.id)
    with pytest.raises(RefusedByPolicyError, match="is cancelled"):
        core.give_meaning(job.id, word(job))
    failed = submit(core)
    core.ledger.put_job(failed.model_copy(update={"state": JobState.UNSOLVED, "reason": "none was verified"}))
    with pytest.raises(RefusedByPolicyError, match="is unsolved"):
        core.give_meaning(failed.id, word(failed))
    assert core.meanings.waiting(10) == []


def test_a_word_after_the_bundle_lies_beside_it_and_its_bytes_stay(core) -> None:
    job = submit(core)
    folder = solve(core, job)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert [one.id for one in core.meanings.waiting(10)] == [job.id]
    kept = core.give_meaning(job.id, word(job))
    assert kept.meaning is not None
    assert meaning_file(folder).read_bytes() == canonical(kept.meaning.model_dump(mode="json"))
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_word_that_is_in_the_bundle_is_not_laid_beside_it(core) -> None:
    job = core.give_meaning((made := submit(core)).id, word(made))
    folder = solve(core, job, meaning=job.meaning)
    assert (folder / INSIDE).is_file()
    assert not meaning_file(folder).exists()


def test_a_word_that_came_while_the_bundle_was_written_is_not_lost(core) -> None:
    job = submit(core)
    core.give_meaning(job.id, word(job))
    folder = solve(core, job)
    assert meaning_file(folder).is_file()


def test_what_a_kill_left_undone_is_done_at_the_next_start(data, clock) -> None:
    with Core(Settings(data=data), now=clock) as core:
        admit(core, "ada")
        job = submit(core)
        folder = solve(core, job)
        core.give_meaning(job.id, word(job))
    kept = meaning_file(folder).read_bytes()
    meaning_file(folder).unlink()
    with Core(Settings(data=data), now=clock):
        assert meaning_file(folder).read_bytes() == kept


def test_a_revoked_key_takes_its_words_off_what_has_not_ended(core) -> None:
    job, done = submit(core), submit(core)
    core.give_meaning(job.id, word(job))
    solve(core, done)
    core.give_meaning(done.id, word(done))
    core.change_key(revocation("ada", "bob", at=NOW))
    open_job, ended = core.ledger.job(job.id), core.ledger.job(done.id)
    assert open_job is not None
    assert open_job.meaning is None
    assert ended is not None
    assert ended.meaning is not None
    assert [one["job"] for one in entries(core, "meaning.dropped")] == [job.id]
    assert {one.id for one in core.meanings.waiting(10)} == {job.id, done.id}
    assert refused(core, open_job, word(job)) == "revoked key"
    assert core.give_meaning(job.id, word(job, "bob")).meaning is not None


def test_a_word_that_somebody_wrote_into_the_database_counts_for_nothing(core) -> None:
    job = submit(core)
    honest = core.give_meaning(job.id, word(job))
    assert core.meanings.as_it_counts(honest) == honest
    [listed] = core.meanings.listed(10)
    assert listed.meaning == honest.meaning.model_copy(update={"envelope": ""})
    forged = json.loads(word(job, key="mallory"))
    forged["signatures"][0]["keyid"] = signer("ada").public.fingerprint
    envelope = json.dumps(forged, sort_keys=True, separators=(",", ":"))
    for change in ({"envelope": envelope}, {"key": signer("mallory").public.fingerprint}, {"envelope": "{}"}):
        made = core.ledger.put_meaning(job.id, honest.meaning.model_copy(update=change))
        assert core.meanings.as_it_counts(made).meaning is None
        assert [(one.id, one.meaning) for one in core.meanings.waiting(10)] == [(job.id, None)]
        assert core.meanings.listed(10)[0].meaning is None
    other = core.ledger.put_meaning(submit(core).id, honest.meaning)
    assert core.meanings.as_it_counts(other).meaning is None


def test_a_record_that_says_something_else_than_was_signed_is_found_out(core) -> None:
    job = submit(core)
    meaning = core.give_meaning(job.id, word(job, verdict="not_meant")).meaning
    assert meaning is not None
    for change in ({"verdict": "meant"}, {"person": "bob"}, {"shown": "0" * 64}, {"key": "SHA256:x"}):
        with pytest.raises(Refused):
            read_word(meaning.model_copy(update=change), content_of(job))
    with pytest.raises(Refused, match="another content"):
        read_word(meaning, "0" * 64)
    forged = json.loads(meaning.envelope)
    forged["payload"] = json.loads(word(job))["payload"]
    envelope = json.dumps(forged, sort_keys=True, separators=(",", ":"))
    changed = meaning.model_copy(update={"verdict": "meant", "envelope": envelope})
    assert read_word(changed, content_of(job)).verdict == "meant"
    with pytest.raises(Refused, match="signature"):
        read_word(changed, content_of(job), signer("ada").public)
