"""Checks a bundle as a stranger would: first the bytes, then the answer again, in a fresh process, offline.

Neither the daemon nor a data folder is needed or trusted. A changed, missing or added byte or file fails, also in the
manifest, the seal and the archive (`appliance.jobs.reading`). Then the spec is checked and its verifier decides anew;
this verdict counts, not the stored one, and the bundle's own claims must follow from it. Unchecked parts are listed
with reasons; no pass rests on them.

A pass means: the answer in this bundle meets the spec in this bundle, and nothing changed without the manifest changing
too. Question, spec and transcript are the original's only if the manifest's digest is the one noted when the bundle was
made (`expect`), or if its seal verifies with a key known before (`key`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import FailFast, TypeAdapter, ValidationError

from appliance import __version__
from appliance.jobs import layout
from appliance.jobs.attestation import seal_of, sealed_with
from appliance.jobs.layout import BundleError, sha256
from appliance.jobs.reading import BundleRead, first_line, read_bundle
from appliance.jobs.report import BundleReport, Sealed
from appliance.jobs.reverify import (
    SignedValidations,
    disagreements,
    signed_validations_of,
    statement_faults,
    unchecked,
    was_judged,
)
from appliance.jobs.statement import mark, statement_of
from appliance.records.jobs import JobFile
from common import strict_json
from common.plugins.table import distribution_of
from policies.envelopes import PublicKey
from verifiers.checker import Checker
from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Verdict
from verifiers.registry import KINDS, kind_of
from verifiers.registry import spec as specs

LEAST_SECONDS = 30.0
"""Minimum time to decide again, in seconds: more than for the first verdict, since this machine may be slower."""

Transcript = tuple[layout.TranscriptEntry, ...]
ENTRIES: TypeAdapter[Transcript] = TypeAdapter(Annotated[Transcript, FailFast()])
T = TypeVar("T")


def check_bundle(
    path: Path,
    *,
    expect: str | None = None,
    seconds: float = LEAST_SECONDS,
    checker: Checker | None = None,
    key: PublicKey | None = None,
    own: PublicKey | None = None,
    people: Sequence[PublicKey] = (),
    later: bytes | None = None,
) -> BundleReport:
    """Checks a bundle's bytes, then verifies its answer anew, and returns the report.

    `expect` is the noted manifest digest in hex; `checker` an existing checker; `key` the required sealing key; `own`
    this machine's key; `people` the keys whose validations count; `later` a validation signed after the bundle was
    made. Raises BundleError if there is no bundle to read. Faults inside it are reported, never raised.
    """
    read = read_bundle(path)
    reasons = list(read.wrong)
    if expect is not None and read.digest != expect.lower():
        reasons.append("the manifest does not have the expected digest")
    seal, fault = _seal(read, key, own)
    reasons += [fault] if fault else []
    report = BundleReport(
        ok=False, form=read.form, manifest=read.digest, files=read.files, seal=seal, reasons=tuple(reasons)
    )
    if not read.intact or reasons:
        return report.model_copy(update={"not_checked": unchecked(report, SignedValidations())})
    with nullcontext(checker) if checker is not None else Checker() as decider:
        return _decided(report, read.contents, decider, seconds, people, later)


def _seal(read: BundleRead, key: PublicKey | None, own: PublicKey | None) -> tuple[Sealed | None, str]:
    """Returns a bundle's verified seal, or the seal's fault. A missing seal is a fault only if a key is required."""
    if layout.SEAL not in read.contents and key is None:
        return None, ""
    if not read.intact:
        return None, ""  # Already reported, and no seal can cover these bytes.
    try:
        found = seal_of(read, key)
        predicate = {name: str(value) for name, value in found.predicate.items()}
        sealed = Sealed(
            key=sealed_with(found).fingerprint,
            known=key is not None,
            own=sealed_with(found) == own,
            made_at=predicate.get("madeAt", ""),
            solved_by=predicate.get("solvedBy", ""),
            model=predicate.get("model", ""),
            policy=predicate.get("policy", ""),
            environment=predicate.get("environment", ""),
        )
    except BundleError as error:
        return None, str(error)
    return sealed, ""


class _Contents:
    """Parses the files of a bundle; files that fail to parse are noted in `reasons`."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents
        self.reasons: list[str] = []

    def record(self, name: str, validate: Callable[[Any], T]) -> T | None:
        try:
            return validate(strict_json.read(self._contents[name], layout.bounds_of(name)))
        except (ValidationError, ValueError) as error:
            self.reasons.append(f"{name}: {first_line(error)}")
            return None

    def text(self, name: str) -> str | None:
        try:
            return self._contents[name].decode()
        except UnicodeDecodeError:
            self.reasons.append(f"{name}: not UTF-8 text")
            return None


