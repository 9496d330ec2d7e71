"""`assay curriculum audit`: shows from the ledger that no training data is a copy of sealed or held-out questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from appliance.cli.shell.options import data_folder
from appliance.cli.show.printing import Output, prints, show_fields, show_line, show_progress, show_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from appliance.cli.curriculum.documents import SeparationDocument
    from appliance.curriculum.separation_audit import Copy, SeparationReport


@prints
def audit() -> Output[SeparationDocument]:
    """Check training data for copies of sealed and held-out questions, and list what each filter removed. Exit code 1
    if a decision rests on a copy, or a comparison was impossible."""
    from appliance.cli.curriculum.documents import SeparationDocument
    from appliance.curriculum.separation_audit import audit_separation
    from appliance.ledger.read_only import ReadOnlyLedger
    from appliance.worker.sft.traces import texts_in

    folder = data_folder()
    with ReadOnlyLedger(folder / "ledger.sqlite3") as ledger:
        report = audit_separation(ledger, folder, texts_in, beside=_forms_in(folder), say=show_progress)
    show_progress("")
    return Output(SeparationDocument(**dict(report)), lambda: _show(report), 0 if report.clean else 1)


def _forms_in(folder: Path) -> Iterator[str]:
    """Yields texts of the owner's tasksets, so that common forms do not count as copies; unreadable tasksets are
    skipped."""
    from appliance.curriculum.own_files import names_in
    from appliance.curriculum.own_tasksets import read_own
    from curriculum.contract.errors import CurriculumError

    for name in names_in(folder):
        try:
            yield from read_own(folder, name).forms()
        except (CurriculumError, OSError):
            continue


def _show(report: SeparationReport) -> None:
    show_fields(
        [
            ("held out", f"{report.sealed} sealed and {report.held_out} held-out questions of {report.cycles} cycles"),
            (
                "trained on",
                f"{report.tasks} tasks, {report.demonstrations} demonstrations, {report.conversations} conversations",
            ),
            ("tool results", report.results),
            ("copies", report.met),
            ("noted", f"{report.noted} copies that no decision rests on"),
            ("took", f"{report.seconds:.1f} s"),
        ]
    )
    show_line("")
    show_table(
        ("filter", "check", "removed"),
        [(*name.split("/", 1), count) for name, count in report.thrown_out.items()],
        empty="nothing was removed",
    )
    for one in report.copies:
        show_line(_line_of(one))
    for text in report.unproved:
        show_line(f"not compared: {text}")
    show_line("")
    for text in _verdict(report):
        show_line(text)


def _line_of(one: Copy) -> str:
    what = f"{one.taskset} level {one.level} {one.task}"
    said = f"{one.cycle}, {one.where}, {one.door.value}: {what}: {one.check.value} of {one.kept} ({one.share:.0%})"
    where = f" (decision of {one.evaluation.removesuffix('.evaluation')})" if one.evaluation else ""
    return f"{'copy' if one.bearing.counts else 'noted'}: {said}: {one.bearing.value}{where}"


def _verdict(report: SeparationReport) -> Iterator[str]:
    """Yields the conclusion and the advice of an audit for copies of evaluation questions."""
    from appliance.curriculum.copy_bearing import CopyBearing

    if report.clean and report.noted:
        yield f"no decision rests on a copy: {report.noted} entered training elsewhere; nothing to do"
        return
    if report.clean:
        yield "train, validation and sealed sets are disjoint"
        return
    yield "not clean"
    decided = {one.candidate: one.evaluation for one in report.copies if one.bearing is CopyBearing.DECISION}
    for candidate, evaluation in decided.items():
        cycle = evaluation.removesuffix(".evaluation")
        yield f"the decision of {cycle} rests on a copy: `assay model evaluate {candidate[:12]}` asks fresh questions"
    cycles = dict.fromkeys(one.cycle for one in report.copies if one.bearing is CopyBearing.CYCLE)
    for name in cycles:
        yield (
            f"{name} trained on its held-out questions: do not rely on its decision (`assay cycle show {name}`); "
            "`assay model evaluate` asks its candidate fresh questions"
        )
    if report.unproved:
        yield "restore missing files from a backup to compare them; pruned data stays unknown"
