"""`assay curriculum adapter`: worlds and tasksets made from foreign environments.

Invariants: adapter code runs only in sandboxes; its items pass the same filters as an owner's own problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.lazy_group import CommandRow, lazy_group
from appliance.cli.show.printing import Output, prints, prints_without_data, records, show_progress
from common.counting import counted
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from appliance.cli.curriculum.add import AddedRows
    from curriculum.adapters import AdapterSummary
    from curriculum.foreign.given import GivenTask
    from curriculum.foreign.making import SetSummary

COMMANDS = {
    "ls": CommandRow(
        "curriculum.adapters:ls", "List the adapters, and whether the packages of their guests are installed."
    ),
    "install": CommandRow("curriculum.adapters:install", "Install the packages for an adapter's guests."),
    "sets": CommandRow(
        "curriculum.adapters:sets", "List the sets of an adapter's environments, and what decides about answers."
    ),
    "add": CommandRow("curriculum.adapters:add", "Make a taskset from an adapter's environment."),
}
app = lazy_group(COMMANDS, help="Use foreign environments: install them for sandboxes, and make tasksets from them.")

Name = Annotated[str, typer.Argument(help="Name, as listed by `assay curriculum adapter ls`.")]
Package = Annotated[str, typer.Option("--package", help="Your own package, as listed by `adapter ls`.")]


class InstalledAdapter(FrozenModel):
    name: str
    packages: int
    mib: int
    folder: str


@prints_without_data
def ls() -> Output[Sequence[AdapterSummary]]:
    """List the adapters, and whether the packages of their guests are installed."""
    from curriculum.adapters import ADAPTERS, AdapterSummary

    return records(
        [AdapterSummary.of(adapter) for adapter in ADAPTERS.values()],
        ("adapter", "about", "packages", "MiB", "installed", "owner's packages"),
        lambda one: (one.name, one.about, one.packages, one.mib, one.installed or "no", ", ".join(one.owned)),
        empty="no adapter",
    )


@prints_without_data
def install(
    name: Name,
    package: Annotated[
        str,
        typer.Option(
            "--package",
            metavar="PLACE",
            help="Your own package for it: a folder, a wheel, a requirement for pip, or npm:NAME.",
        ),
    ] = "",
    beside: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="REQUIREMENT", help="A requirement beyond those that it declares (repeatable)."),
    ] = None,
) -> Output[InstalledAdapter]:
    """Install the packages for an adapter's guests: exact versions, wheels only, for guests alone.

    Downloads use pip (or npm) with its configuration on this machine. Nothing is downloaded later, when a world is
    opened. The package named by --package comes with the dependencies that it declares, locked with hashes, and runs
    only in sandboxes.

    Example: assay curriculum adapter install mcp --package mcp-server-time
    """
    from curriculum.adapters import adapter_named
    from curriculum.adapters.installing import install_adapter

    adapter = adapter_named(name)
    done = install_adapter(adapter, package, beside or ())
    what = f"{name} with {done.owned}" if done.owned else name
    lines = [f"installed {what}: {counted(done.packages, 'package')}, {done.set.mib} MiB, in {done.set.folder}"]
    if adapter.takes_package and not done.owned:
        lines.append("to add your own package, run this again with --package PLACE")
    pinned = {pin.partition("==")[0]: pin.partition("==")[2] for pin in adapter.pins}
    if other := [f"{one.name} {one.version}" for one in done.lock if pinned.get(one.name, one.version) != one.version]:
        lines.append(f"other versions than the adapter's own: {', '.join(other)[:300]}")
    installed = InstalledAdapter(name=what, packages=done.packages, mib=done.set.mib, folder=str(done.set.folder))
    return Output(installed, lines)


@prints
def sets(name: Name, package: Package = "") -> Output[Sequence[SetSummary]]:
    """List the sets of an adapter's environments, and what decides about answers: a check of ours, or their own score,
    a foreign reward that is never trained on.

    Example: assay curriculum adapter sets reasoning_gym
    """
    from appliance.cli.shell.broker_target import patient_sessions
    from curriculum.foreign.making import SetSummary, list_sets

    with patient_sessions() as pool:
        found = list_sets(pool, name, package)
    return records(
        [SetSummary.of(name, one, levels) for one, levels in found.items()],
        ("set", "own levels", "decided by"),
        lambda one: (one.name, one.levels, one.decided_by),
        empty="no set",
    )


@prints
def add(
    name: Name,
    chosen: Annotated[
        str,
        typer.Argument(
            metavar="SET",
            help="Set, as listed by `assay curriculum adapter sets`; for mcp a file of tasks, or a folder with a "
            "tasks.jsonl.",
        ),
    ],
    package: Package = "",
    tasks: Annotated[
        int | None, typer.Option("--tasks", min=1, max=10_000, help="Tasks of each of five levels (default: 100).")
    ] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", min=0, help="Number of the batch; each has different items (default: 0).")
    ] = None,
    taskset: Annotated[
        str | None, typer.Option("--name", help="Name of the taskset, own/NAME (default: adapter and set).")
    ] = None,
    licence: Annotated[
        str,
        typer.Option("--license", help="Licence of the tasks, stored with them (default: the adapter's, if known)."),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and store nothing.")] = False,
) -> Output[AddedRows]:
    """Make a taskset from an adapter's environment. Items are made in a sandbox and checked like your own problems.
    Items scored only by the environment itself are never trained on.

    Exit code 0 if some items were accepted, 1 if none was.

    With mcp the tasks are yours: rows as in `assay curriculum add`, with `arguments` for the server, `tools` that the
    model may call, or `score`, a tool of the server.

    Example: assay curriculum adapter add reasoning_gym chain_sum --tasks 20
    """
    from appliance.cli.curriculum.add import NewTaskset, RefusedRow
    from appliance.cli.shell.broker_target import patient_sessions
    from curriculum.adapters import adapter_named
    from curriculum.foreign.given import rows_given
    from curriculum.foreign.making import level_of, make_rows, source_of

    adapter, place = adapter_named(name), Path(chosen)
    given = _given(place, tasks, batch) if adapter.tasks_given else None
    added = NewTaskset(Path(f"{name}_{chosen if given is None else package}"), taskset, dry_run=dry_run)

    def say(count: int) -> None:
        show_progress(f"made {count} tasks")

    with patient_sessions() as pool:
        if given is not None:
            made, left_out = rows_given(pool, package, given, say=say)
        else:
            made, left_out = make_rows(
                pool, name, chosen, package=package, tasks=tasks or 100, batch=batch or 0, say=say
            )
    source, known = source_of(name, place.name if given else chosen, package, None if given else batch or 0)
    added.refused += [RefusedRow(origin=one.origin, reason=one.reason) for one in left_out]
    return added.checked(made, licence=licence or known, source=source, level_of=level_of)


def _given(place: Path, tasks: int | None, batch: int | None) -> list[GivenTask]:
    """Reads the owner's tasks from a file, or from the task file in a folder. Raises UsageError, also if `tasks` or
    `batch` is given: neither applies here."""
    from appliance.cli.curriculum.own_files import rows_in
    from appliance.errors import UsageError
    from curriculum.adapters import TASKS
    from curriculum.foreign.given import GivenTask

    if (tasks, batch) != (None, None):
        raise UsageError("--tasks and --batch do not apply to your own tasks", "omit them")
    return [GivenTask(*row) for row in rows_in(place / TASKS if place.is_dir() else place)]
