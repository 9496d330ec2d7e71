"""`assay curriculum ls`: the tasksets, one line each."""

from __future__ import annotations

from typing import Annotated

import typer

from appliance.cli.options import Data, Json
from appliance.cli.show import show_line, show_records


def ls(
    context: typer.Context,
    word: Annotated[str | None, typer.Argument(help="Only those whose name or topics have this in them.")] = None,
    domain: Annotated[str | None, typer.Option("--domain", help="Only of this domain.")] = None,
    check: Annotated[str | None, typer.Option("--check", help="Only with this kind of check.")] = None,
    ready: Annotated[bool, typer.Option("--ready", help="Only those whose answers can be checked here.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the tasksets: what each is about, how it is checked, and whether that works here.

    Example: assay curriculum ls puzzle --ready
    """
    from appliance.cli.curriculum_catalog import catalog_of
    from curriculum.summary import summary_of

    catalog = catalog_of(context, data)

    def wanted(name: str) -> bool:
        """As far as it is known before any task is made."""
        taskset = catalog.named(name)
        return (
            (word is None or any(word in text for text in (name, *taskset.topics)))
            and domain in (None, catalog.domain_of(name))
            and not (ready and taskset.missing())
        )

    summaries = (summary_of(catalog, name) for name in catalog.tasksets if wanted(name))
    found = [one for one in summaries if check is None or check in one.checks]
    show_records(
        found,
        ("taskset", "domain", "levels", "check", "answer", "world", "version", "here"),
        lambda one: (
            one.name,
            one.domain,
            one.levels,
            "foreign_reward" if one.foreign else ",".join(one.checks),
            ",".join(one.forms),
            one.environment,
            one.version,
            "no" if one.missing else "yes",
        ),
        empty="no taskset fits: `assay curriculum ls` lists all, with their domains and checks",
        as_json=as_json,
    )
    if not as_json:
        if foreign := ", ".join(one.name for one in found if one.foreign):
            show_line(f"never trained on, a foreign reward is no verdict: {foreign}")
        for why in dict.fromkeys(one.missing for one in found if one.missing):
            show_line(f"not here: {', '.join(one.name for one in found if one.missing == why)}: {why}")
