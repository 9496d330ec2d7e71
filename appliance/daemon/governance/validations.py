"""People's validations that a job's check says what was meant: waiting jobs, and effects of a validation.

Invariants: a validation counts only with the signature of a person's valid key over this job's question, check and
files, in this daemon's wording; it is logged before it is on the job, and refusals are logged by name. Unsigned
database entries count for nothing. A validation never changes what was verified: the two stay apart in all output. One
that came too late for the bundle is stored beside it, so that the bundle's bytes stay. A revoked key removes its
validations from unended jobs; finished bundles keep theirs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from appliance.daemon.contract import EventLog, RefusedByPolicyError
from appliance.daemon.governance.trust import Trust
from appliance.daemon.views.ledger_views import job_named
from appliance.jobs.layout import MEANING, canonical
from appliance.jobs.validation import (
    content_of,
    files_in_words,
    in_words,
    meaning_file,
    not_asked,
    question_lines,
    signed_validation,
)
from appliance.ledger.audited import AuditedLedger
from appliance.records.jobs import Job, Validation
from appliance.system.durable_file import replace_file
from policies.contract.decision import KnownKey
from policies.envelopes import PublicKey
from policies.errors import StatementRefused
from policies.statements import ValidationSubject

LOOKED_AT = 10_000
"""Newest jobs searched for waiting ones."""
SETTLED = 1000
"""Newest jobs whose validations are reconciled at start."""


class Validations:
    """Lists jobs that wait for a person's validation, and records validations one at a time across threads."""

    def __init__(
        self, ledger: AuditedLedger, trust: Trust, data: Path, now: Callable[[], str], events: EventLog
    ) -> None:
        self._ledger = ledger
        self._trust = trust
        self._data = data
        self._now = now
        self._events = events
        self._lock = threading.Lock()

    def waiting(self, limit: int) -> list[Job]:
        """Returns jobs that a person has yet to validate, newest first, solved or not; replays are excluded."""
        found = (job for job in self._ledger.jobs(limit=LOOKED_AT) if self._waits(job))
        return [self.as_it_counts(job) for job, _ in zip(found, range(limit), strict=False)]

    def listed(self, limit: int) -> list[Job]:
        """Returns all jobs, newest first, each with its person's validation only if that is valid. Envelopes, which
        contain whole pages, are left out."""
        jobs = [self.as_it_counts(job) for job in self._ledger.jobs(limit=limit)]
        brief = {"envelope": ""}
        return [
            job.model_copy(update={"validation": job.validation.model_copy(update=brief)}) if job.validation else job
            for job in jobs
        ]

    def as_it_counts(self, job: Job) -> Job:
        """Returns the job without its person's validation if that is unsigned or by a key that no longer counts."""
        return job if job.validation is None or self._counts(job) else job.model_copy(update={"validation": None})

    def record(self, name: str, envelope: bytes) -> Job:
        """Verifies a person's signed validation of a job, logs it, and stores it with the job. Raises NotThereError,
        RefusedByPolicyError with the reason's name."""
        with self._lock:
            job = job_named(self._ledger, name)
            if why := not_asked(job):
                raise RefusedByPolicyError(why, hint="`assay jobs retry` submits it again")
            asked = ValidationSubject(
                job=job.id,
                content=content_of(job),
                question=question_lines(job.question),
                files=files_in_words(job.files),
                words=in_words(job.spec),
                valid_hours=self._trust.policy.approval.max_age_hours,
            )
            before = job.validation.envelope.encode() if job.validation is not None and self._counts(job) else None
            signed, key = self._trust.verify_validation(envelope, asked, before)
            validation = Validation(
                verdict=signed.verdict,
                shown=signed.page.digest(),
                person=signed.person,
                created=self._now(),
                key=key.fingerprint,
                envelope=envelope.decode("ascii"),
            )
            self._trust.log(
                "meaning",
                job=job.id,
                verdict=validation.verdict,
                person=validation.person,
                key=validation.key,
                content=signed.content,
                shown=validation.shown,
                envelope=validation.envelope,
            )
            updated = self._ledger.put_validation(job.id, validation)
            text = "says what was meant" if validation.verdict == "meant" else "does not say what was meant"
            self._events.add("governance", f"{signed.person}: the check of {job.id} {text}")
            self._write_beside(updated)
            return updated

    def ended(self, job: Job) -> None:
        """Stores an ended job's validation beside its bundle, if it came while the bundle was made."""
        with self._lock:
            self._write_beside(self._ledger.job(job.id) or job)

    def revoked(self, key: KnownKey) -> None:
        """Removes the validations signed with a revoked key from unended jobs, and logs that."""
        with self._lock:
            for job in self._ledger.unended_jobs():
                if job.validation is None or job.validation.key != key.fingerprint:
                    continue
                self._trust.log("meaning.dropped", job=job.id, key=key.fingerprint, person=key.person)
                self._ledger.put_validation(job.id, None)
                self._events.add(
                    "governance", f"the validation of {job.id} by {key.person} no longer counts: the key was revoked"
                )

    def reconcile(self) -> None:
        """Removes validations by revoked keys and stores validations beside their bundles, where a kill left that
        undone."""
        for key in self._trust.register.keys:
            if not key.valid:
                self.revoked(key)
        for job in self._ledger.jobs(limit=SETTLED):
            self.ended(job)

    def _waits(self, job: Job) -> bool:
        return not (not_asked(job) or job.replay_of is not None or self._counts(job))

    def _counts(self, job: Job) -> bool:
        """True if the job has a validation by a valid person's key over its content; verified on each call."""
        key = self._trust.register.known(job.validation.key) if job.validation is not None else None
        if job.validation is None or key is None or not key.valid:
            return False
        try:
            return signed_validation(job.validation, content_of(job), PublicKey(key.key)).job == job.id
        except StatementRefused:
            return False

    def _write_beside(self, job: Job) -> None:
        artifact = self._ledger.artifact(job.artifact) if job.artifact and job.validation is not None else None
        if artifact is None or job.validation is None:
            return
        bundle = self._data / artifact.folder
        content = canonical(job.validation.model_dump(mode="json"))
        path = meaning_file(bundle)
        if any(found.is_file() and found.read_bytes() == content for found in (bundle / MEANING, path)):
            return
        replace_file(path, content)
