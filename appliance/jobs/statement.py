"""The statement of an artifact: its parts, and what carries each. Pure.

Invariants: no part ranks above what its verdict's basis allows (`tested` never becomes `proved`); what neither a
verifier nor a person examined is a part of its own that says so; that the spec says what was meant is never proved,
only validated by a person's signature, or open. An artifact's mark is as strong as the weakest part that it needs:
"verified and validated" takes a proof of the one and a person for the other.

The verdict may come from somebody else's bundle: only evidence of the expected type is read, and all its text is
clipped. Escape it before showing it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from appliance.records.jobs import MEANING, Job, JobFile, Validation
from verifiers.contract.statement import Assurance, StatementPart, not_covered
from verifiers.contract.text import one_line
from verifiers.contract.verdict import Verdict
from verifiers.registry import kind_of
from verifiers.registry.spec import Spec

NOBODY = "nobody: no person has validated it"
UNCHECKED = "a signature that was not checked: the key of whoever signed was not given"

VERIFIED, TESTED, JUDGED, NOT_VERIFIED = "verified", "verified by tests", "judged", "not verified"
_WORDS = {Assurance.PROVED: VERIFIED, Assurance.TESTED: TESTED, Assurance.JUDGED: JUDGED, Assurance.OPEN: NOT_VERIFIED}
_WEAKEST_FIRST = (Assurance.OPEN, Assurance.JUDGED, Assurance.TESTED, Assurance.PROVED)


def statement(job: Job, verdict: Verdict) -> tuple[StatementPart, ...]:
    """Returns what a job's bundle may claim with this verdict: its parts, and what carries each."""
    return statement_of(job.spec, verdict, meaning=job.validation, files=job.files)


def statement_of(
    spec: Spec,
    verdict: Verdict,
    *,
    meaning: Validation | None = None,
    unchecked: bool = False,
    files: Sequence[JobFile] = (),
) -> tuple[StatementPart, ...]:
    """Returns what a bundle may claim with this verdict: the verified parts, then the validated, then the uncovered
    ones. Never empty.

    `unchecked` means that somebody signed a validation, which counts for nothing without the key.
    """
    if not verdict.passed:
        why = f"{verdict.outcome.value}: {one_line(verdict.reason)}"
        return (
            StatementPart(part="that the answer meets the check", standing=Assurance.OPEN, by=why),
            _meant(meaning, unchecked),
        )
    verified, limits = kind_of(spec).parts.load()(spec, verdict)
    if files:
        names = one_line(", ".join(file.name for file in files))
        limits = [*limits, not_covered(f"that what is in the files is true: {names}", "they came with the job")]
    return (*verified, _meant(meaning, unchecked), *limits)


def mark(claims: Iterable[StatementPart]) -> str:
    """Returns a bundle's mark in words, no stronger than the weakest needed part of its statement; the strongest is
    "verified and validated"."""
    claims = tuple(claims)
    needed = {claim.standing for claim in claims if claim.needed and claim.part != MEANING}
    weakest = next((standing for standing in _WEAKEST_FIRST if standing in needed), Assurance.OPEN)
    label = _WORDS[weakest]
    meant = [claim for claim in claims if claim.part == MEANING]
    if meant and all(claim.standing is Assurance.VALIDATED for claim in meant):
        return f"{label}, but validated" if weakest is Assurance.OPEN else f"{label} and validated"
    if any(claim.by not in (NOBODY, UNCHECKED) for claim in meant):
        return f"{label}, {'and' if weakest is Assurance.OPEN else 'but'} not what was meant"
    return f"{label}, not validated"


def _meant(meaning: Validation | None, unchecked: bool) -> StatementPart:
    if meaning is None:
        return not_covered(MEANING, UNCHECKED if unchecked else NOBODY, needed=True)
    who = f"{one_line(meaning.person)} with the key {one_line(meaning.key)} at {one_line(meaning.created)}"
    if meaning.verdict == "meant":
        return StatementPart(part=MEANING, standing=Assurance.VALIDATED, by=who)
    return not_covered(MEANING, f"{who} says that it does not", needed=True)
