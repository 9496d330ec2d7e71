"""`assay prune`: frees space in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import api_client
from appliance.cli.show.printing import Output, prints

if TYPE_CHECKING:
    from appliance.client.retention import Pruned

NIGHTS = 30


@prints
def prune(
    nights: Annotated[
        int, typer.Option("--nights", min=1, max=100_000, help="Number of newest cycles that keep everything.")
    ] = NIGHTS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be dropped, and drop nothing.")] = False,
) -> Output[Pruned]:
    """Drop the tokens of old training rollouts from the ledger.

    Code and results of their calls go with them. Verdicts, answers, evaluations, decisions, approvals, bundles and the
    audit log stay. The file keeps its size; the space is reused for new records. `retention.training_nights` does this
    after each cycle. `assay curriculum audit` can no longer compare dropped tool results; it reports that and is not
    clean.

    Example: assay prune --nights 30 --dry-run
    """
    from appliance.client.retention import Prune

    found = api_client().prune(Prune(nights=nights, dry_run=dry_run))
    verb = "would be dropped" if dry_run else "are dropped"
    of = f"{found.rollouts} rollouts of {len(found.cycles)} cycles"
    return Output(found, f"the tokens of {of} {verb}: {found.bytes / 2**20:.1f} MiB")
