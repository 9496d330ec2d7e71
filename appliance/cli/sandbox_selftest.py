"""`assay sandbox selftest`: the conformance suite on this machine, a line for each area, a paragraph for each failure.

Progress goes to standard error; the result, a table or JSON, to standard output.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from appliance.cli.sandbox_place import Place, backend_named, sessions
from appliance.cli.show import show_json, show_line, show_table
from appliance.client.printable import printable
from appliance.errors import AssayError, ExitCode
from runtime.conformance.check import LIMITS, Check, CheckResult, Outcome
from runtime.conformance.suite import AREAS, chosen, conform
from runtime.profile import BackendName

if TYPE_CHECKING:
    from runtime.settings import RuntimeSettings

ALL = "all"


def run_checks(place: Place, backend: str, *, quick: bool, named: str | None, as_json: bool) -> ExitCode:
    """1 when a check failed. Raises BadParameter for a word that no check has in its name."""
    wanted = backends(place, backend)
    checks = [check for check in chosen(quick=quick) if named is None or named in check.name]
    if not checks:
        raise typer.BadParameter(f"no check has {named!r} in its name", param_hint="--check")
    found = {name: _examined(place.settings, name, checks) for name in wanted}
    failed = sum(result.outcome is Outcome.FAIL for results in found.values() for result in results)
    if as_json:
        show_json(
            {
                "conforms": not failed,
                "backends": {
                    name.value: [result.model_dump(mode="json") for result in results]
                    for name, results in found.items()
                },
            }
        )
    else:
        _show(found, failed)
    return ExitCode.FAILED_VERDICT if failed else ExitCode.OK


def backends(place: Place, name: str) -> tuple[BackendName, ...]:
    """Those to be examined. Raises AssayError (4) for one that the policy gives nothing to run."""
    if name == ALL:
        return place.allowed
    wanted = backend_named(name)
    if wanted not in place.allowed:
        raise AssayError(
            f"the policy gives {wanted} nothing to run",
            f'let the owner set model_code or tools = "{wanted}" in [sandboxes] of the policy',
            ExitCode.REFUSED,
        )
    return (wanted,)


def _examined(settings: RuntimeSettings, backend: BackendName, checks: Sequence[Check]) -> list[CheckResult]:
    """One pool for all checks of a backend, with the limits that the suite is written for."""
    results: list[CheckResult] = []
    own = settings.model_copy(update={"backend": backend, "limits": LIMITS})
    with sessions(own) as pool:
        for number, result in enumerate(conform(pool, backend, checks), 1):
            results.append(result)
            _progress(f"{backend} {number}/{len(checks)}  {result.name}: {result.outcome.value}")
    _progress("")
    return results


def _progress(text: str) -> None:
    """One line that is written over, where there is a terminal; where there is none, nobody waits before it."""
    if sys.stderr.isatty():
        typer.echo(f"\r\x1b[K{text}", nl=False, err=True)


def _show(found: dict[BackendName, list[CheckResult]], failed: int) -> None:
    show_table(
        ("area", *found),
        [
            (area, *(_summary([result for result in results if result.area == area]) for results in found.values()))
            for area in AREAS
        ],
        empty="nothing was checked",
    )
    for backend, results in found.items():
        for result in results:
            if result.outcome is Outcome.FAIL:
                show_line("")
                typer.echo(f"{typer.style('fail', fg=typer.colors.RED)}  {backend}: {result.name}")
                show_line(f"  should hold: {result.asserts}")
                show_line(f"  seen: {printable(result.detail, limit=600)}")
        refused = [result for result in results if result.outcome is Outcome.REFUSED]
        for detail in dict.fromkeys(result.detail for result in refused):
            names = ", ".join(result.name for result in refused if result.detail == detail)
            show_line("")
            typer.echo(f"{typer.style('refused', fg=typer.colors.YELLOW)}  {backend}: {names}")
            show_line(f"  as documented: {printable(detail, limit=600)}")
    show_line("")
    total = sum(len(results) for results in found.values())
    show_line(f"{failed} of {total} checks failed" if failed else f"all {total} checks hold here")


def _summary(results: Sequence[CheckResult]) -> str:
    if not results:
        return "-"
    counts = [(sum(result.outcome is outcome for result in results), outcome.value) for outcome in Outcome]
    told = ", ".join(f"{count} {name}" for count, name in counts if count)
    return f"{told}  {sum(result.seconds for result in results):.1f} s"
