"""What a job is about, as one digest, and a person's signed validation checked against that. Pure.

The digest is over the question, the check and the files, and over nothing else: not over the answer, because whether a
check says what was meant does not hang on what was found. Whoever has a bundle computes it from the bundle alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from appliance.records.jobs import Job, JobFile, JobState, Validation
from policies.envelopes import PublicKey, canonical
from policies.refusals import Refusal, StatementRefused
from policies.validation import SignedValidation, open_validation, read_validation
from verifiers.registry import former_data
from verifiers.registry.spec import Spec


def content_digests(question: str, spec: Spec, files: Iterable[JobFile] = ()) -> tuple[str, ...]:
    """SHA-256 over the JSON of all three in its one form, and then the digests that earlier versions had, where they
    wrote the spec otherwise: what was signed then is about one of these."""
    named = sorted((file.name, file.sha256, file.bytes) for file in files)
    listed = [{"name": name, "sha256": digest, "bytes": size} for name, digest, size in named]
    written = [spec.model_dump(mode="json"), *former_data(spec)]
    contents = [canonical({"question": question, "spec": data, "files": listed}) for data in written]
    return tuple(hashlib.sha256(content).hexdigest() for content in contents)


def content_of(job: Job) -> str:
    """The digest that a new validation of this job is about."""
    return contents_of(job)[0]


def contents_of(job: Job) -> tuple[str, ...]:
    """Every digest that a validation of this job may be about."""
    return content_digests(job.question, job.spec, job.files)


def meaning_file(bundle: Path) -> Path:
    """Where a validation lies that was signed after the bundle was made: beside it, so that its bytes stay."""
    return bundle.with_name(f"{bundle.name}.meaning.json")


def not_asked(job: Job) -> str:
    """Why nobody is asked to validate this job; empty where somebody can be."""
    if job.state in (JobState.QUEUED, JobState.RUNNING, JobState.SOLVED):
        return ""
    return f"the job {job.id} is {job.state.value}: nothing is left that its validation could go with"


def files_in_words(files: Iterable[JobFile]) -> tuple[str, ...]:
    """A line for each, by name."""
    return tuple(
        f"{file.name}: {file.bytes} bytes, SHA-256 {file.sha256}" for file in sorted(files, key=lambda file: file.name)
    )


def signed_validation(
    validation: Validation, contents: Sequence[str], key: PublicKey | None = None
) -> SignedValidation:
    """What was signed, when the record of it says the same and it is about one of these contents.

    With a key also that this key signed it; without one the signature is not checked. Raises StatementRefused.
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
        raise StatementRefused(
            Refusal.SHAPE, "the record of it says something else than what was signed", hint="get it once more"
        )
    if signed.content not in contents:
        raise StatementRefused(
            Refusal.CONTENT,
            f"it is about the content {signed.content[:12]}, and this is {contents[0][:12]}",
            hint="the question, the check or a file was changed after the person saw it",
        )
    return signed
