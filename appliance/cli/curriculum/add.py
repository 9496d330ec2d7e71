"""`assay curriculum add` and `rm`: turns the owner's problems into a taskset, and removes it.

Invariants: every row is checked here before the daemon stores any. Refused rows are listed with their reason. With
--dry-run nothing is stored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from appliance.cli.shell.options import Data, Json, client_of, data_of, settings_of, socket_of
from appliance.cli.show.printing import show_fields, show_json, show_line, show_progress
from appliance.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from appliance.client.api_client import ApiClient
    from curriculum.contract.task import Task
    from curriculum.own.columns import OwnKind
    from curriculum.own.rows import OwnRow

KINDS = ("auto", "answer", "program", "lean", "smt", "checklist", "exact")
SHOWN_ROWS = 5
SHOWN_REASONS = 12
REASON = 160
ENVELOPE = 10_000
"""Maximum bytes stored beside the rows."""
KEEP_SECONDS = 600.0
"""Timeout for the daemon to read and store the rows, in seconds."""


class Refused(NamedTuple):
    """Refused row of an owner's problems, with the reason."""

    origin: str
    reason: str


def add(
    context: typer.Context,
    place: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="JSON lines, JSON, CSV, Parquet, a Harbor task folder, or a folder of these."
        ),
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the taskset, own/NAME (default: the file's name).")
    ] = None,
    licence: Annotated[str, typer.Option("--license", help="Licence of the problems, stored with them.")] = "",
    source: Annotated[str, typer.Option("--source", help="Source of the problems (default: the file's name).")] = "",
    kind: Annotated[str, typer.Option("--kind", help=f"Kind of check: {', '.join(KINDS)}.")] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and store nothing.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Add your own problems: each is checked, and the valid ones become the taskset own/NAME. Solutions of Harbor task
    folders, which give the reference answers, run in a sandbox.

    Exit code 0 if some rows were accepted, 1 if none was.

    Example: assay curriculum add mine.jsonl --name sums --dry-run
    """
    from appliance.cli.check.target import target_for
    from appliance.cli.shell.own_use import how_to_train
    from curriculum.own.harbor import folders_in
    from curriculum.own.rows import with_levels
    from verifiers.registry import kind_of

    if kind not in KINDS:
        raise UsageError(f"--kind: unknown kind {kind!r}", f"use one of {', '.join(KINDS)}")
    folders = folders_in(place)
    if folders and kind != "auto":
        raise UsageError("a Harbor task folder has its own check", "omit --kind")
    named = name_of(place, name)
    keeper = keeper_of(context, data, named, dry_run=dry_run)
    sealed = [] if dry_run else sealed_questions(context, data)
    refused: list[Refused] = []
    if folders:
        from appliance.cli.curriculum.own_harbor import harbor_rows

        rows, left_out = harbor_rows(context, data, folders)
        refused += [Refused(*one) for one in left_out]
    else:
        rows = list(problems_in(place, kind, refused))
    accepted: list[OwnRow] = []
    if rows:
        kinds = {kind_of(row.spec) for row in rows}
        with target_for(context, data, kinds).checker(jobs=2) as checker:
            accepted = list(let_through(context, data, checker, rows, sealed, refused))
    show_progress("")
    kept = with_levels(accepted) if accepted else ()
    if kept and not dry_run:
        from curriculum.own.taskset import OwnContent

        content = OwnContent(name=named, licence=licence, source=source or place.name, added="", rows=kept)
        keeper.add_taskset(content)
    use = how_to_train(settings_of(context, data), f"own/{named}")
    show_added(named, kept, refused, use=use, dry_run=dry_run, as_json=as_json)
    raise typer.Exit(ExitCode.OK if kept else ExitCode.FAILED_VERDICT)


def rm(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A taskset of yours, own/NAME.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Remove a taskset of your own. Exit code 4 while a cycle uses it.

    Example: assay curriculum rm own/sums
    """
    removed = client_of(context, data).remove_taskset(name)
    show_json(removed) if as_json else show_line(f"{removed.name} is removed")


def keeper_of(context: typer.Context, data: Path | None, named: str, *, dry_run: bool) -> ApiClient:
    """Returns a client of the daemon, which stores the rows of a new taskset. Raises UsageError for a taken name,
    before any check."""
    from appliance.client.api_client import ApiClient
    from appliance.client.own_tasks import JOBS, SESSIONS
    from appliance.curriculum.own_files import names_in
    from curriculum.registry import TASKSETS

    if named in (JOBS, SESSIONS, *TASKSETS):
        what = "a built-in taskset" if named in TASKSETS else "reserved for your collected work"
        raise UsageError(f"{named} is {what}", "choose another --name")
    if not dry_run and f"own/{named}" in names_in(data_of(context, data)):
        raise UsageError(
            f"own/{named} already exists", f"give another --name, or run `assay curriculum rm own/{named}` first"
        )
    return ApiClient(socket_of(context, data), timeout_seconds=KEEP_SECONDS)


def name_of(place: Path, name: str | None) -> str:
    from curriculum.names import NAME

    named = (name if name is not None else re.sub(r"[^a-z0-9]+", "_", place.stem.lower()).strip("_")).removeprefix(
        "own/"
    )
    if not re.fullmatch(NAME, named):
        raise UsageError(f"invalid taskset name {named!r}", "give --name in small letters, digits and _")
    return named


