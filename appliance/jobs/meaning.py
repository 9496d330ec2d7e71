"""What a person is shown who has to say whether a check says what was meant: the check in plain words, what it accepts,
and what it rejects.

What always holds: every example and every mutant was put to the very verifier that decides the job, and is shown with
what that said; where the check accepts what was changed, the first line says so. The same job and the same tools give
the same page, as far as the clock lets them: what there was no time for is said to be missing, never made up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from appliance.jobs.answer_probes import known_answer, value_that_fits
from appliance.jobs.checklist_probes import texts
from appliance.jobs.content import files_in_words
from appliance.jobs.in_words import in_words, question_lines
from appliance.jobs.lean_probes import statements
from appliance.jobs.probes import Probe, Shown, Tried, Try, clip
from appliance.jobs.program_probes import programs
from appliance.jobs.smt_probes import claims
from appliance.records import Job
from policies.meaning import Look, Page
from verifiers.registry import identity
from verifiers.spec import ChecklistSpec, LeanSpec, PredicateSpec, ProgramSpec, SmtSpec, Spec
from verifiers.verdict import Outcome, Verdict
from verifiers.workers.jobs import BAD_SPEC

Ask = Callable[[Sequence[tuple[Spec, str]], float], list[Verdict]]
"""`Checker.check_many`: pairs, and the seconds of one of them."""
SECONDS = {"program": 15.0, "lean": 30.0}
"""For all that is tried, by kind; ELSE for the others."""
ELSE = 10.0
EACH = {"program": 5.0, "lean": 15.0}
"""Of one thing that is tried; EACH_ELSE for the others."""
EACH_ELSE = 5.0
BATCHES = {"program": 4, "lean": 2}
"""What is asked together; the clock is looked at in between."""
BATCH = 8
MOST_LOOKS = 60


def page_of(job: Job, answer: str | None, ask: Ask, clock: Callable[[], float]) -> Page:
    """The page about this job; `answer` is what it came to, if anything. `clock` counts seconds."""
    kind = job.spec.kind
    deadline = clock() + SECONDS.get(kind, ELSE)
    left_out: list[Probe] = []

    def try_(probes: Sequence[Probe]) -> list[Tried]:
        found: list[Tried] = []
        size = BATCHES.get(kind, BATCH)
        for begin in range(0, len(probes), size):
            some = probes[begin : begin + size]
            if clock() > deadline:
                left_out.extend(probes[begin:])
                break
            verdicts = ask([(probe.spec, probe.submission) for probe in some], EACH.get(kind, EACH_ELSE))
            found += [
                Tried(probe, verdict.outcome.value, verdict.reason, verdict.evidence, verdict.ground or "")
                for probe, verdict in zip(some, verdicts, strict=True)
                if probe.spec == job.spec or BAD_SPEC not in verdict.evidence  # a changed claim may be none
            ]
        return found

    shown = _shown(job.spec, answer, try_)
    notes = list(shown.notes)
    if left_out:
        notes.append(f"{len(left_out)} more were not tried: there was no time for them")
    name, version = identity(job.spec)
    return Page(
        question=question_lines(job.question),
        files=files_in_words(job.files),
        words=in_words(job.spec),
        first=tuple(clip(line, 1_000) for line in (*shown.first, *_warnings(shown.looks))),
        looks=shown.looks[:MOST_LOOKS],
        notes=tuple(clip(line, 1_000) for line in notes),
        verifier=clip(f"{name} {version}", 300),
    )


def _shown(spec: Spec, answer: str | None, try_: Try) -> Shown:
    match spec:
        case PredicateSpec():
            return value_that_fits(spec, answer, try_)
        case SmtSpec():
            return claims(spec, answer, try_)
        case LeanSpec():
            return statements(spec, answer, try_)
        case ProgramSpec():
            return programs(spec, answer, try_)
        case ChecklistSpec():
            return texts(spec, answer, try_)
        case _:
            return known_answer(spec, answer, try_)


def _warnings(looks: Sequence[Look]) -> list[str]:
    """What has to be said first."""
    broken = [look for look in looks if look.outcome == Outcome.INFRA_ERROR]
    mutants = [look for look in looks if look.sort == "mutant" and look not in broken]
    through = [look for look in mutants if look.accepted]
    said = []
    if through:
        which = "; ".join(look.what for look in through[:3])
        said.append(f"WEAK: {len(through)} of {len(mutants)} changed ones are accepted: {which}")
    if len(broken) == len(looks) and looks:
        said.append(f"NOTHING COULD BE TRIED HERE: {broken[0].reason}")
    elif broken:
        said.append(f"{len(broken)} could not be tried here: {broken[0].reason}")
    if not any(look.accepted for look in looks) and len(broken) < len(looks):
        said.append("NOTHING IS ACCEPTED of what was tried")
    if not said and looks:
        said.append(
            f"All {len(mutants)} changed ones are rejected" if mutants else "Of what was changed nothing is settled"
        )
    return said
