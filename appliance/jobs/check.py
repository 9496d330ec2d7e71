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

import errno
import os
import stat
from collections.abc import Callable
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from appliance.jobs.format import (
    ANSWER,
    LARGEST,
    LARGEST_MANIFEST,
    MANIFEST,
    QUESTION,
    SPEC,
    TRANSCRIPT,
    VERDICT,
    VERSIONS,
    BundleError,
    Entry,
    Manifest,
    canonical,
    sha256,
    strict,
)
from appliance.records import Record
from verifiers import spec as specs
from verifiers.checker import SECONDS, Checker
from verifiers.errors import SpecError
from verifiers.verdict import Outcome, Verdict

LEAST_SECONDS = 30.0
"""For deciding again: more than a verdict is given in the first place, because this machine may be slower."""
SHOWN_ADDED = 20
"""Files that do not belong there and are named; one is enough to fail."""

ENTRIES: TypeAdapter[tuple[Entry, ...]] = TypeAdapter(tuple[Entry, ...])


class FileState(StrEnum):
    INTACT = "intact"
    CHANGED = "changed"
    MISSING = "missing"
    ADDED = "added"
    UNREADABLE = "unreadable"
    """A link, a device, a file with a second name, one that is too large or may not be read."""


class CheckedFile(Record):
    name: str
    """Hostile where the state is `added`."""
    state: FileState
    detail: str = ""


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


class _Rejected(Exception):
    """One file cannot be taken as it is."""


def check_bundle(
    path: Path, *, expect: str | None = None, seconds: float = LEAST_SECONDS, checker: Checker | None = None
) -> BundleReport:
    """Checks the files, then decides anew. `expect` is the manifest's digest as it was noted elsewhere, in hex;
    `checker` one that decides, if there is one already.

    Raises BundleError where there is no folder to read. Whatever is in the folder is reported, never raised.
    """
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        hint = "Give the folder that `assay submit` or `assay jobs show` named."
        raise BundleError(f"cannot read {path}: {error.strerror}", hint=hint) from error
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - by descriptor, so that it is the same folder below
        contents, files, digest = _read_all(folder, names)
    finally:
        os.close(folder)
    reasons = [f"{file.name}: {file.detail or file.state}" for file in files if file.state is not FileState.INTACT]
    if expect is not None and digest != expect.lower():
        reasons.append("the manifest is not the one that was expected")
    if reasons:
        return BundleReport(ok=False, manifest=digest, files=files, reasons=tuple(reasons))
    with nullcontext(checker) if checker is not None else Checker() as decider:
        return _decide(contents, files, digest, seconds, decider)


def _read_all(folder: int, names: list[str]) -> tuple[dict[str, bytes], tuple[CheckedFile, ...], str | None]:
    """The intact contents, every file's state, and the manifest's digest."""
    contents: dict[str, bytes] = {}
    states: list[CheckedFile] = []
    listed: dict[str, tuple[str, int]] = {}
    digest: str | None = None
    try:
        data = _read(folder, MANIFEST, LARGEST_MANIFEST)
        digest = sha256(data)
        listed = _manifest(data)
        states.append(CheckedFile(name=MANIFEST, state=FileState.INTACT))
    except FileNotFoundError:
        states.append(CheckedFile(name=MANIFEST, state=FileState.MISSING))
    except (_Rejected, OSError) as error:
        states.append(_unreadable(MANIFEST, error))
    except ValueError as error:
        states.append(CheckedFile(name=MANIFEST, state=FileState.CHANGED, detail=_first_line(error)))
    for name, most in LARGEST.items():
        try:
            data = _read(folder, name, most)
        except FileNotFoundError:
            states.append(CheckedFile(name=name, state=FileState.MISSING))
            continue
        except (_Rejected, OSError) as error:
            states.append(_unreadable(name, error))
            continue
        if listed.get(name) == (sha256(data), len(data)):
            contents[name] = data
            states.append(CheckedFile(name=name, state=FileState.INTACT))
        else:
            states.append(CheckedFile(name=name, state=FileState.CHANGED))
    known = {*LARGEST, MANIFEST}
    added = [CheckedFile(name=ascii(name)[1:-1], state=FileState.ADDED) for name in names if name not in known]
    states += added[:SHOWN_ADDED]
    return contents, tuple(states), digest


def _manifest(data: bytes) -> dict[str, tuple[str, int]]:
    """Name to (digest, bytes). Raises ValueError unless the manifest is written exactly as we write it."""
    manifest = Manifest.model_validate(strict(data))
    if [file.name for file in manifest.files] != sorted(LARGEST):
        raise ValueError("does not list exactly the files of a bundle")
    if canonical(manifest.model_dump(mode="json")) != data:
        raise ValueError("is not written in the canonical way")
    return {file.name: (file.sha256, file.bytes) for file in manifest.files}


def _read(folder: int, name: str, most: int) -> bytes:
    """A regular file with one name, of at most `most` bytes, without following a link or waiting for a pipe."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise _Rejected("not a regular file")
        if found.st_nlink != 1:
            raise _Rejected("has a second name")
        data = file.read(most + 1)
    if len(data) > most:
        raise _Rejected(f"larger than {most} bytes")
    return data


def _unreadable(name: str, error: Exception) -> CheckedFile:
    if isinstance(error, OSError):
        detail = "a link" if error.errno == errno.ELOOP else error.strerror or str(error)
    else:
        detail = str(error)
    return CheckedFile(name=name, state=FileState.UNREADABLE, detail=detail)


def _decide(
    contents: dict[str, bytes], files: tuple[CheckedFile, ...], digest: str | None, seconds: float, checker: Checker
) -> BundleReport:
    """The second half: the records are read, and the verifier is asked again."""
    reasons: list[str] = []

    def read(name: str, validate: Callable[[Any], Any]) -> Any:
        try:
            return validate(strict(contents[name]))
        except (ValidationError, ValueError) as error:
            reasons.append(f"{name}: {_first_line(error)}")
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


def _first_line(error: Exception) -> str:
    """A short sentence for a person; pydantic's own text spans several lines and quotes the input."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return ascii(f"{'.'.join(map(str, first['loc']))[:80]}: {first['msg'][:120]}")[1:-1]
    return ascii(str(error).splitlines()[0][:200])[1:-1] if str(error) else type(error).__name__
