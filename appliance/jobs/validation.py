"""People's validations of a job's check: its subject as one digest, the check in plain words, and the page that shows
it.

Invariants: every example and mutant went through the very verifier that decides the job, and is shown with its verdict;
if the check accepts a mutant, the first line says so. The same job and tools give the same page: the number of tries
and the own time of each are limited. Only a machine that is too busy leaves some untried; then the page says so, and
claims nothing about them.

The digest covers question, check and files only, not the answer: whether a check says what was meant does not depend on
what was found. A bundle is enough to compute it.

Every field of a spec that affects the verdict is stated, so that a wrong domain, tolerance, quantifier or limit is
visible; truncated text states how much is missing and the digest of the whole. Texts are shown as they are: whoever
prints a line escapes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from appliance.records.jobs import Job, JobFile, JobState, Validation
from policies.envelopes import PublicKey, canonical
from policies.errors import Refusal, StatementRefused
from policies.statements import Page, ShownExample, SignedValidation, open_validation, read_validation
from verifiers.contract.examples import CheckedExample, ExampleInput, ExampleReport
from verifiers.contract.text import clip_size
from verifiers.contract.verdict import Ground, Outcome, SpecProblem, Verdict
from verifiers.registry import kind_of
from verifiers.registry.spec import Spec

Ask = Callable[[Sequence[tuple[Spec, str]], float], list[Verdict | SpecProblem]]
"""`Checker.check_many`: takes pairs, and the time limit of one in seconds."""
SHOWN_TEXT = 1_200
"""Maximum length of a shown submission, in bytes of ASCII with everything else escaped."""
MOST_EXAMPLES = 60
BUSY_SECONDS = 600.0
"""Wall clock after which nothing more is tried, because the machine is too busy, in seconds."""
MOST_LATE = 4
"""Number of examples that may use up their own time before nothing more is tried."""
TOO_BUSY = "THE MACHINE IS TOO BUSY TO TRY EVERYTHING"
VARIANTS = "variants that were changed on purpose"
"""Name of mutants of the answer, claim or program: a sharp check rejects them."""


def page_of(job: Job, answer: str | None, ask: Ask, clock: Callable[[], float]) -> Page:
    """Builds the page to review before validating a job's answer: question, check in words, and tried examples.
    `answer` is the job's answer, if any; it is always tried. `ask` verifies the examples, each within its own time;
    `clock` is in seconds."""
    kind = kind_of(job.spec)
    deadline = clock() + BUSY_SECONDS
    busy = False
    tries = late = 0
    left_out: list[ExampleInput] = []

    def try_(inputs: Sequence[ExampleInput]) -> list[CheckedExample]:
        found: list[CheckedExample] = []
        size = kind.examples_at_once
        nonlocal busy, tries, late
        for begin in range(0, len(inputs), size):
            some = inputs[begin : begin + size]
            busy = busy or clock() > deadline
            if busy or tries >= kind.examples_tries or late >= MOST_LATE:
                left_out.extend(one for one in some if one.submission != answer)
                some = [one for one in some if one.submission == answer]
            if not some:
                continue
            verdicts = ask([(one.spec, one.submission) for one in some], kind.examples_seconds)
            tries += len(some)
            late += sum(isinstance(one, Verdict) and one.ground is Ground.TIMEOUT for one in verdicts)
            found += [
                _checked(one, result)
                for one, result in zip(some, verdicts, strict=True)
                if isinstance(result, Verdict) or one.spec == job.spec  # a changed claim may be none
            ]
        return found

    report: ExampleReport = kind.examples.load()(job.spec, answer, try_)
    notes = list(report.notes)
    if left_out and not busy:
        why = "the first ones took too long" if late >= MOST_LATE else f"{tries} are enough"
        notes.append(f"{len(left_out)} more were not tried: {why}")
    first = [f"{TOO_BUSY}: {len(left_out)} were left out; look again later"] if busy and left_out else []
    first += [*report.first, *_warnings(report.examples, len(left_out))]
    return Page(
        question=question_lines(job.question),
        files=files_in_words(job.files),
        words=in_words(job.spec),
        first=tuple(clip_size(line, 1_000) for line in first),
        examples=tuple(map(_shown, report.examples[:MOST_EXAMPLES])),
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


def _warnings(examples: Sequence[CheckedExample], left_out: int) -> list[str]:
    """Returns the warnings about a check, from its tried examples, that a page shows first; if there are none, that
    variants are rejected."""
    broken = [one for one in examples if one.outcome == Outcome.INFRA_ERROR]
    late = sum(one.ground == Ground.TIMEOUT for one in examples)
    mutants = [one for one in examples if one.given.sort == "mutant" and one not in broken]
    through = [one for one in mutants if one.accepted]
    lines = []
    if through:
        which = "; ".join(one.given.what for one in through[:3])
        lines.append(f"WEAK: {len(through)} of {len(mutants)} {VARIANTS} are accepted: {which}")
    if len(broken) == len(examples) and examples:
        lines.append(f"NOTHING COULD BE TRIED HERE: {broken[0].reason}")
    elif broken:
        lines.append(f"{len(broken)} could not be tried here: {broken[0].reason}")
    if not any(one.accepted for one in examples) and len(broken) < len(examples):
        if left_out or late:
            decided, open_ones = len(examples) - len(broken) - late, late + left_out
            some = f"None of the {decided} that were decided are accepted; {open_ones} were not decided"
            lines.append(some if decided else f"NOTHING WAS DECIDED: {open_ones} examples took too long")
        else:
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


def content_digest(question: str, spec: Spec, files: Iterable[JobFile] = ()) -> str:
    """Returns the SHA-256 of the canonical JSON of all three."""
    named = sorted((file.name, file.sha256, file.bytes) for file in files)
    listed = [{"name": name, "sha256": digest, "bytes": size} for name, digest, size in named]
    content = canonical({"question": question, "spec": spec.model_dump(mode="json"), "files": listed})
    return hashlib.sha256(content).hexdigest()


def content_of(job: Job) -> str:
    """Returns the digest that a validation of this job refers to."""
    return content_digest(job.question, job.spec, job.files)


def meaning_file(bundle: Path) -> Path:
    """Returns the path of a validation signed after the bundle was made: beside the bundle, whose bytes must not
    change."""
    return bundle.with_name(f"{bundle.name}.meaning.json")


def not_asked(job: Job) -> str:
    """Returns why people cannot validate this job's check any more; empty if they can."""
    if job.state in (JobState.QUEUED, JobState.RUNNING, JobState.SOLVED):
        return ""
    return f"the job {job.id} is {job.state.value}: nothing is left to validate"