def problems_in(place: Path, kind: str, refused: list[Refused]) -> Iterator[OwnRow]:
    """Yields the rows of a file that are problems with a check; adds the others to `refused`. Raises UsageError, also
    for too many rows, before hours are spent on checks."""
    from typing import cast

    from appliance.cli.curriculum.own_files import rows_in
    from curriculum.own.columns import RowError, row_of
    from curriculum.own.taskset import MOST_BYTES, MOST_ROWS

    size = ENVELOPE
    for number, row in enumerate(rows_in(place), 1):
        if number > MOST_ROWS:
            raise UsageError(f"{place} has more than {MOST_ROWS:,} rows", "split it")
        try:
            if row.values is None:
                raise RowError(row.problem)
            found = row_of(row.values, cast("OwnKind", kind), row.origin)
            size += len(found.model_dump_json().encode()) + 1
            if size > MOST_BYTES:
                raise UsageError(f"the problems of {place} take more than {MOST_BYTES >> 20} MiB", "split it")
            yield found
        except RowError as error:
            refused.append(Refused(row.origin, str(error)))


def let_through(
    context: typer.Context,
    data: Path | None,
    checker: object,
    rows: Sequence[OwnRow],
    sealed: Sequence[Task],
    refused: list[Refused],
) -> Iterator[OwnRow]:
    """Yields the owner's rows that pass all filters and whose check is sound; adds the others to `refused`, with
    reasons."""
    from typing import cast

    from appliance.cli.check.own_rows import ChecksMany, checked
    from appliance.cli.curriculum.catalog import catalog_of
    from curriculum.names import OWN
    from curriculum.own.harbor import not_sealed, not_there, refusal
    from curriculum.own.taskset import OwnTaskset, forms_in, spread

    catalog = catalog_of(context, data)
    owned = catalog.domains.get(OWN, {})
    known = {row.key for taskset in owned.values() if isinstance(taskset, OwnTaskset) for row in taskset.content.rows}
    beside = [*forms_in(catalog, owned), *(row.question for row in spread(rows))]
    there = not_there(known)
    doors = (not_sealed(sealed, beside), there)

    def let_in() -> Iterator[OwnRow]:
        for row in rows:
            reason = refusal(row, doors)
            if reason:
                refused.append(Refused(row.origin, reason))
            else:
                yield row

    def progress(done: int) -> None:
        show_progress(f"checked {done} of {len(rows)} rows")

    for row, reason in checked(cast(ChecksMany, checker), let_in(), progress):
        if reason := reason or there(row):  # a row whose check does not hold stands in no other's way
            refused.append(Refused(row.origin, reason))
        else:
            known.add(row.key)
            yield row


def sealed_questions(context: typer.Context, data: Path | None) -> list[Task]:
    """Returns the sealed and held-out questions of the newest cycles, which new rows must not copy."""
    from appliance.cli.curriculum.catalog import catalog_of
    from appliance.curriculum.kept_files import NIGHTS, recent_questions

    return recent_questions(data_of(context, data), client_of(context, data).cycles(NIGHTS), catalog_of(context, data))


def show_added(
    name: str, kept: Sequence[OwnRow], refused: Sequence[Refused], *, use: Sequence[str], dry_run: bool, as_json: bool
) -> None:
    """Prints which of an owner's rows were accepted and refused; `use` explains how a night comes to ask them."""
    from curriculum.certification.certify import scored_elsewhere

    kinds = Counter(row.spec.kind for row in kept)
    splits = Counter(row.split.value for row in kept)
    if as_json:
        from appliance.cli.documents.tasks import AddedRows, RefusedRow

        show_json(
            AddedRows(
                name=f"own/{name}",
                kept=not dry_run and bool(kept),
                accepted=len(kept),
                kinds=dict(kinds),
                splits=dict(splits),
                refused=tuple(RefusedRow(origin=one.origin, reason=one.reason) for one in refused),
            )
        )
        return
    show_fields(
        [
            (
                "taskset",
                f"own/{name}" + (" (dry run: nothing stored or compared with sealed questions)" if dry_run else ""),
            ),
            ("accepted", f"{len(kept)} of {len(kept) + len(refused)} rows"),
            ("checked as", ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())),
            ("splits", ", ".join(f"{split} {count}" for split, count in splits.most_common())),
            ("refused", len(refused) or ""),
        ]
    )
    by_reason: dict[str, list[str]] = {}
    for one in refused:
        by_reason.setdefault(one.reason, []).append(one.origin)
    groups = sorted(by_reason.items(), key=lambda group: -len(group[1]))
    for reason, origins in groups[:SHOWN_REASONS]:
        more = f" and {len(origins) - SHOWN_ROWS} more" if len(origins) > SHOWN_ROWS else ""
        show_line(f"  {len(origins):>5}  {reason[:REASON]} ({', '.join(origins[:SHOWN_ROWS])}{more})")
    if len(groups) > SHOWN_REASONS:
        show_line(f"  and {len(groups) - SHOWN_REASONS} more reasons: --json lists every row")
    if kept and all(scored_elsewhere(row.spec) for row in kept):
        show_line("scored by a foreign reward: use these tasks to try and to measure; they are never trained on")
    elif kept and not dry_run:
        for line in use:
            show_line(line)
    if kept and not splits["train"]:
        show_line(
            "none is in the training split, so a night has nothing to ask: add rows (three fifths are for training)"
        )
    if kept and not splits["sealed"]:
        show_line("none is sealed, so nothing is evaluated: add more rows (a fifth is sealed)")
