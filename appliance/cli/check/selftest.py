"""`assay check selftest`: known attacks, agents that do no work, and honest controls, on the verifiers as they run
here.

Progress goes to standard error; the report, as lines or JSON, to standard output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import typer

from appliance.cli.check.target import CheckTarget
from appliance.cli.show.printing import Output, show_line, show_progress, show_table
from appliance.errors import ExitCode
from appliance.system.clock import now
from appliance.text.printable import printable
from common.counting import counted
from curriculum import seeds
from curriculum.contract.task import Split
from curriculum.names import CALCULATORS
from curriculum.registry import make_draft, taskset_named
from verifiers.registry import KINDS, kind_named
from verifiers.selftest.cases import attack_catalogue, trials
from verifiers.selftest.report import NotRun, SelfTest, SelfTestEntry
from verifiers.selftest.run import TaskQuestion, run_selftest

SHOWN = 20
"""Cases of a kind shown individually; JSON has all."""
LIMIT = 300


def run_cases(place: CheckTarget, *, only: list[str], jobs: int) -> Output[SelfTest]:
    """Runs the cases. Exit code 1 if an attack passed, a control failed or a suspicion was missed; 5 if a case got no
    verdict that this machine can reach, or none got one."""
    only = [_known_name(name) for name in only]
    try:
        with place.checker(jobs=jobs) as checker:
            found = run_selftest(
                checker, list(questions()), made_at=now(), jobs=2 * jobs, only=only, progress=_progress
            )
    finally:
        show_progress("")
    missing = [case for case in found.not_run if not only or case.verifier in only]
    cannot = cannot_run_here({case.verifier for case in missing})
    return Output(found, lambda: _show(found, missing, cannot), code_of(found, missing, cannot))


def cannot_run_here(verifiers: Iterable[str]) -> dict[str, str]:
    """Returns those of these verifiers that this machine cannot run, each with the reason."""
    rows = ((name, kind_named(name).missing) for name in sorted(verifiers))
    reasons = {name: missing.load()() for name, missing in rows if missing is not None}
    return {name: reason for name, reason in reasons.items() if reason}


def code_of(found: SelfTest, missing: Sequence[NotRun], cannot: Collection[str]) -> ExitCode:
    """Returns the exit code of a self-test. Cases of a verifier in `cannot` do not count, unless no other was run."""
    if found.accepted or found.controls_rejected or found.suspected_found < found.suspected_expected:
        return ExitCode.FAILED_VERDICT
    if not found.clean or any(case.verifier not in cannot for case in missing):
        return ExitCode.INFRASTRUCTURE
    return ExitCode.OK


def catalogue_of(only: list[str]) -> str:
    """Returns the catalogue of attacks on verifiers as Markdown."""
    return attack_catalogue(trials(), [_known_name(name) for name in only])


def _known_name(name: str) -> str:
    """Returns the name of a kind. Raises BadParameter for an unknown one."""
    try:
        return kind_named(name).name
    except KeyError:
        known = ", ".join(KINDS)
        raise typer.BadParameter(f"unknown kind {name!r}; use one of {known}", param_hint="--verifier") from None


def questions() -> Iterator[TaskQuestion]:
    """Yields one question of each calculator taskset and level, the same in every run."""
    seed = next(seeds.seeds(Split.VALIDATION))
    for name in CALCULATORS:
        for level in range(taskset_named(name).level_count):
            draft = make_draft(name, level, seed)
            yield TaskQuestion(f"{name}-{level}", draft.messages[-1].text, draft.spec, draft.answer)


def _progress(done: int, total: int, last: SelfTestEntry | NotRun) -> None:
    show_progress(f"{done}/{total}  {last.verifier}: {printable(last.name, limit=60)}")


def _show(found: SelfTest, missing: list[NotRun], cannot: Mapping[str, str]) -> None:
    show_table(
        ("verifier", "version", "attacks", "accepted", "controls", "rejected", "not run"),
        [
            row
            for name, version in found.versions.items()
            if any((row := (name, version, *_counts(found, missing, name)))[2:])
        ],
        empty="nothing was checked",
    )
    for entry in found.wrong[:SHOWN]:
        show_line("")
        typer.echo(typer.style(_fault(entry), fg=typer.colors.RED), nl=False)
        show_line(f"  {entry.verifier}: {entry.name}")
        show_line(f"  {printable(entry.why, limit=LIMIT)}")
        show_line(f"  seen: {entry.outcome.value}, {printable(entry.reason, limit=LIMIT)}")
    if len(found.wrong) > SHOWN:
        show_line(f"and {len(found.wrong) - SHOWN} more")
    for (verifier, reason), count in Counter((case.verifier, case.reason) for case in missing).most_common(SHOWN):
        show_line("")
        label = "cannot run here" if verifier in cannot else "not run"
        typer.echo(typer.style(label, fg=typer.colors.YELLOW), nl=False)
        why = cannot.get(verifier, reason)
        show_line(f"  {verifier}: {counted(count, 'case')}: {printable(why, limit=LIMIT)}")
    if missing and found.clean:
        untested = {case.verifier for case in missing}
        vouched = [name for name in found.versions if name not in untested and found.vouches_for([name])]
        show_line("")
        show_line(f"complete and correct: {', '.join(vouched) or 'none'}; incomplete: {', '.join(sorted(untested))}")
        if untested <= set(cannot):
            show_line("everything that this machine can run is in order")
    show_line("")
    held = ", ".join(found.isolations) or "nothing"
    show_line(
        f"{found.attacks} attacks, {found.accepted} accepted; {found.controls} honest controls, "
        f"{found.controls_rejected} rejected; {len(missing)} not run; held in {held}; {found.seconds:.0f} s"
    )


def _counts(found: SelfTest, missing: list[NotRun], verifier: str) -> tuple[int, int, int, int, int]:
    own = [entry for entry in found.entries if entry.verifier == verifier]
    attacks = [entry for entry in own if entry.sort != "control"]
    controls = [entry for entry in own if entry.sort == "control"]
    return (
        len(attacks),
        sum(entry.outcome.value == "pass" for entry in attacks),
        len(controls),
        sum(not entry.right for entry in controls),
        sum(case.verifier == verifier for case in missing),
    )


def _fault(entry: SelfTestEntry) -> str:
    if entry.sort == "control":
        return "rejected"
    return "accepted" if entry.outcome.value == "pass" else "not suspected"