def files_in_words(files: Iterable[JobFile]) -> tuple[str, ...]:
    """Returns a line with name, size and digest for each file of a job, sorted by name."""
    return tuple(
        f"{file.name}: {file.bytes} bytes, SHA-256 {file.sha256}" for file in sorted(files, key=lambda file: file.name)
    )


def signed_validation(validation: Validation, content: str, key: PublicKey | None = None) -> SignedValidation:
    """Returns the signed statement if its record agrees and it is about this content.

    With `key`, its signature is checked too. Raises StatementRefused.
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
        raise StatementRefused(Refusal.SHAPE, "the record differs from the signed statement", hint="get it again")
    if signed.content != content:
        raise StatementRefused(
            Refusal.CONTENT,
            f"it is about the content {signed.content[:12]}, not {content[:12]}",
            hint="the question, the check or a file was changed after the person saw it",
        )
    return signed


MOST_LINES = 300
MOST_CHARACTERS = 400
"""Maximum length of a line."""
MOST_TEXT = 60_000
"""Maximum bytes of all lines, counted with non-ASCII characters escaped."""


def in_words(spec: Spec) -> tuple[str, ...]:
    """Describes a job's check in plain lines; indented ones quote it or continue the line before."""
    return bounded(list(kind_of(spec).explain.load()(spec)))


def question_lines(question: str) -> tuple[str, ...]:
    """Returns the lines of a job's question, truncated for display."""
    return bounded(question.splitlines())


def bounded(lines: list[str]) -> tuple[str, ...]:
    """Truncates lines to an amount that a person can read, and adds a line that states what was left out."""
    shown: list[str] = []
    total = 0
    for line in lines:
        short = line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 30]}… ({len(line)} characters)"
        total += len(short.encode("ascii", "backslashreplace"))
        if len(shown) == MOST_LINES or total > MOST_TEXT:
            break
        shown.append(short)
    if shown != lines:
        digest = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
        shown.append(
            f"(not shown: {len(lines) - len(shown)} of {len(lines)} lines, and the ends of long ones; all of it has "
            f"the SHA-256 {digest}, and `assay jobs show JOB --json` prints it)"
        )
    return tuple(shown)
