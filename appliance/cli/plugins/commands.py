"""`assay plugins`: distributions that add to the product, those that the policy admits, and their certificates."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import Data, Json, data_of
from common.plugins.allowed import admitted, allow, listed
from common.plugins.installed import Pin, Plugin, PluginError, candidates, normal_name, read_plugin

if TYPE_CHECKING:
    from appliance.cli.documents.data import PluginDocument
    from curriculum.certification.certificate import Certificate

app = typer.Typer(help="List and certify plug-ins: distributions that add to the product.", invoke_without_command=True)
MADE = """
import sys
from curriculum.certification.certificate import made_by
from curriculum.registry import BUILT_IN
print(made_by(BUILT_IN, sys.argv[1]))
"""


@app.callback()
def _plugins(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        ls(context)


@app.command("ls")
def ls(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """List installed plug-ins with version, certificate, and whether the policy in force admits them. Imports none.

    Example: assay plugins ls --json
    """
    from appliance.cli.show.printing import show_line, show_records

    pins = [row.partition("==")[0] for row in listed().split()]
    certificates = _certificates(data_of(context, data))
    found = [_document(name, certificates) for name in dict.fromkeys([*candidates(), *pins])]
    show_records(
        found,
        ("distribution", "version", "state", "certified", "adds"),
        lambda one: (one.distribution, one.version, one.state, "yes" if one.certified else "no", ", ".join(one.adds)),
        empty="no installed distribution adds to the product",
        as_json=as_json,
    )
    for one in found if not as_json else ():
        if one.problem:
            show_line(f"{one.distribution}: {one.problem}")


@app.command("certify")
def certify(
    context: typer.Context,
    distribution: Annotated[str, typer.Argument(help="Name of an installed distribution.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Check every row that a plug-in adds, sign the result into the audit log, and print its row for the policy. Its
    code is run, with your rights: certify what you have read, or trust. Exit code 1 if it is not certified.

    Example: assay plugins certify assay-parity
    """
    from appliance.cli.curriculum.certify import record
    from appliance.cli.documents.data import PluginCertificate
    from appliance.cli.plugins.checks import checked
    from appliance.cli.shell import broker_target
    from appliance.cli.show.printing import show_fields, show_json, show_line, show_progress
    from appliance.errors import AssayError
    from curriculum.certification.certificate import Certificate
    from verifiers.checker import Checker

    plugin = read_plugin(normal_name(distribution))
    others = (one.pin for name, one in admitted().items() if name != plugin.pin.distribution)
    allow([*others, plugin.pin])
    found: dict[str, list[str]] = {}
    tasksets: list[Certificate] = []
    with ExitStack() as held:
        pool = None
        with suppress(AssayError):  # a world then says what it lacks
            pool = held.enter_context(broker_target.sessions(broker_target.find(context, data).settings))
        checker = held.enter_context(Checker(sessions=pool, workers=1))  # its worker admits the plug-in, a daemon's not
        for row, row_faults in checked(plugin, checker, _made_elsewhere, tasksets):
            show_progress(row)
            found[row] = row_faults
    show_progress("")
    faults = tuple(f"{row}: {fault}" for row, those in found.items() for fault in those)
    whole = Certificate(taskset=_entry(plugin.pin), made=_made(plugin.pin), seeds=0, tasks=len(found), faults=faults)
    signed = [record(context, data, one) for one in (*tasksets, whole)][-1]
    document = PluginCertificate(
        **plugin.pin._asdict(), checks={row: tuple(those) for row, those in found.items()}, faults=faults, signed=signed
    )
    if as_json:
        show_json(document)
    else:
        show_fields([(row, "; ".join(those) or "passed") for row, those in found.items()])
        show_line(f"certified: {'no' if faults else 'yes'}; signed: {signed}")
        if not faults:
            typer.echo(f"\nTo admit it, add this to the policy, sign it and restart the daemon:\n\n{_row(plugin.pin)}")
    raise typer.Exit(1 if faults else 0)


def _row(pin: Pin) -> str:
    return "\n".join(["[[plugins]]", *(f'{name} = "{value}"' for name, value in pin._asdict().items())])


def _entry(pin: Pin) -> str:
    """Returns the subject of a plug-in's certificate in the audit log, which is no taskset's name."""
    return f"plugin:{pin.distribution}"


def _made(pin: Pin) -> str:
    return f"{pin.version}:{pin.digest}"


def _made_elsewhere(taskset: str) -> str:
    """Returns the version and digest of a taskset's tasks as another process makes them; empty if it fails."""
    ran = subprocess.run([sys.executable, "-I", "-c", MADE, taskset], capture_output=True, timeout=600, check=False)
    return ran.stdout.decode().strip()


def _certificates(data: Path) -> dict[str, str]:
    """Returns the certificates in a data folder's audit log, unchecked; empty without a log."""
    from appliance.audit.log import log_file
    from appliance.cli.audit.read import lines_in
    from appliance.errors import UsageError
    from policies import audit
    from policies.in_force import InForce

    state = InForce()
    for line in lines_in(log_file(data)) if log_file(data).exists() else ():
        try:
            state.add(audit.read(line))
        except ValueError as error:
            raise UsageError(f"the audit log cannot be read: {error}", "run `assay audit verify`") from error
    return state.certificates


def _document(name: str, certificates: dict[str, str]) -> PluginDocument:
    """Describes a plug-in; one that cannot be vouched for has a problem and no version."""
    from appliance.cli.documents.data import PluginDocument

    rows = {row.partition("==")[0]: row for row in listed().split()}
    try:
        plugin: Plugin = read_plugin(name)
    except PluginError as error:
        state = "refused" if name in rows else "unusable"
        return PluginDocument(distribution=name, state=state, problem=f"{error}: {error.hint}")
    fits = rows.get(name) == str(plugin.pin)
    state, problem = ("admitted" if fits else "refused", "") if name in rows else ("not in the policy", "")
    if state == "refused":
        problem = f"the policy admits {rows[name]}; installed is {plugin.pin}"
    return PluginDocument(
        **plugin.pin._asdict(),
        state=state,
        problem=problem,
        adds=tuple(f"{seam} {row}" for seam in plugin.rows for row in plugin.names(seam)),
        certified=certificates.get(_entry(plugin.pin)) == _made(plugin.pin),
    )
