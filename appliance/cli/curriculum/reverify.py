"""`assay curriculum reverify`: judges stored answers with the present verifiers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import data_folder
from appliance.cli.show.printing import Output, prints, show_fields, show_line, show_progress, show_table

if TYPE_CHECKING:
    from appliance.cli.curriculum.documents import ReverifiedDocument
    from appliance.curriculum.reverify import Reverification


@prints
def reverify(
    since: Annotated[
        datetime | None,
        typer.Option("--since", formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="Cycles and jobs from then on, UTC."),
    ] = None,
) -> Output[ReverifiedDocument]:
    """Judge stored answers again if their verifier has a new version, and list rewards, promotions and bundles that
    would differ. Nothing is changed. Exit code 1 if something would differ, or got no verdict now.

    Example: assay curriculum reverify --json
    """
    from appliance.cli.check.target import target_for
    from appliance.cli.curriculum.documents import ReverifiedDocument
    from appliance.curriculum.reverify import reverify
    from appliance.ledger.read_only import ReadOnlyLedger

    folder = data_folder()
    after = "" if since is None else since.replace(tzinfo=UTC).isoformat()
    try:
        with ReadOnlyLedger(folder / "ledger.sqlite3") as ledger, target_for(()).checker(jobs=2) as checker:
            found = reverify(ledger, folder, checker.check_many, since=after, say=show_progress)
    finally:
        show_progress("")
    return Output(ReverifiedDocument(**dict(found)), lambda: _show(found), 0 if found.same else 1)


def _show(found: Reverification) -> None:
    show_fields(
        [
            ("rollouts", found.rollouts),
            ("judged again", found.judged),
            ("without spec", found.unknown or None),
            ("no verdict now", found.broken or None),
            ("different", found.different),
            ("different bundles", len(found.bundles)),
            ("took", f"{found.seconds:.1f} s"),
        ]
    )
    show_line("")
    show_table(
        ("what", "of", "step", "verifier", "version", "then", "now"),
        [
            (one.id, one.work, one.step, one.verifier, " -> ".join(one.versions), *one.outcomes)
            for one in (*found.rewards, *found.bundles)
        ],
        empty="no reward and no bundle would differ" + (", among those with a verdict" if found.broken else ""),
    )
    if found.broken:
        show_line(f"{found.broken} got no verdict: run `assay doctor` to see which tools are missing")
    for decision, text in found.promotions.items():
        show_line(f"decision {decision}, {text}")
