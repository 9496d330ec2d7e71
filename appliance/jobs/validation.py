"""Builds the page for the person who validates a check: the check in plain words, what it accepts, and what it rejects.

Invariants: every example and mutant went through the very verifier that decides the job, and is shown with its verdict;
if the check accepts a mutant, the first line says so. The same job and tools give the same page, as far as time allows:
examples that were not tried are listed as missing, never made up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from appliance.jobs.content import files_in_words
from appliance.jobs.explain import in_words, question_lines
from appliance.records.jobs import Job
from policies.statements import Page, ShownExample
from verifiers.contract.examples import CheckedExample, ExampleInput, ExampleReport
from verifiers.contract.text import clip_size
from verifiers.contract.verdict import Outcome, SpecProblem, Verdict
from verifiers.registry import kind_of
from verifiers.registry.spec import Spec

Ask = Callable[[Sequence[tuple[Spec, str]], float], list[Verdict | SpecProblem]]
"""`Checker.check_many`: takes pairs, and the time limit of one in seconds."""
SHOWN_TEXT = 1_200
"""Maximum length of a shown submission, in bytes of ASCII with everything else escaped."""
MOST_EXAMPLES = 60
VARIANTS = "variants that were changed on purpose"
"""Name of mutants of the answer, claim or program: a sharp check rejects them."""


def page_of(job: Job, answer: str | None, ask: Ask, clock: Callable[[], float]) -> Page:
    """Builds the page to review before validating a job's answer: question, check in words, and tried examples.
    `answer` is the job's answer, if any. `ask` verifies the examples, within a time limit measured by `clock` in
    seconds."""
    kind = kind_of(job.spec)
    seconds, each = kind.examples_seconds
    deadline = clock() + seconds
    left_out: list[ExampleInput] = []

    def try_(inputs: Sequence[ExampleInput]) -> list[CheckedExample]:
        found: list[CheckedExample] = []
        size = kind.examples_at_once
        for begin in range(0, len(inputs), size):
            some = inputs[begin : begin + size]
            if clock() > deadline:
                left_out.extend(inputs[begin:])
                break
            verdicts = ask([(one.spec, one.submission) for one in some], each)
            found += [
                _checked(one, result)
                for one, result in zip(some, verdicts, strict=True)
                if isinstance(result, Verdict) or one.spec == job.spec  # a changed claim may be none
            ]
        return found

    report: ExampleReport = kind.examples.load()(job.spec, answer, try_)
    examples = tuple(map(_shown, report.examples))
    notes = list(report.notes)
    if left_out:
        notes.append(f"{len(left_out)} more were not tried: there was no time for them")
    return Page(
        question=question_lines(job.question),
        files=files_in_words(job.files),
        words=in_words(job.spec),
        first=tuple(clip_size(line, 1_000) for line in (*report.first, *_warnings(examples))),
        examples=examples[:MOST_EXAMPLES],
        notes=tuple(clip_size(line, 1_000) for line in notes),
        verifier=clip_size(f"{kind.name} {kind.version}", 300),
    )


def _checked(one: ExampleInput, result: Verdict | SpecProblem) -> CheckedExample:
    if isinstance(result, SpecProblem):
        return CheckedExample(one, Outcome.INFRA_ERROR.value, result.reason, {})
    return CheckedExample(one, result.outcome.value, result.reason, result.evidence, result.ground or "")


def _shown(one: CheckedExample) -> ShownExample:
    return ShownExample(
        sort=one.given.sort,
        what=clip_size(one.given.what, 400),
        text=clip_size(one.given.shown or one.given.submission, SHOWN_TEXT),
        outcome=one.outcome,
        reason=clip_size(one.reason, 400),
    )


def _warnings(examples: Sequence[ShownExample]) -> list[str]:
    """Returns the warnings about a check, from its tried examples, that a page shows first; if there are none, that
    variants are rejected."""
    broken = [one for one in examples if one.outcome == Outcome.INFRA_ERROR]
    mutants = [one for one in examples if one.sort == "mutant" and one not in broken]
    through = [one for one in mutants if one.accepted]
    lines = []
    if through:
        which = "; ".join(one.what for one in through[:3])
        lines.append(f"WEAK: {len(through)} of {len(mutants)} {VARIANTS} are accepted: {which}")
    if len(broken) == len(examples) and examples:
        lines.append(f"NOTHING COULD BE TRIED HERE: {broken[0].reason}")
    elif broken:
        lines.append(f"{len(broken)} could not be tried here: {broken[0].reason}")
    if not any(one.accepted for one in examples) and len(broken) < len(examples):
        lines.append("NOTHING IS ACCEPTED of what was tried")
    if not lines and examples:
        lines.append(_all_rejected(len(mutants)) if mutants else f"Of the {VARIANTS} none is settled")
    return lines


def _all_rejected(count: int) -> str:
    return (
        f"All {count} {VARIANTS} are rejected"
        if count > 1
        else "The one variant that was changed on purpose is rejected"
    )
