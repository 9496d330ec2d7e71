"""`assay plugins`: distributions that add to the product, those that the policy admits, and their certificates."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from appliance.cli.shell.options import data_folder
from appliance.cli.show.printing import Output, prints, show_fields, show_line, show_progress, show_table
from common.plugins.allowed import allow, pins
from common.plugins.installed import Pin, Plugin, PluginError, candidates, normal_name, read_plugin
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from curriculum.certification.certificate import Certificate

app = typer.Typer(help="List and certify plug-ins: distributions that add to the product.", invoke_without_command=True)
MADE = """
import sys
from curriculum.certification.certificate import made_by
from curriculum.registry import BUILT_IN
print(made_by(BUILT_IN, sys.argv[1]))
"""


class PluginDocument(FrozenModel):
    """One distribution that adds to the product."""

    distribution: str
    version: str = ""
    digest: str = ""
    state: Literal["admitted", "not in the policy", "refused", "unusable"]
    """`refused`: the policy admits it in another form; `unusable`: its installed files cannot be vouched for."""
    problem: str = ""
    adds: tuple[str, ...] = ()
    """What it adds: seam and name."""
    certified: bool = False
    """True if the newest certificate in the audit log is for these very files."""


class PluginCertificate(FrozenModel):
    distribution: str
    version: str
    digest: str
    checks: dict[str, tuple[str, ...]]
    """Faults of each row that it adds."""
    faults: tuple[str, ...]
    signed: str
    """Outcome of signing the certificate into the audit log."""


@app.callback()
@prints
def _plugins(context: typer.Context) -> Output[list[PluginDocument]] | None:
    return _listed() if context.invoked_subcommand is None else None


@app.command("ls")
@prints
def ls() -> Output[list[PluginDocument]]:
    """List installed plug-ins with version, certificate, and whether the policy in force admits them. Imports none.

    Example: assay plugins ls --json
    """
    return _listed()


def _listed() -> Output[list[PluginDocument]]:
    rows = {pin.distribution: pin for pin in pins()}
    certificates = _certificates(data_folder())
    plugins = [_document(name, rows.get(name), certificates) for name in dict.fromkeys([*candidates(), *rows])]

    def show() -> None:
        show_table(
            ("distribution", "version", "state", "certified", "adds"),
            [(one.distribution, one.version, one.state, "yes" if one.certified else "no", ", ".join(one.adds))
             for one in plugins],
            empty="no installed distribution adds to the product",
        )  # fmt: skip
        for one in plugins:
            if one.problem:
                show_line(f"{one.distribution}: {one.problem}")

    return Output(plugins, show)


@app.command("certify")
@prints
def certify(
    distribution: Annotated[str, typer.Argument(help="Name of an installed distribution.")],
) -> Output[PluginCertificate]:
    """Check every row that a plug-in adds, sign the result into the audit log, and print its row for the policy. Its
    code is run, with your rights: certify what you have read, or trust. Exit code 1 if it is not certified.

    Example: assay plugins certify assay-parity
    """
    from appliance.cli.curriculum.certify import record
    from appliance.cli.plugins.checks import checked
    from appliance.cli.shell import broker_target
    from appliance.errors import AssayError
    from curriculum.certification.certificate import Certificate
    from verifiers.checker import Checker

    plugin = read_plugin(normal_name(distribution))
    allow([*(pin for pin in pins() if pin.distribution != plugin.pin.distribution), plugin.pin])
    checks: dict[str, list[str]] = {}
    tasksets: list[Certificate] = []
    with ExitStack() as held:
        pool = None
        with suppress(AssayError):  # a world then says what it lacks
            pool = held.enter_context(broker_target.sessions(broker_target.find().settings))
        checker = held.enter_context(Checker(sessions=pool, workers=1))  # its worker admits the plug-in, a daemon's not
        for row, row_faults in checked(plugin, checker, _made_elsewhere, tasksets):
            show_progress(row)
            checks[row] = row_faults
    show_progress("")
    faults = tuple(f"{row}: {fault}" for row, those in checks.items() for fault in those)
    whole = Certificate(taskset=_entry(plugin.pin), made=_made(plugin.pin), seeds=0, tasks=len(checks), faults=faults)
    signed = [record(one) for one in (*tasksets, whole)][-1]
    document = PluginCertificate(
        **plugin.pin._asdict(),
        checks={row: tuple(those) for row, those in checks.items()},
        faults=faults,
        signed=signed,
    )

    def show() -> None:
        show_fields([(row, "; ".join(those) or "passed") for row, those in checks.items()])
        show_line(f"certified: {'no' if faults else 'yes'}; signed: {signed}")
        if not faults:
            typer.echo(f"\nTo admit it, add this to the policy, sign it and restart the daemon:\n\n{_row(plugin.pin)}")

    return Output(document, show, 1 if faults else 0)


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


def _document(name: str, row: Pin | None, certificates: dict[str, str]) -> PluginDocument:
    """Describes a plug-in that the policy admits as `row`; one that cannot be vouched for has a problem and no
    version."""
    try:
        plugin: Plugin = read_plugin(name)
    except PluginError as error:
        state = "refused" if row else "unusable"
        return PluginDocument(distribution=name, state=state, problem=f"{error}: {error.hint}")
    state, problem = ("admitted" if row == plugin.pin else "refused", "") if row else ("not in the policy", "")
    if state == "refused":
        problem = f"the policy admits {row}; installed is {plugin.pin}"
    return PluginDocument(
        **plugin.pin._asdict(),
        state=state,
        problem=problem,
        adds=tuple(f"{seam} {row}" for seam in plugin.rows for row in plugin.names(seam)),
        certified=certificates.get(_entry(plugin.pin)) == _made(plugin.pin),
    )
