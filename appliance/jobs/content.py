"""The subject of a job as one digest, and the check of a person's signed validation against it. Pure.

The digest covers question, check and files only, not the answer: whether a check says what was meant does not depend on
what was found. A bundle is enough to compute it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from appliance.records.jobs import Job, JobFile, JobState, Validation
from policies.envelopes import PublicKey, canonical
from policies.errors import Refusal, StatementRefused
from policies.statements import SignedValidation, open_validation, read_validation
from verifiers.registry.spec import Spec


def content_digest(question: str, spec: Spec, files: Iterable[JobFile] = ()) -> str:
    """Returns the SHA-256 of the canonical JSON of all three."""
    named = sorted((file.name, file.sha256, file.bytes) for file in files)
    listed = [{"name": name, "sha256": digest, "bytes": size} for name, digest, size in named]
    content = canonical({"question": question, "spec": spec.model_dump(mode="json"), "files": listed})
    return hashlib.sha256(content).hexdigest()


def content_of(job: Job) -> str:
    """Returns the digest that a validation of this job refers to."""
    return content_digest(job.question, job.spec, job.files)


def meaning_file(bundle: Path) -> Path:
    """Returns the path of a validation signed after the bundle was made: beside the bundle, whose bytes must not
    change."""
    return bundle.with_name(f"{bundle.name}.meaning.json")


def not_asked(job: Job) -> str:
    """Returns why people cannot validate this job's check any more; empty if they can."""
    if job.state in (JobState.QUEUED, JobState.RUNNING, JobState.SOLVED):
        return ""
    return f"the job {job.id} is {job.state.value}: nothing is left to validate"


def files_in_words(files: Iterable[JobFile]) -> tuple[str, ...]:
    """Returns a line with name, size and digest for each file of a job, sorted by name."""
    return tuple(
        f"{file.name}: {file.bytes} bytes, SHA-256 {file.sha256}" for file in sorted(files, key=lambda file: file.name)
    )


def signed_validation(validation: Validation, content: str, key: PublicKey | None = None) -> SignedValidation:
    """Returns the signed statement if its record agrees and it is about this content.

    With `key`, its signature is checked too. Raises StatementRefused.
    """
    envelope = validation.envelope.encode("utf-8", "surrogatepass")
    if key is not None:
        signed, signer = read_validation(envelope, key), key.fingerprint
    else:
        signed, read = open_validation(envelope)
        signer = read.signers[0]
    if (signed.verdict, signed.person, signed.page.digest(), signer) != (
        validation.verdict,
        validation.person,
        validation.shown,
        validation.key,
    ):
        raise StatementRefused(Refusal.SHAPE, "the record differs from the signed statement", hint="get it again")
    if signed.content != content:
        raise StatementRefused(
            Refusal.CONTENT,
            f"it is about the content {signed.content[:12]}, not {content[:12]}",
            hint="the question, the check or a file was changed after the person saw it",
        )
    return signed
