"""What of a bundle's own words stands beside the verdict that was given anew, and what nobody checked. Pure.

What always holds: the new verdict is the one that counts; the stored one, the statement and the validations of persons
are held against it, and a bundle that says more of itself than that carries does not pass. What cannot be held against
anything here is listed, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import ValidationError

from appliance.jobs.content import content_digests, signed_validation
from appliance.jobs.layout import LARGEST_MEANING, canonical, strict
from appliance.jobs.report import BundleReport, NotChecked
from appliance.records.jobs import JobFile, Validation
from policies.envelopes import PublicKey
from policies.refusals import StatementRefused
from verifiers.checklists.spec import ChecklistSpec
from verifiers.contract.statement import Assurance, StatementPart
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.registry import kind_named
from verifiers.registry.spec import Spec

OF_THE_JUDGE = ("soft", "soft_mean", "not_judged", "because")
"""Evidence of checklists that comes from a model."""

OF_THE_MACHINE = ("headers",)
"""Evidence of how a machine came to a verdict, which another one, or the same when it is busy, does otherwise."""

_RISING = (Assurance.OPEN, Assurance.JUDGED, Assurance.TESTED, Assurance.PROVED)


@dataclass(frozen=True)
class SignedValidations:
    """Holds what persons signed about the check."""

    inside: Validation | None = None
    """The one in the bundle, whoever signed it."""
    checked: Validation | None = None
    """The latest one, by the time that was signed, whose signature was checked with a key that was given."""
    unchecked: tuple[Validation, ...] = field(default=())
    """Those whose signatures nobody could check here."""
    unsigned: tuple[str, ...] = ()
    """Fingerprints of the keys that were given and have signed none of these."""


def signed_validations_of(
    inside: bytes | None, later: bytes | None, about: tuple[str, Spec, Sequence[JobFile]], people: Sequence[PublicKey]
) -> SignedValidations:
    """Reads the validations in a bundle and beside it, each about exactly this question, check and files, and each of
    the time that its person signed: when it was received is not signed. Of two of one time, the one that says no
    counts.

    Raises ValueError for a validation that is none, is about something else, or is not signed by the key that it names.
    """
    contents = content_digests(*about)
    known = {key.fingerprint: key for key in people}
    read: list[tuple[Validation, bool]] = []
    for data in (inside, later):
        if data is None:
            continue
        validation = _validation(data)
        key = known.get(validation.key)
        try:
            statement = signed_validation(validation, contents, key)
        except StatementRefused as error:
            raise ValueError(f"the validation by {validation.person[:100]} does not hold: {error}") from error
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
        validation = Validation.model_validate(strict(data))
    except ValidationError:
        raise ValueError("no validation by a person") from None
    if canonical(validation.model_dump(mode="json")) != data:
        raise ValueError("is not written in the canonical way")
    return validation


def disagreements(spec: Spec, then: Verdict, now: Verdict) -> list[str]:
    """Why the stored verdict on that check does not stand. Seconds may differ; with another version of the verifier or
    of its tools, so may the words. A model's grades, where the check has items that a model grades, are not asked for
    again, and nothing rests on them, nor on the score and the reason that they are a part of."""
    if now.outcome is Outcome.INFRA_ERROR:
        return [f"it could not be decided again here: {now.reason}"]
    found = []
    judged = was_judged(spec, then) and not was_judged(spec, now)
    if not now.passed:
        found.append(f"the answer is not verified: {now.reason}")
    if not then.passed:
        found.append(f"the stored verdict is {then.outcome}")
    if (_current(then.verifier), then.outcome) != (now.verifier, now.outcome) or (
        then.score != now.score and not judged
    ):
        found.append("the stored verdict is not the one that the verifier gives")
    elif then.ground is not None and then.ground != now.ground and same_tools(then, now):
        found.append("the stored verdict has another ground than the one that the verifier gives")
    elif same_tools(then, now) and _wording(then, judged) != _wording(now, judged):
        found.append("the stored reason or evidence is not the one that the verifier gives")
    return found


def _current(verifier: str) -> str:
    """The name that this verifier has now, where an earlier version had it under another."""
    try:
        return kind_named(verifier).name
    except KeyError:
        return verifier


def was_judged(spec: Spec, verdict: Verdict) -> bool:
    """Whether a model's grades are in it: only a checklist with soft items has any, whatever the evidence says."""
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
    """Where a bundle says more of itself than `carried`, what the verdict of now carries. `strictly`: the same version
    of this program made it, so that every part is worded alike; `judged`: the stored verdict has a model's grades,
    which nobody asks for again. A bundle that says nothing of itself is no liar.

    Another version may have parts of its own: none of them stands higher than the best one that is carried."""
    faults = [
        f"the statement calls {claim.standing} what is not: {claim.part}"
        for claim in stated
        if not _is_carried(claim, carried, judged=judged)
    ]
    if not stated or not strictly or faults:
        return faults
    here, there = {claim.part: claim for claim in carried}, {claim.part: claim for claim in stated}
    for part in [*here, *(part for part in there if part not in here)]:
        one, other = here.get(part), there.get(part)
        if one is None or other is None:
            faults.append(f"the statement is not about the parts that it has to be about: {part}")
        elif one.standing is not other.standing and not (judged and other.standing is Assurance.JUDGED):
            faults.append(f"the statement says {other.standing}, and it is {one.standing}: {part}")
    return faults


def _is_carried(stated: StatementPart, carried: Sequence[StatementPart], *, judged: bool) -> bool:
    """Whether a part stands no higher than it may. That a person validated something is carried by nothing else."""
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
    """What no pass of this check rests on, the most important first."""
    found: list[tuple[str, str]] = []
    then, now = report.verdict_then, report.verdict_now
    if now is None:
        found.append(("the answer", "what is wrong with the bundle comes first"))
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
    found += [
        (f"a validation signed by {key}", "there is none in the bundle, nor beside it") for key in signed.unsigned
    ]
    if report.seal is None:
        found.append(("who made it", "there is no seal in it that holds"))
    elif not report.seal.known and not report.seal.own:
        why = f"anybody can seal with a key of their own, and {report.seal.key} was not given: --key FILE"
        found.append(("who made it", why))
    if report.nodes:
        what = f"the transcript: {report.nodes} parts, {report.calls} tool calls"
        found.append((what, "it is evidence of how the answer was found, and is not run again"))
    if report.made_with:
        what = "the solver, the model with its lineage, the tools, the environment and the policy"
        found.append((what, "that these are the ones is stated by the maker"))
    return tuple(NotChecked(what=what, why=why) for what, why in found)