def _decided(
    report: BundleReport,
    contents: Mapping[str, bytes],
    checker: Checker,
    seconds: float,
    people: Sequence[PublicKey],
    later: bytes | None,
) -> BundleReport:
    """Parses the records of an intact bundle, verifies its answer anew, and returns the completed report."""
    of = _Contents(contents)
    made_with = of.record(layout.VERSIONS, _object)
    missing = _Contents(contents).record(layout.SPEC, lambda spec: _missing_plugin(spec, made_with or {}))
    if missing:
        report = report.model_copy(update={"missing": missing, "reasons": (*of.reasons, missing)})
        return report.model_copy(update={"not_checked": unchecked(report, SignedValidations())})
    answer, question = of.text(layout.ANSWER), of.text(layout.QUESTION)
    spec = of.record(layout.SPEC, specs.SPEC.validate_python)
    then = of.record(layout.VERDICT, Verdict.model_validate)
    entries = of.record(layout.TRANSCRIPT, _transcript)
    statement = of.record(layout.STATEMENT, layout.ArtifactStatement.model_validate)
    files = [
        JobFile(name=name.removeprefix(f"{layout.FILES}/"), sha256=sha256(data), bytes=len(data))
        for name, data in sorted(contents.items())
        if name.startswith(f"{layout.FILES}/")
    ]
    signed = SignedValidations()
    if spec is not None and question is not None:
        try:
            signed = signed_validations_of(contents.get(layout.MEANING), later, (question, spec, files), people)
        except ValueError as error:
            of.reasons.append(f"{layout.MEANING}: {first_line(error)}")
    now: Verdict | None = None
    claims = None
    if spec is not None and answer is not None:
        try:
            now = checker.check(spec, answer, max(seconds, 2 * kind_of(spec).seconds))
            claims = statement_of(spec, now, meaning=signed.checked, unchecked=bool(signed.unchecked), files=files)
        except SpecError as error:
            of.reasons.append(f"{layout.SPEC}: {error}")
    reasons = of.reasons
    if spec is not None and then is not None and now is not None:
        reasons += disagreements(spec, then, now)
        if statement is not None and now.passed:
            same = made_with is not None and made_with.get("assay") == __version__
            same = same and then.verifier == now.verifier  # an earlier version may use other wording
            carried = statement_of(spec, now, meaning=signed.inside, files=files)
            reasons += statement_faults(statement.claims, carried, strictly=same, judged=was_judged(spec, then))
    known = report.model_copy(
        update={
            "ok": not reasons and now is not None and now.passed,
            "answer": answer,
            "question": question,
            "spec": spec,
            "solved_by": statement.solved_by if statement is not None else "",
            "verdict_then": then,
            "verdict_now": now,
            "statement_then": statement.claims if statement is not None else (),
            "statement_now": claims or (),
            "mark": mark(claims) if claims else "",
            "made_with": made_with or {},
            "transcript": entries or (),
            "nodes": len(entries or ()),
            "calls": sum(entry.call is not None for entry in entries or ()),
            "reasons": tuple(reasons),
        }
    )
    return known.model_copy(update={"not_checked": unchecked(known, signed)})


def _missing_plugin(spec: Any, made_with: Mapping[str, Any]) -> str:
    """Returns which distribution this machine lacks to decide a spec, as the bundle's maker names it; empty if none."""
    kind = str(spec.get("kind", "")) if isinstance(spec, dict) else ""
    distribution = distribution_of(kind)
    if not distribution or kind in KINDS:
        return ""
    named = made_with.get("plugins")
    about = named.get(distribution) if isinstance(named, dict) else None
    made = f" {about.get('version')}, digest {about.get('digest')}" if isinstance(about, dict) else ""
    return f"the check {kind} needs the plug-in {distribution}{made}, which is not installed and admitted here"


def _transcript(value: Any) -> Transcript:
    entries = ENTRIES.validate_python(value)
    for index, entry in enumerate(entries):
        if entry.parent is not None and not 0 <= entry.parent < index:
            raise ValueError(f"node {index} has no parent before it")
    return entries


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value
