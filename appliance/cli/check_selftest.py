"""`assay check selftest`: every known attack, agents that do no work, and honest controls, on the verifiers as they run
here. Progress goes to standard error; the report, lines or JSON, to standard output.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import typer

from appliance.cli.check_place import Place
from appliance.cli.show import show_json, show_line, show_table
from appliance.client.printable import printable
from appliance.errors import ExitCode
from curriculum import seeds
from curriculum.registry import FAMILIES, make_problem
from curriculum.task import Split
from verifiers.selftest import Question, run_selftest
from verifiers.selftest_report import Entry, NotRun, SelfTest

KINDS = ("exact", "integer", "expression", "predicate", "answer", "smt", "lean", "program", "checklist")
SHOWN = 20
"""Cases of a kind that are told one by one; JSON has them all."""
LIMIT = 300


def run_cases(place: Place, *, only: list[str], jobs: int, as_json: bool) -> ExitCode:
    """1 when an attack passed, a control did not, or a suspicion was missed; 5 when a case got no verdict."""
    unknown = next((name for name in only if name not in KINDS), None)
    if unknown is not None:
        raise typer.BadParameter(f"{unknown!r} is none of {', '.join(KINDS)}", param_hint="--verifier")
    try:
        with place.checker(jobs=jobs) as checker:
            found = run_selftest(
                checker, list(questions()), made_at=datetime.now(UTC), jobs=2 * jobs, only=only, progress=_progress
            )
    finally:
        _write("")
    missing = [case for case in found.not_run if not only or case.verifier in only]
    if as_json:
        show_json(found)
    else:
        _show(found, missing)
    if not found.clean:
        return ExitCode.FAILED_VERDICT
    return ExitCode.INFRASTRUCTURE if missing else ExitCode.OK


def questions() -> Iterator[Question]:
    """One of each family and level: the same each time."""
    seed = next(seeds.seeds(Split.VALIDATION))
    for name, family in FAMILIES.items():
        for level in range(family.level_count):
            problem = make_problem(name, level, seed)
            yield Question(f"{name}-{level}", problem.prompt, problem.spec, problem.answer)


def _progress(done: int, total: int, last: Entry | NotRun) -> None:
    _write(f"{done}/{total}  {last.verifier}: {printable(last.name, limit=60)}")


def _write(text: str) -> None:
    if sys.stderr.isatty():
        typer.echo(f"\r\x1b[K{text}", nl=False, err=True)


def _show(found: SelfTest, missing: list[NotRun]) -> None:
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
        typer.echo(typer.style("not run", fg=typer.colors.YELLOW), nl=False)
        show_line(f"  {verifier}: {count} cases: {printable(reason, limit=LIMIT)}")
    if missing and found.clean:
        untested = {case.verifier for case in missing}
        vouched = [name for name in found.versions if name not in untested and found.vouches_for([name])]
        show_line("")
        show_line(f"whole and right: {', '.join(vouched) or 'none'}; not: {', '.join(sorted(untested))}")
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


def _fault(entry: Entry) -> str:
    if entry.sort == "control":
        return "rejected"
    return "accepted" if entry.outcome.value == "pass" else "not suspected"
