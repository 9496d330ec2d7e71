"""Checking a bundle, as a stranger would: the bytes first, then the answer again, in a fresh process and offline.

Neither the daemon nor a data folder is needed, nor trusted. A changed, missing or added byte or file fails, also inside
the manifest, which has only one way to be written. Files are opened below the folder without following links, must be
regular, single and small, and nothing is opened under a name that is not a bundle's. After that the spec is checked and
its verifier decides anew; that verdict, not the stored one, is what counts.

What a pass does and does not say: the answer in this folder fulfils the spec in this folder, and nothing in it was
changed without the manifest being changed too. The manifest carries no signature, so question, spec and transcript are
those of the original only if the manifest's digest is the one that was noted when the bundle was made (give it as
`expect`), or if its seal holds (`appliance.jobs.seal`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from appliance.jobs.format import (
    ANSWER,
    QUESTION,
    SPEC,
    STATEMENT,
    TRANSCRIPT,
    VERDICT,
    VERSIONS,
    Entry,
    Statement,
    strict,
)
from appliance.jobs.reading import CheckedFile, Read, first_line, read_bundle
from appliance.records import Record
from verifiers import spec as specs
from verifiers.checker import SECONDS, Checker
from verifiers.errors import SpecError
from verifiers.verdict import Outcome, Verdict

LEAST_SECONDS = 30.0
"""For deciding again: more than a verdict is given in the first place, because this machine may be slower."""

ENTRIES: TypeAdapter[tuple[Entry, ...]] = TypeAdapter(tuple[Entry, ...])


class BundleReport(Record):
    """What a check found. `ok` only when every file is intact and the answer was verified again."""

    ok: bool
    manifest: str | None
    """SHA-256 of the manifest file; None where there is none to read."""
    files: tuple[CheckedFile, ...]
    answer: str | None = None
    question: str | None = None
    verdict_then: Verdict | None = None
    verdict_now: Verdict | None = None
    reasons: tuple[str, ...]
    """Why it is not ok; empty where it is."""

    @property
    def undecided(self) -> bool:
        """Whether the bytes hold and only this machine's infrastructure kept it from a verdict."""
        return self.verdict_now is not None and self.verdict_now.outcome is Outcome.INFRA_ERROR


def check_bundle(
    path: Path, *, expect: str | None = None, seconds: float = LEAST_SECONDS, checker: Checker | None = None
) -> BundleReport:
    """Checks the files, then decides anew. `expect` is the manifest's digest as it was noted elsewhere, in hex;
    `checker` one that decides, if there is one already.

    Raises BundleError where there is no bundle to read. Whatever is in it is reported, never raised.
    """
    return check_read(read_bundle(path), expect=expect, seconds=seconds, checker=checker)


def check_read(
    read: Read, *, expect: str | None = None, seconds: float = LEAST_SECONDS, checker: Checker | None = None
) -> BundleReport:
    """The same for one that was read already."""
    reasons = list(read.wrong)
    if expect is not None and read.digest != expect.lower():
        reasons.append("the manifest is not the one that was expected")
    if reasons:
        return BundleReport(ok=False, manifest=read.digest, files=read.files, reasons=tuple(reasons))
    with nullcontext(checker) if checker is not None else Checker() as decider:
        return _decide(read.contents, read.files, read.digest, seconds, decider)


def _decide(
    contents: Mapping[str, bytes], files: tuple[CheckedFile, ...], digest: str | None, seconds: float, checker: Checker
) -> BundleReport:
    """The second half: the records are read, and the verifier is asked again."""
    reasons: list[str] = []

    def read(name: str, validate: Callable[[Any], Any]) -> Any:
        try:
            return validate(strict(contents[name]))
        except (ValidationError, ValueError) as error:
            reasons.append(f"{name}: {first_line(error)}")
            return None

    def text(name: str) -> str | None:
        try:
            return contents[name].decode()
        except UnicodeDecodeError:
            reasons.append(f"{name}: not UTF-8 text")
            return None

    answer, question = text(ANSWER), text(QUESTION)
    spec = read(SPEC, specs.SPEC.validate_python)
    then = read(VERDICT, Verdict.model_validate)
    read(TRANSCRIPT, _transcript)
    read(VERSIONS, _object)
    read(STATEMENT, Statement.model_validate)
    now: Verdict | None = None
    if spec is not None and answer is not None:
        try:
            now = checker.check(spec, answer, max(seconds, 2 * SECONDS.get(spec.kind, 0.0)))
        except SpecError as error:
            reasons.append(f"{SPEC}: {error}")
    if then is not None and now is not None:
        reasons += _disagreements(then, now)
    return BundleReport(
        ok=not reasons and now is not None and now.passed,
        manifest=digest,
        files=files,
        answer=answer,
        question=question,
        verdict_then=then,
        verdict_now=now,
        reasons=tuple(reasons),
    )


def _disagreements(then: Verdict, now: Verdict) -> list[str]:
    """Why the stored verdict does not stand. Seconds may differ; with another verifier version, so may the words."""
    if now.outcome is Outcome.INFRA_ERROR:
        return [f"it could not be decided again here: {now.reason}"]
    found = []
    if not now.passed:
        found.append(f"the answer is not verified: {now.reason}")
    if not then.passed:
        found.append(f"the stored verdict is {then.outcome}")
    if (then.verifier, then.outcome, then.score) != (now.verifier, now.outcome, now.score):
        found.append("the stored verdict is not the one that the verifier gives")
    elif then.version == now.version and (then.reason, then.evidence) != (now.reason, now.evidence):
        found.append("the stored reason or evidence is not the one that the verifier gives")
    return found


def _transcript(value: Any) -> tuple[Entry, ...]:
    entries = ENTRIES.validate_python(value)
    for index, entry in enumerate(entries):
        if entry.parent is not None and not 0 <= entry.parent < index:
            raise ValueError(f"node {index} has no parent before it")
    return entries


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value
