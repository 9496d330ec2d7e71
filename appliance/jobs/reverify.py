"""Compares a bundle's own claims with the new verdict, and lists what nobody checked. Pure.

Invariants: only the new verdict counts; the stored verdict, the statement and people's validations are compared with
it, and a bundle that claims more than it carries does not pass. Claims that cannot be compared here are listed with the
reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import ValidationError

from appliance.jobs.layout import BOUNDS, LARGEST_MEANING, canonical
from appliance.jobs.report import BundleReport, NotChecked
from appliance.jobs.validation import content_digest, signed_validation
from appliance.records.jobs import JobFile, Validation
from common import strict_json
from policies.envelopes import PublicKey
from policies.errors import StatementRefused
from verifiers.checklists.spec import ChecklistSpec
from verifiers.contract.statement import Assurance, StatementPart
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.registry.spec import Spec

OF_THE_JUDGE = ("soft", "soft_mean", "not_judged", "because")
"""Checklist evidence that comes from a model."""

OF_THE_MACHINE = ("headers", "kernel")
"""Evidence that varies between machines, and with the load of one machine."""

_RISING = (Assurance.OPEN, Assurance.JUDGED, Assurance.TESTED, Assurance.PROVED)


@dataclass(frozen=True)
class SignedValidations:
    """People's signed validations of a bundle's check."""

    inside: Validation | None = None
    """Validation in the bundle, by any signer."""
    checked: Validation | None = None
    """Latest validation, by signed time, whose signature was checked with a given key."""
    unchecked: tuple[Validation, ...] = field(default=())
    """Validations whose signatures could not be checked here."""
    unsigned: tuple[str, ...] = ()
    """Fingerprints of given keys that signed none of these."""


def signed_validations_of(
    inside: bytes | None, later: bytes | None, about: tuple[str, Spec, Sequence[JobFile]], people: Sequence[PublicKey]
) -> SignedValidations:
    """Parses people's validations in a bundle and beside it, each about exactly this question, check and files.

    The signed time counts, not the time of receipt, which is unsigned. Of two with the same time, the negative one
    counts. Raises ValueError for a malformed validation, another subject, or a signature by another key.
    """
    content = content_digest(*about)
    known = {key.fingerprint: key for key in people}
    read: list[tuple[Validation, bool]] = []
    for data in (inside, later):
        if data is None:
            continue
        validation = _validation(data)
        key = known.get(validation.key)
        try:
            statement = signed_validation(validation, content, key)
        except StatementRefused as error:
            raise ValueError(f"invalid validation by {validation.person[:100]}: {error}") from error
        read.append((validation.model_copy(update={"created": statement.made_at}), key is not None))
    checked = [validation for validation, known_key in read if known_key]
    return SignedValidations(
        inside=read[0][0] if inside is not None else None,
        checked=max(checked, key=_later) if checked else None,
        unchecked=tuple(validation for validation, known_key in read if not known_key),
        unsigned=tuple(name for name in known if name not in {validation.key for validation, _ in read}),
    )


def _later(validation: Validation) -> tuple[datetime, bool]:
    return datetime.fromisoformat(validation.created), validation.verdict == "not_meant"


def _validation(data: bytes) -> Validation:
    if len(data) > LARGEST_MEANING:
        raise ValueError(f"larger than {LARGEST_MEANING} bytes")
    try:
        validation = Validation.model_validate(strict_json.read(data, BOUNDS))
    except ValidationError:
        raise ValueError("not a validation by a person") from None
    if canonical(validation.model_dump(mode="json")) != data:
        raise ValueError("is not in canonical form")
    return validation


def disagreements(spec: Spec, then: Verdict, now: Verdict) -> list[str]:
    """Compares a bundle's stored verdict with the new one, and returns why the stored one does not stand. Seconds may
    differ; so may the wording, with another version of the verifier or its tools. A model's grades are not requested
    again: nothing rests on them, nor on the score and the reason that include them."""
    if now.outcome is Outcome.INFRA_ERROR:
        return [f"this machine could not decide it again: {now.reason}"]
    found = []
    judged = was_judged(spec, then) and not was_judged(spec, now)
    if not now.passed:
        found.append(f"the answer is not verified: {now.reason}")
    if not then.passed:
        found.append(f"the stored verdict is {then.outcome}")
    if (then.verifier, then.outcome) != (now.verifier, now.outcome) or (then.score != now.score and not judged):
        found.append("the stored verdict differs from the verifier's")
    elif then.ground is not None and then.ground != now.ground and same_tools(then, now):
        found.append("the stored verdict has another basis than the verifier's")
    elif same_tools(then, now) and _wording(then, judged) != _wording(now, judged):
        found.append("the stored reason or evidence differs from the verifier's")
    return found


def was_judged(spec: Spec, verdict: Verdict) -> bool:
    """True if a model's grades are in the verdict. Only a checklist with soft items has any; for other specs such
    evidence is ignored."""
    return isinstance(spec, ChecklistSpec) and bool(spec.soft) and "soft" in verdict.evidence


def same_tools(then: Verdict, now: Verdict) -> bool:
    return (then.verifier, then.version, then.tools) == (now.verifier, now.version, now.tools)


def _wording(verdict: Verdict, judged: bool) -> tuple[str, dict[str, object]]:
    left_out = {*OF_THE_MACHINE, *(OF_THE_JUDGE if judged else ())}
    evidence = {name: value for name, value in verdict.evidence.items() if name not in left_out}
    return ("" if judged else verdict.reason), evidence


def statement_faults(
    stated: Sequence[StatementPart], carried: Sequence[StatementPart], *, strictly: bool, judged: bool
) -> list[str]:
    """Returns where a bundle's statement claims more than `carried`, the statement of the new verdict. `strictly`: the
    same program version made it, so all parts have the same wording; `judged`: the stored verdict has a model's grades,
    which are not requested again. A bundle without a statement has no fault.

    Another version may have other parts: none may rank above the best one that is carried.
    """
    faults = [
        f"the statement claims too much, {claim.standing}: {claim.part}"
        for claim in stated
        if not _is_carried(claim, carried, judged=judged)
    ]
    if not stated or not strictly or faults:
        return faults
    here, there = {claim.part: claim for claim in carried}, {claim.part: claim for claim in stated}
    for part in [*here, *(part for part in there if part not in here)]:
        one, other = here.get(part), there.get(part)
        if one is None or other is None:
            faults.append(f"the statement lacks a part, or has an unknown one: {part}")
        elif one.standing is not other.standing and not (judged and other.standing is Assurance.JUDGED):
            faults.append(f"the statement says {other.standing} instead of {one.standing}: {part}")
    return faults


def _is_carried(stated: StatementPart, carried: Sequence[StatementPart], *, judged: bool) -> bool:
    """True if a part of a bundle's statement ranks no higher than the new verdict allows. Only a checked validation
    carries a validated part."""
    same = {claim.standing for claim in carried if claim.part == stated.part}
    best = same or {claim.standing for claim in carried}
    if stated.standing is Assurance.VALIDATED:
        return Assurance.VALIDATED in best
    if stated.standing is Assurance.JUDGED and judged:
        return True
    return _RISING.index(stated.standing) <= max(
        _RISING.index(one) for one in best - {Assurance.VALIDATED} or _RISING[:1]
    )


def unchecked(report: BundleReport, signed: SignedValidations) -> tuple[NotChecked, ...]:
    """Returns the parts of a bundle on which no pass of this check rests, with reasons, the most important first."""
    found: list[tuple[str, str]] = []
    then, now = report.verdict_then, report.verdict_now
    if report.missing:
        found.append(("the answer", report.missing))
    elif now is None:
        found.append(("the answer", "the faults of the bundle come first"))
    elif now.outcome is Outcome.INFRA_ERROR:
        found.append(("the answer", f"this machine could not run the verifier again: {now.reason}"))
    if then is not None and now is not None and now.outcome is not Outcome.INFRA_ERROR:
        spec = report.spec
        if spec is not None and was_judged(spec, then) and not was_judged(spec, now):
            found.append(("the grades of a model judge", "they are a model's opinion, and no model is asked here"))
        if not same_tools(then, now):
            why = "another version of the verifier or of its tools: only the outcome was compared"
            found.append(("the stored reason and evidence", why))
    for validation in signed.unchecked:
        does = "says" if validation.verdict == "meant" else "does not say"
        what = f"the validation by {validation.person}, that the check {does} what was meant"
        found.append((what, f"the key {validation.key} was not given: --person-key FILE"))
    found += [(f"a validation signed by {key}", "it is neither in the bundle nor beside it") for key in signed.unsigned]
    if report.seal is None:
        found.append(("who made it", "the bundle has no valid seal"))
    elif not report.seal.known and not report.seal.own:
        why = f"anybody can seal with their own key, and {report.seal.key} was not given: --key FILE"
        found.append(("who made it", why))
    if report.nodes:
        what = f"the transcript: {report.nodes} parts, {report.calls} tool calls"
        found.append((what, "it is evidence of how the answer was found, and is not run again"))
    if report.made_with:
        what = "the solver, the model with its lineage, the tools, the environment and the policy"
        found.append((what, "only the maker states them"))
    return tuple(NotChecked(what=what, why=why) for what, why in found)
