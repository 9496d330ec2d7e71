"""`assay curriculum add` and `rm`: turns the owner's problems into a taskset, and removes it.

Invariants: every row is checked here before the daemon stores any. Refused rows are listed with their reason. With
--dry-run nothing is stored.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import api_client, data_folder, read_settings
from appliance.cli.show.printing import Output, prints, show_fields, show_line, show_lines, show_progress
from appliance.errors import ExitCode, UsageError
from appliance.settings.config_layers import user_file
from appliance.text.printable import printable
from common.counting import counted
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from appliance.client.messages import OwnTasksetView
    from appliance.config.configuration import Settings
    from curriculum.contract.task import Task
    from curriculum.own.columns import OwnKind
    from curriculum.own.rows import OwnRow


KINDS = ("auto", "answer", "program", "lean", "smt", "checklist", "exact")
TASKS = 40
"""Most tasks of a repository, unless asked for more or fewer."""
SHOWN_ROWS = 5
SHOWN_REASONS = 12
SHOWN_ACCEPTED = 3
QUESTION, ANSWER = 90, 60
"""Maximum characters shown of an accepted row."""
REASON, NOTE = 160, 400
ENVELOPE = 10_000
"""Maximum bytes stored beside the rows."""
KEEP_SECONDS = 600.0
"""Timeout for the daemon to read and store the rows, in seconds."""


class RefusedRow(FrozenModel):
    origin: str
    reason: str


class AddedRows(FrozenModel):
    name: str
    """Name of the taskset."""
    kept: bool
    accepted: int
    kinds: dict[str, int]
    splits: dict[str, int]
    read_as: dict[str, int]
    """Number of rows by published layout, with the columns that it reads and those that it leaves out."""
    lacks: str
    """Sentence on the rows that the policy lacks to judge it alone; empty if it lacks none."""
    refused: tuple[RefusedRow, ...]


@prints
def add(
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="JSON lines, JSON, CSV, Parquet, a Harbor task folder, or a folder of these."
        ),
    ] = None,
    repo: Annotated[
        Path | None,
        typer.Option("--repo", metavar="PATH", help="Instead of FILE: a git repository or a source distribution."),
    ] = None,
    tasks: Annotated[
        int | None, typer.Option("--tasks", min=1, help=f"Most tasks to make of a repository (default: {TASKS}).")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the taskset, own/NAME (default: the file's name).")
    ] = None,
    licence: Annotated[str, typer.Option("--license", help="Licence of the problems, stored with them.")] = "",
    source: Annotated[str, typer.Option("--source", help="Source of the problems (default: the file's name).")] = "",
    kind: Annotated[str, typer.Option("--kind", help=f"Kind of check: {', '.join(KINDS)}.")] = "auto",
    without_network: Annotated[
        bool, typer.Option("--without-network", help="Also take Harbor folders that ask for a network, without one.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and store nothing.")] = False,
) -> Output[AddedRows]:
    """Add your own problems: each is checked, and the valid ones become the taskset own/NAME. What Harbor task folders
    install is fetched once, and their solutions, which show that they can be solved, run in a sandbox.

    Of a repository in Python with tests, tasks are made: faults to repair, and functions to write. The same command
    resumes an interrupted run.

    Exit code 0 if some rows were accepted, 1 if none was.

    Example: assay curriculum add mine.jsonl --name sums --dry-run
    """
    from curriculum.own.harbor import folders_in

    if (place is None) == (repo is None):
        raise UsageError("name either a FILE or a repository", "give a file, or --repo PATH")
    if repo is not None:
        return _of_repository(repo, name, licence, source, most=tasks or TASKS, dry_run=dry_run)
    assert place is not None
    if tasks is not None:
        raise UsageError("--tasks is for a repository", "omit it, or name one with --repo")
    if kind not in KINDS:
        raise UsageError(f"--kind: unknown kind {kind!r}", f"use one of {', '.join(KINDS)}")
    folders = folders_in(place)
    if without_network and not folders:
        raise UsageError("--without-network is for Harbor task folders", "omit it")
    if folders and kind != "auto":
        raise UsageError("a Harbor task folder has its own check", "omit --kind")
    added = NewTaskset(place, name, dry_run=dry_run)
    if folders:
        from appliance.cli.curriculum.own_files import harbor_rows

        rows, left_out = harbor_rows(folders, without_network=without_network)
        added.refused += [RefusedRow(origin=origin, reason=reason) for origin, reason in left_out]
    else:
        rows = list(not_contradicted(list(problems_in(place, kind, added.refused, added.notes)), added.refused))
    return added.checked(rows, licence=licence, source=source or place.name)


def _of_repository(
    repo: Path, name: str | None, licence: str, source: str, *, most: int, dry_run: bool
) -> Output[AddedRows]:
    from appliance.cli.curriculum.repositories import repository_rows

    stem = Path(re.sub(r"(\.tar)?\.\w+$|[-.]\d.*$", "", repo.resolve().name))
    added = NewTaskset(stem, name, dry_run=dry_run)
    made = repository_rows(repo, licence=licence, most=most)
    added.notes[made.report] += len(made.rows)
    return added.checked(made.rows, licence=made.licence, source=source or repo.name)


@prints
def rm(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A taskset of yours, own/NAME.")],
) -> Output[OwnTasksetView]:
    """Remove a taskset of your own. Exit code 4 while a cycle uses it.

    Example: assay curriculum rm own/sums
    """
    removed = api_client().remove_taskset(name)
    return Output(removed, f"{removed.name} is removed")


class NewTaskset:
    """A taskset in the making: its name, the client that stores it, and refused rows."""

    def __init__(self, place: Path, name: str | None, *, dry_run: bool) -> None:
        """Prepares a taskset for the rows in `place`, before any check. Raises UsageError for a taken or invalid
        name."""
        from appliance.client.own_tasks import JOBS, SESSIONS
        from appliance.curriculum.own_files import names_in
        from curriculum.registry import TASKSETS

        self._name, self._dry_run = name_of(place, name), dry_run
        if self._name in (JOBS, SESSIONS, *TASKSETS):
            what = "a built-in taskset" if self._name in TASKSETS else "reserved for your collected work"
            raise UsageError(f"{self._name} is {what}", "choose another --name")
        own = f"own/{self._name}"
        if not dry_run and own in names_in(data_folder()):
            raise UsageError(f"{own} already exists", f"give another --name, or run `assay curriculum rm {own}` first")
        self._keeper = api_client(timeout_seconds=KEEP_SECONDS)
        self._sealed = [] if dry_run else sealed_questions()
        self.refused: list[RefusedRow] = []
        self.notes: Counter[str] = Counter()

    def checked(
        self, rows: Sequence[OwnRow], *, licence: str, source: str, level_of: Callable[[OwnRow], float] | None = None
    ) -> Output[AddedRows]:
        """Checks the rows, stores the accepted ones, and returns the result; exit code 1 if none was accepted."""
        from appliance.cli.check.target import target_for
        from appliance.curriculum.own_files import names_in
        from appliance.curriculum.own_sizes import rows_missing
        from appliance.settings.policy_files import read_policy
        from curriculum.own.rows import with_levels
        from verifiers.registry import kind_of

        accepted: list[OwnRow] = []
        if rows:
            with target_for({kind_of(row.spec) for row in rows}).checker(jobs=2) as checker:
                accepted = list(let_through(checker, rows, self._sealed, self.refused))
        show_progress("")
        kept = with_levels(accepted, *([level_of] if level_of else [])) if accepted else ()
        if kept and not self._dry_run:
            from curriculum.own.taskset import OwnContent

            content = OwnContent(name=self._name, licence=licence, source=source, added="", rows=kept)
            self._keeper.add_taskset(content)
        document = AddedRows(
            name=f"own/{self._name}",
            kept=not self._dry_run and bool(kept),
            accepted=len(kept),
            kinds=dict(Counter(row.spec.kind for row in kept)),
            splits=dict(splits := Counter(row.split.value for row in kept)),
            read_as=dict(self.notes.most_common()),
            lacks=rows_missing(splits["sealed"], read_policy(data_folder())[0]) if kept else "",
            refused=tuple(self.refused),
        )
        use = how_to_train(read_settings(), document.name, names_in(data_folder()))
        code = ExitCode.OK if kept else ExitCode.FAILED_VERDICT
        return Output(document, lambda: _show_added(document, kept, use, dry_run=self._dry_run), code)


def name_of(place: Path, name: str | None) -> str:
    from curriculum.names import NAME

    named = (name if name is not None else re.sub(r"[^a-z0-9]+", "_", place.stem.lower()).strip("_")).removeprefix(
        "own/"
    )
    if not re.fullmatch(NAME, named):
        raise UsageError(f"invalid taskset name {named!r}", "give --name in small letters, digits and _")
    return named


def problems_in(place: Path, kind: str, refused: list[RefusedRow], notes: Counter[str]) -> Iterator[OwnRow]:
    """Yields the rows of a file that are problems with a check; adds the others to `refused`, and how published layouts
    are read to `notes`. Raises UsageError, also for too many rows, before hours are spent on checks."""
    from typing import cast

    from appliance.cli.curriculum.own_files import rows_in
    from curriculum.own.columns import RowError, row_of
    from curriculum.own.layouts import published
    from curriculum.own.taskset import MOST_BYTES, MOST_ROWS

    size = ENVELOPE
    for number, row in enumerate(rows_in(place), 1):
        if number > MOST_ROWS:
            raise UsageError(f"{place} has more than {MOST_ROWS:,} rows", "split it")
        try:
            if row.values is None:
                raise RowError(row.problem)
            layout = published(row.values)
            if layout is None:
                found = row_of(row.values, cast("OwnKind", kind), row.origin)
            else:
                found = row_of(layout.columns, cast("OwnKind", kind), f"{row.origin} {layout.identity}".strip())
                notes[layout.note if layout.note in notes or len(notes) < SHOWN_REASONS else "further columns"] += 1
            size += len(found.model_dump_json().encode()) + 1
            if size > MOST_BYTES:
                raise UsageError(f"the problems of {place} take more than {MOST_BYTES >> 20} MiB", "split it")
            yield found
        except RowError as error:
            refused.append(RefusedRow(origin=row.origin, reason=str(error)))


def not_contradicted(rows: Sequence[OwnRow], refused: list[RefusedRow]) -> Iterator[OwnRow]:
    """Yields the rows without those whose question occurs with different expected answers: of these, none is known to
    be right, and all are added to `refused`. Other checks are decided by their references."""
    answers: dict[str, set[str]] = {}
    for row in rows:
        if row.spec.kind in ("answer", "exact"):
            answers.setdefault(row.key, set()).add(row.spec.model_dump_json())
    for row in rows:
        if len(answers.get(row.key, ())) < 2:
            yield row
        else:
            refused.append(RefusedRow(origin=row.origin, reason="its question exists already, with another answer"))


def let_through(
    checker: object, rows: Sequence[OwnRow], sealed: Sequence[Task], refused: list[RefusedRow]
) -> Iterator[OwnRow]:
    """Yields the owner's rows that pass all filters and whose check is sound; adds the others to `refused`, with
    reasons."""
    from typing import cast

    from appliance.cli.check.own_rows import ChecksMany, checked
    from appliance.cli.curriculum.catalog import catalog_of
    from curriculum.names import OWN
    from curriculum.own.harbor import not_sealed, not_there, refusal
    from curriculum.own.taskset import OwnTaskset, forms_in, spread

    catalog = catalog_of()
    owned = catalog.domains.get(OWN, {})
    known = {row.key for taskset in owned.values() if isinstance(taskset, OwnTaskset) for row in taskset.content.rows}
    beside = [*forms_in(catalog, owned), *(row.question for row in spread(rows))]
    there = not_there(known)
    doors = (not_sealed(sealed, beside), there)

    def let_in() -> Iterator[OwnRow]:
        for row in rows:
            reason = refusal(row, doors)
            if reason:
                refused.append(RefusedRow(origin=row.origin, reason=reason))
            else:
                yield row

    def progress(done: int) -> None:
        show_progress(f"checked {done} of {len(rows)} rows")

    for row, reason in checked(cast(ChecksMany, checker), let_in(), progress):
        if reason := reason or there(row):  # a row whose check does not hold stands in no other's way
            refused.append(RefusedRow(origin=row.origin, reason=reason))
        else:
            known.add(row.key)
            yield row


def sealed_questions() -> list[Task]:
    """Returns the sealed and held-out questions of the newest cycles, which new rows must not copy."""
    from appliance.cli.curriculum.catalog import catalog_of
    from appliance.curriculum.kept_files import NIGHTS, recent_questions

    return recent_questions(data_folder(), api_client().cycles(NIGHTS), catalog_of())


def _show_added(added: AddedRows, kept: Sequence[OwnRow], use: Sequence[str], *, dry_run: bool) -> None:
    """Prints which of an owner's rows were accepted and refused; `use` explains how a night comes to ask them."""
    from curriculum.certification.certify import scored_elsewhere

    refused, count = added.refused, added.accepted
    kinds, splits = Counter(added.kinds), Counter(added.splits)
    show_fields(
        [
            ("taskset", added.name + " (dry run: nothing stored or compared with sealed questions)" * dry_run),
            ("accepted", f"{count} of {counted(count + len(refused), 'row')}"),
            ("checked as", ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())),
            ("splits", ", ".join(f"{split} {number}" for split, number in splits.most_common())),
            ("refused", len(refused) or ""),
        ]
    )
    for note, rows in added.read_as.items():
        show_line(f"read as {printable(note, limit=NOTE)} ({counted(rows, 'row')})")
    if kept:
        show_line("accepted, as read:")
    for row in kept[:SHOWN_ACCEPTED]:
        answer = _on_one_line(row.answer, ANSWER) or f"checked as {row.spec.kind}, no reference answer"
        show_line(f"  {_on_one_line(row.question, QUESTION)} -> {answer}")
    if count > SHOWN_ACCEPTED:
        show_line(f"  and {count - SHOWN_ACCEPTED} more")
    if refused:
        show_line("refused:")
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
        show_lines(use)
    if kept and not splits["train"]:
        show_line(
            "none is in the training split, so a night has nothing to ask: add rows (three fifths are for training)"
        )
    if added.lacks:
        show_line(added.lacks)


def _on_one_line(text: str, limit: int) -> str:
    return printable(" ".join(text.split()), limit=limit)


KEY = "recipe.tasksets"


def how_to_train(settings: Settings, name: str, stored: Iterable[str] = ()) -> list[str]:
    """Returns lines that tell a person how a night comes to ask an owner's taskset. `name` is the taskset's,
    own/NAME; `stored` are all the owner's, so that adding several leads to one list with all of them."""
    from appliance.client.own_tasks import JOBS, SESSIONS

    origin = settings.origins()[KEY]
    place = str(user_file()) if origin == "default" else origin
    collected = (f"own/{JOBS}", f"own/{SESSIONS}", name)
    others = [one for one in stored if one not in settings.recipe.tasksets and one not in collected]
    wanted = json.dumps([*(one for one in settings.recipe.tasksets if one != name), *others, name])
    return [
        f"no night asks it yet. First certify it: `assay curriculum certify {' '.join([*others, name])}`",
        f"then write into {place}, and restart the daemon:",
        "  [recipe]",
        f"  tasksets = {wanted}",
        f"the list replaces the present one{' and has all your tasksets' * bool(others)}: keep or remove the others",
        f"inspect it: `assay curriculum show {name}`",
    ]
