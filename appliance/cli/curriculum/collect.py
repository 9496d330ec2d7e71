"""`assay curriculum collect`: turns the owner's verified work into tasks of `own/jobs` and `own/sessions`.

Invariants: each row passes the filters and checks of `assay curriculum add`. Refusals are reported with their reason
and not tried again. The daemon runs this before a scheduled night.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from appliance.cli.curriculum.add import RefusedRow, sealed_questions
from appliance.cli.shell.options import api_client
from appliance.cli.show.printing import Output, prints, show_progress
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from appliance.client.own_tasks import TaskCandidate

NOT_HERE = "it could not be checked here"
"""Prefix of the reason for rows that are tried again later."""


class CollectedDocument(FrozenModel):
    taken: dict[str, str]
    """Taskset by source of the task."""
    refused: tuple[RefusedRow, ...]


@prints
def collect() -> Output[CollectedDocument]:
    """Make tasks from your verified jobs (if the policy's [data] has jobs_as_tasks) and from sessions with a verdict.

    Exit code 0 also if there was nothing to collect, 4 while a cycle uses the tasksets.
    """
    from appliance.client.own_tasks import JOBS, SESSIONS, CollectedRows

    api = api_client()
    found = api.candidates()
    refused: dict[str, tuple[str, str]] = {}
    kept = _checked(found, refused) if found else []
    show_progress("")
    for taskset in (JOBS, SESSIONS):
        keys = tuple(one.row.key for one in kept if one.taskset == taskset)
        origins = {one.row.key for one in found if one.taskset == taskset}
        final = {
            key: reason for key, (_, reason) in refused.items() if key in origins and not reason.startswith(NOT_HERE)
        }
        if keys or final:
            api.collect(CollectedRows(taskset=taskset, keys=keys, refused=final))
    document = CollectedDocument(
        taken={one.row.origin: f"own/{one.taskset}" for one in kept},
        refused=tuple(RefusedRow(origin=origin, reason=reason) for origin, reason in refused.values()),
    )
    lines = [f"{len(kept)} of {len(found)} became tasks" if found else "no new passing verdict"]
    return Output(document, lines + [f"  {one.origin}: {one.reason}" for one in document.refused])


def _checked(found: list[TaskCandidate], refused: dict[str, tuple[str, str]]) -> list[TaskCandidate]:
    """Returns the candidates for tasks that pass the filters and whose check is sound; adds the others to `refused`, by
    key."""
    from appliance.cli.check.own_rows import checked
    from appliance.cli.check.target import target_for
    from appliance.cli.curriculum.catalog import catalog_of
    from curriculum.names import OWN
    from curriculum.own.harbor import not_sealed, refusal
    from curriculum.own.taskset import forms_in
    from verifiers.registry import kind_of

    catalog = catalog_of()
    beside = forms_in(catalog, catalog.domains.get(OWN, {}))
    doors = (not_sealed(sealed_questions(), beside),)
    let_in: list[TaskCandidate] = []
    for one in found:
        reason = refusal(one.row, doors)
        if reason:
            refused[one.row.key] = (one.row.origin, reason)
        else:
            let_in.append(one)
    if not let_in:
        return []
    kinds = {kind_of(one.row.spec) for one in let_in}
    kept: list[TaskCandidate] = []
    with target_for(kinds).checker(jobs=2) as checker:
        results = checked(checker, (one.row for one in let_in), lambda done: show_progress(f"checked {done}"))
        for one, (row, reason) in zip(let_in, results, strict=True):
            if reason:
                refused[row.key] = (row.origin, reason)
            else:
                kept.append(one)
    return kept
