"""What an artifact says of itself, part by part, and what carries each part. Pure.

What always holds: nothing stands higher than its verdict's ground lets it (`tested` never becomes `proved`); what no
verifier and no person looked at is a part of its own that says so; that the spec says what was meant is never proved,
only validated by a person's signed word, or open. The mark of an artifact is as strong as the weakest part that it
needs: "verified and validated" takes a proof of the one and a person for the other.

The verdict may come from somebody else's bundle: of its evidence only what has the expected type is read, and all text
from there is clipped; whoever shows it escapes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from appliance.records import MEANING, Claim, Job, JobFile, Meaning, Standing
from verifiers.spec import (
    AnswerSpec,
    ChecklistSpec,
    ExactSpec,
    ExpressionSpec,
    IntegerSpec,
    LeanSpec,
    PredicateSpec,
    ProgramSpec,
    SmtSpec,
    Spec,
)
from verifiers.verdict import Ground, Verdict

SHOWN = 200
"""Characters of a text in a claim."""
MOST_ITEMS = 100
NOBODY = "nobody: no person has validated it"

__all__ = ["MEANING", "NOBODY", "mark", "statement", "statement_of"]

VERIFIED, TESTED, JUDGED, NOT_VERIFIED = "verified", "verified by tests", "judged", "not verified"
_WORDS = {Standing.PROVED: VERIFIED, Standing.TESTED: TESTED, Standing.JUDGED: JUDGED, Standing.OPEN: NOT_VERIFIED}
_WEAKEST_FIRST = (Standing.OPEN, Standing.JUDGED, Standing.TESTED, Standing.PROVED)


def statement(job: Job, verdict: Verdict) -> tuple[Claim, ...]:
    """Of the artifact that this verdict is about."""
    return statement_of(job.spec, verdict, meaning=job.meaning, files=job.files)


def statement_of(
    spec: Spec, verdict: Verdict, *, meaning: Meaning | None = None, files: Sequence[JobFile] = ()
) -> tuple[Claim, ...]:
    """First what was verified, then what was validated, then what neither covers. Never empty."""
    if not verdict.passed:
        why = f"{verdict.outcome.value}: {_clip(verdict.reason)}"
        return (Claim(part="that the answer meets the check", standing=Standing.OPEN, by=why), _meant(meaning))
    verified, limits = _verified(spec, verdict)
    if files:
        names = _clip(", ".join(file.name for file in files))
        limits = [*limits, _open(f"that what is in the files is true: {names}", "they came with the job")]
    return (*verified, _meant(meaning), *limits)


def mark(claims: Iterable[Claim]) -> str:
    """In words, no stronger than the weakest part that is needed: "verified and validated" is the strongest."""
    claims = tuple(claims)
    needed = {claim.standing for claim in claims if claim.needed and claim.part != MEANING}
    weakest = next((standing for standing in _WEAKEST_FIRST if standing in needed), Standing.OPEN)
    word = _WORDS[weakest]
    meant = [claim for claim in claims if claim.part == MEANING]
    if meant and all(claim.standing is Standing.VALIDATED for claim in meant):
        return f"{word}, but validated" if weakest is Standing.OPEN else f"{word} and validated"
    if any(claim.by != NOBODY for claim in meant):
        return f"{word}, {'and' if weakest is Standing.OPEN else 'but'} not what was meant"
    return f"{word}, not validated"


def _meant(meaning: Meaning | None) -> Claim:
    if meaning is None:
        return _open(MEANING, NOBODY, needed=True)
    who = f"{_clip(meaning.person)} with the key {_clip(meaning.key)} at {_clip(meaning.created)}"
    if meaning.verdict == "meant":
        return Claim(part=MEANING, standing=Standing.VALIDATED, by=who)
    return _open(MEANING, f"{who} says that it does not", needed=True)


def _verified(spec: Spec, verdict: Verdict) -> tuple[list[Claim], list[Claim]]:
    """What the verdict carries, and what it says nothing about."""

    def decided(part: str, detail: str = "") -> Claim:
        standing = {Ground.PROVED: Standing.PROVED, Ground.TESTED: Standing.TESTED}.get(verdict.ground or Ground.BROKEN)
        by = ", ".join(filter(None, [_verifier(verdict), detail]))
        if standing is None:  # a pass from before verdicts had grounds
            return Claim(part=part, standing=Standing.TESTED, by=f"{by}; its ground was not recorded")
        return Claim(part=part, standing=standing, by=by)

    given = _open("that the expected answer is right", "it came with the job, and nobody derived it here")
    match spec:
        case ExactSpec():
            return [decided("that the answer is the expected text")], [given]
        case IntegerSpec():
            return [decided("that the answer is the expected integer")], [given]
        case ExpressionSpec():
            return [decided("that the answer is mathematically equal to the expected one", "exact")], [given]
        case AnswerSpec():
            return _answer(spec, decided), [given]
        case PredicateSpec():
            what = f"that the answer, put in for {spec.variable}, makes `{_clip(spec.predicate)}` true"
            only = _open("that there is no other answer", "the check takes any value that makes it true")
            return [decided(what, f"among {spec.domain} numbers")], [only]
        case SmtSpec():
            return _smt(spec, verdict, decided)
        case LeanSpec():
            return _lean(spec, verdict, decided)
        case ProgramSpec():
            return _program(spec, verdict, decided)
        case ChecklistSpec():
            return _checklist(spec, verdict, decided)


def _answer(spec: AnswerSpec, decided: Any) -> list[Claim]:
    near = [
        f"{amount} {what}" for amount, what in ((spec.absolute, "of it"), (spec.relative, "as a share of it")) if amount
    ]
    if not near:
        return [decided("that the answer is equal to the expected one", "exact")]
    within = decided(f"that the answer, where it is a decimal, is within {' or '.join(near)} of the expected one")
    return [within, _open("that it is equal to the expected one", "the check asks for a tolerance only")]


def _smt(spec: SmtSpec, verdict: Verdict, decided: Any) -> tuple[list[Claim], list[Claim]]:
    said = verdict.evidence.get("solvers")
    words = said.items() if isinstance(said, dict) else ()
    voices = ", ".join(f"{_clip(str(name))} says {_clip(str(word))}" for name, word in words)
    parts = {
        "entails": "that the goal follows from the assumptions",
        "model": "that the values make every assertion true",
        "optimum": "that the values make every assertion true, and that nothing better exists",
        "equivalent": "that the term has the reference's value wherever the assertions hold",
    }
    what = parts[spec.question]
    if spec.question == "entails" and spec.holes:
        what += f", with the submitted {_clip(', '.join(spec.holes))}"
    limits = [_open("that the assumptions hold of the world", "they are the claim's own")]
    if spec.division == "total":
        limits.append(_open("that nothing is divided by zero", "the claim takes any value for it, as SMT-LIB does"))
    if spec.question != "model" and not (isinstance(said, dict) and "cvc5" in said):
        limits.append(_open("that a second solver agrees", "only one was asked, or the other had no word"))
    return [decided(what, voices)], limits


def _lean(spec: LeanSpec, verdict: Verdict, decided: Any) -> tuple[list[Claim], list[Claim]]:
    axioms = verdict.evidence.get("axioms")
    named = ", ".join(_clip(str(axiom)) for axiom in axioms[:10]) if isinstance(axioms, list) and axioms else "none"
    theorem = _clip(str(verdict.evidence.get("theorem", "the theorem")))
    replayed = verdict.evidence.get("kernel_replayed") == "yes"
    detail = f"Lean's kernel, axioms: {named}, kernel_replayed: {'yes' if replayed else 'no'}"
    limits = []
    if not replayed:
        what = "that the kernel accepts every declaration a second time, apart from the submission"
        limits.append(_open(what, "kernel_replayed: no", needed=spec.require_replay))
    return [decided(f"that {theorem} is a theorem as it is stated", detail)], limits


def _program(spec: ProgramSpec, verdict: Verdict, decided: Any) -> tuple[list[Claim], list[Claim]]:
    tests = verdict.evidence.get("tests")
    count = f"{tests} tests" if isinstance(tests, int) else "the tests"
    kinds = [
        f"{number} {what}"
        for number, what in (
            (len(spec.examples), "examples"),
            (len(spec.runs), "runs"),
            (spec.generate, "generated inputs asked for"),
            (len(spec.relations), "relations"),
            (len(spec.properties), "properties"),
        )
        if number
    ]
    near = ""
    if spec.compare.rule == "close" or spec.output == "numbers":
        near = f"; numbers within {spec.compare.absolute:g} or {spec.compare.relative:g} as a share"
    claims = [decided(f"that the program passes {count}: {', '.join(kinds)}{near}", verdict.isolation)]
    limits = [_open("what the program does for inputs that were not run", "tests say nothing of them")]
    if spec.reference:
        limits.append(_open("that the reference is right", "it came with the job"))
    return claims, limits


def _checklist(spec: ChecklistSpec, verdict: Verdict, decided: Any) -> tuple[list[Claim], list[Claim]]:
    claims = [decided(f"that the item {_clip(item.name)!r} holds of the text") for item in spec.hard[:MOST_ITEMS]]
    grades = verdict.evidence.get("soft")
    graded = (
        {str(one.get("name")): one.get("grade") for one in grades if isinstance(one, dict)}
        if isinstance(grades, list)
        else {}
    )
    needed = spec.soft_needed > 0
    limits: list[Claim] = []
    for item in spec.soft:
        what = f"that {_clip(item.point)}"
        grade = next((graded[name] for name in (item.name, _clip(item.name)) if name in graded), None)
        if isinstance(grade, int | float):
            by = f"a model judge, grade {grade:g} of 1"
            claim = Claim(part=what, standing=Standing.JUDGED, by=by, needed=needed)
        else:
            claim = _open(what, "no model judged it", needed=needed)
        (claims if needed else limits).append(claim)
    limits.append(_open("that what the text says is true, and all that no item covers", "no verifier reads it"))
    return claims, limits


def _open(part: str, why: str, *, needed: bool = False) -> Claim:
    return Claim(part=part, standing=Standing.OPEN, by=why, needed=needed)


def _verifier(verdict: Verdict) -> str:
    return _clip(f"{verdict.verifier} {verdict.version}")


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
