"""`assay prune`: frees space in the ledger."""

from __future__ import annotations

from typing import Annotated

import typer

from appliance.cli.shell.options import Data, Json, client_of
from appliance.cli.show.printing import show_json, show_line

NIGHTS = 30


def prune(
    context: typer.Context,
    nights: Annotated[
        int, typer.Option("--nights", min=1, max=100_000, help="Number of newest cycles that keep everything.")
    ] = NIGHTS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be dropped, and drop nothing.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Drop the tokens of old training rollouts from the ledger.

    Code and results of their calls go with them. Verdicts, answers, evaluations, decisions, approvals, bundles and the
    audit log stay. The file keeps its size; the space is reused for new records. `retention.training_nights` does this
    after each cycle. `assay curriculum audit` can no longer compare dropped tool results; it reports that and is not
    clean.

    Example: assay prune --nights 30 --dry-run
    """
    from appliance.client.retention import Prune

    found = client_of(context, data).prune(Prune(nights=nights, dry_run=dry_run))
    if as_json:
        show_json(found)
        return
    verb = "would be dropped" if dry_run else "are dropped"
    show_line(
        f"the tokens of {found.rollouts} rollouts of {len(found.cycles)} cycles {verb}: {found.bytes / 2**20:.1f} MiB"
    )
