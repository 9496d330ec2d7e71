"""`assay curriculum adapter`: what worlds can be made of that is not ours."""

from __future__ import annotations

from typing import Annotated

import typer

from appliance.cli.lazy_group import CommandRow, lazy_group
from appliance.cli.options import Json
from appliance.cli.show import show_line, show_records

COMMANDS = {
    "ls": CommandRow("curriculum_adapters:ls", "List the adapters, and whether the packages of their guests are here."),
    "install": CommandRow("curriculum_adapters:install", "Install the packages that an adapter's guests have."),
}
app = lazy_group(COMMANDS, help="Install packages that some worlds need, for sandboxes alone.")


def ls(as_json: Json = False) -> None:
    """List the adapters, and whether the packages of their guests are here."""
    from curriculum.adapters import ADAPTERS, AdapterSummary

    rows = [AdapterSummary.of(adapter) for adapter in ADAPTERS.values()]
    show_records(
        rows,
        ("adapter", "about", "packages", "installed"),
        lambda one: (one.name, one.about, one.packages, one.installed or "no"),
        empty="there is no adapter",
        as_json=as_json,
    )


def install(name: Annotated[str, typer.Argument(help="Its name, as `assay curriculum adapter ls` has it.")]) -> None:
    """Install the packages that an adapter's guests have: exact versions, wheels only, for guests alone.

    pip fetches them with the configuration that it has here. Nothing is fetched later, when a world is opened.
    """
    from curriculum.adapters import adapter_named
    from runtime.package_sets import install_set

    adapter = adapter_named(name)
    found = install_set(adapter.name, adapter.pins, adapter.imports)
    show_line(f"installed {adapter.name}: {len(adapter.pins)} packages, {found.mib} MiB, in {found.folder}")
