"""Whether a job's check says what was meant: the queue of jobs that wait for a person's word, and what the word does.

What always holds: a word counts only with the signature of a person's valid key over this job's question, check and
files, in the words in which this daemon puts them; it is in the audit log before it is on the job, and what is refused
is there too, by name. What somebody wrote into the database without a signature counts for nothing. A word never
changes what was verified: the two are told apart in everything that goes out. One that came too late for the bundle
lies beside it, so that the bundle's bytes stay. A key that is revoked takes its words off the jobs that have not ended;
from a bundle that was made nothing is taken back.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from appliance.daemon.errors import NotThereError, RefusedByPolicyError
from appliance.daemon.trust import Trust
from appliance.jobs.content import content_of, files_in_words, meaning_file, not_asked, read_word
from appliance.jobs.format import MEANING, canonical
from appliance.jobs.in_words import in_words, question_lines
from appliance.ledger.audited import AuditedLedger
from appliance.records import Event, Job, Meaning
from policies.envelopes import PublicKey
from policies.meaning import Asked
from policies.refusals import Refused
from policies.register import KnownKey

LOOKED_AT = 10_000
"""Jobs, newest first, among which those are that wait."""
SETTLED = 1000
"""Jobs whose words are looked after when the daemon starts."""


class Meanings:
    """One word at a time, whoever gives it."""

    def __init__(self, ledger: AuditedLedger, trust: Trust, data: Path) -> None:
        self._ledger = ledger
        self._trust = trust
        self._data = data
        self._lock = threading.Lock()

    def waiting(self, limit: int) -> list[Job]:
        """Jobs without a word that counts, newest first, solved or not; replays are nobody's question."""
        found = (job for job in self._ledger.jobs(limit=LOOKED_AT) if self._waits(job))
        return [self.as_it_counts(job) for job, _ in zip(found, range(limit), strict=False)]

    def listed(self, limit: int) -> list[Job]:
        """All jobs, newest first, each with its word as it counts; without the envelopes, in which whole pages are."""
        return [_brief(self.as_it_counts(job)) for job in self._ledger.jobs(limit=limit)]

    def as_it_counts(self, job: Job) -> Job:
        """Without a word whose key is no valid person's by now, or that nobody signed: it counts for nothing."""
        return job if job.meaning is None or self._counts(job) else job.model_copy(update={"meaning": None})

    def judge(self, name: str, envelope: bytes, now: str) -> Job:
        """Checks and records a signed word. Raises NotThereError, and RefusedByPolicyError with the reason's name."""
        with self._lock:
            job = self._ledger.job(name)
            if job is None:
                raise NotThereError(f"there is no job {name!r}", hint="`assay jobs validate` lists those that wait")
            if why := not_asked(job):
                raise RefusedByPolicyError(why, hint="`assay jobs retry` makes another job of it")
            asked = Asked(
                job=job.id,
                content=content_of(job),
                question=question_lines(job.question),
                files=files_in_words(job.files),
                words=in_words(job.spec),
                valid_hours=self._trust.policy.promotion.approval.max_age_hours,
            )
            before = job.meaning.envelope.encode() if job.meaning is not None and self._counts(job) else None
            word, key = self._trust.hear_meaning(envelope, asked, before)
            meaning = Meaning(
                verdict=word.verdict,
                shown=word.page.digest(),
                person=word.person,
                created=now,
                key=key.fingerprint,
                envelope=envelope.decode("ascii"),
            )
            self._trust.log(
                "meaning",
                job=job.id,
                verdict=meaning.verdict,
                person=meaning.person,
                key=meaning.key,
                content=word.content,
                shown=meaning.shown,
                envelope=meaning.envelope,
            )
            kept = self._ledger.put_meaning(job.id, meaning)
            said = "says what was meant" if meaning.verdict == "meant" else "does not say what was meant"
            self._say(f"{word.person}: the check of {job.id} {said}", now)
            self._lay_beside(kept)
            return kept

    def ended(self, job: Job) -> None:
        """For a job that has just ended: a word that came while its bundle was written is laid beside it."""
        with self._lock:
            self._lay_beside(self._ledger.job(job.id) or job)

    def revoked(self, key: KnownKey, now: str) -> None:
        """Takes the words of this key off the jobs that have not ended."""
        with self._lock:
            for job in self._ledger.unended_jobs():
                if job.meaning is None or job.meaning.key != key.fingerprint:
                    continue
                self._trust.log("meaning.dropped", job=job.id, key=key.fingerprint, person=key.person)
                self._ledger.put_meaning(job.id, None)
                self._say(f"the word of {key.person} on {job.id} counts no more: the key was revoked", now)

    def settle(self, now: str) -> None:
        """What a kill may have left undone."""
        for key in self._trust.register.keys:
            if not key.valid:
                self.revoked(key, now)
        for job in self._ledger.jobs(limit=SETTLED):
            self.ended(job)

    def _waits(self, job: Job) -> bool:
        return not (not_asked(job) or job.replay_of is not None or self._counts(job))

    def _counts(self, job: Job) -> bool:
        """Whether there is a word, signed by a valid person's key, about what the job has; checked each time anew."""
        key = self._trust.register.known(job.meaning.key) if job.meaning is not None else None
        if job.meaning is None or key is None or not key.valid:
            return False
        try:
            return read_word(job.meaning, content_of(job), PublicKey(key.key)).job == job.id
        except Refused:
            return False

    def _lay_beside(self, job: Job) -> None:
        artifact = self._ledger.artifact(job.artifact) if job.artifact and job.meaning is not None else None
        if artifact is None or job.meaning is None:
            return
        bundle = self._data / artifact.folder
        content = canonical(job.meaning.model_dump(mode="json"))
        path = meaning_file(bundle)
        if any(found.is_file() and found.read_bytes() == content for found in (bundle / MEANING, path)):
            return
        beside = path.with_name(f".{path.name}.new")
        with beside.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(path)

    def _say(self, text: str, now: str) -> None:
        self._ledger.put_event(Event(kind="governance", text=text, created=now))


def _brief(job: Job) -> Job:
    if job.meaning is None:
        return job
    return job.model_copy(update={"meaning": job.meaning.model_copy(update={"envelope": ""})})
