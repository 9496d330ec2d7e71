"""What a job is about, as one digest, and a person's word on it checked against that. Pure.

The digest is over the question, the check and the files, and over nothing else: not over the answer, because whether a
check says what was meant does not hang on what was found. Whoever has a bundle computes it from the bundle alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from appliance.records import Job, JobFile, JobState, Meaning
from policies.envelopes import PublicKey, canonical
from policies.meaning import SignedMeaning, meaning_in, read_meaning
from policies.refusals import Refusal, Refused
from verifiers.spec import Spec


def content_digest(question: str, spec: Spec, files: Iterable[JobFile] = ()) -> str:
    """SHA-256 over the JSON of all three, in its one form."""
    named = sorted((file.name, file.sha256, file.bytes) for file in files)
    content = {
        "question": question,
        "spec": spec.model_dump(mode="json"),
        "files": [{"name": name, "sha256": digest, "bytes": size} for name, digest, size in named],
    }
    return hashlib.sha256(canonical(content)).hexdigest()


def content_of(job: Job) -> str:
    return content_digest(job.question, job.spec, job.files)


def meaning_file(bundle: Path) -> Path:
    """Where a word lies that was given after the bundle was made: beside it, so that its bytes stay."""
    return bundle.with_name(f"{bundle.name}.meaning.json")


def not_asked(job: Job) -> str:
    """Why nobody is asked what this job means; empty where somebody can be."""
    if job.state in (JobState.QUEUED, JobState.RUNNING, JobState.SOLVED):
        return ""
    return f"the job {job.id} is {job.state.value}: there is nothing that a word about its meaning could go with"


def files_in_words(files: Iterable[JobFile]) -> tuple[str, ...]:
    """A line for each, by name."""
    return tuple(
        f"{file.name}: {file.bytes} bytes, SHA-256 {file.sha256}" for file in sorted(files, key=lambda file: file.name)
    )


def read_word(meaning: Meaning, content: str, key: PublicKey | None = None) -> SignedMeaning:
    """The signed word behind a record, when the record says what was signed and it is about this content.

    With a key also that this key signed it; without one the signature is not checked. Raises Refused.
    """
    envelope = meaning.envelope.encode("utf-8", "surrogatepass")
    if key is not None:
        word, signer = read_meaning(envelope, key), key.fingerprint
    else:
        word, read = meaning_in(envelope)
        signer = read.signers[0]
    if (word.verdict, word.person, word.page.digest(), signer) != (
        meaning.verdict,
        meaning.person,
        meaning.shown,
        meaning.key,
    ):
        raise Refused(
            Refusal.SHAPE, "the record of it says something else than what was signed", hint="get it once more"
        )
    if word.content != content:
        raise Refused(
            Refusal.CONTENT,
            f"it is about the content {word.content[:12]}, and this is {content[:12]}",
            hint="the question, the check or a file was changed after the person saw it",
        )
    return word
