"""`assay sandbox selftest` and `bench`: the conformance suite and the runtime's costs on this machine.

Progress goes to standard error; the table or JSON to standard output. Figures in milliseconds end in `_ms`, memory in
`_mib`; `_p95` is the 95th percentile beside a median.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import RootModel

from appliance.cli.sandbox.options import Backend
from appliance.cli.shell.broker_target import BrokerTarget, backend_named, find, sessions
from appliance.cli.show.printing import Output, prints, show_line, show_progress, show_table
from appliance.config import places
from appliance.errors import AssayError, ExitCode
from appliance.text.printable import printable
from common.counting import counted
from runtime.conformance import (
    AREAS,
    BENCH_LIMITS,
    LIMITS,
    CheckOutcome,
    CheckResult,
    ConformanceCheck,
    Violation,
    bench_steps,
    chosen,
    conform,
)
from runtime.model import FrozenModel
from runtime.profile import BackendName

if TYPE_CHECKING:
    from runtime.settings import RuntimeSettings

ALL = "all"
Quick = Annotated[bool, typer.Option("--quick", help="Run the short form.")]


class ConformanceDocument(FrozenModel):
    conforms: bool
    backends: dict[str, tuple[CheckResult, ...]]


class BenchDocument(RootModel[dict[str, str | bool | int | float | None]]):
    """Figures by name: milliseconds end in `_ms`, memory in `_mib`; `_p95` is the 95th percentile."""


@prints
def selftest(
    backend: Annotated[str, typer.Option("--backend", help="gvisor, nsjail, or all that the policy uses.")] = "all",
    quick: Quick = False,
    named: Annotated[
        str | None, typer.Option("--check", metavar="TEXT", help="Only checks whose name contains this.")
    ] = None,
) -> Output[ConformanceDocument]:
    """Test that sandboxes hold here, with every check that a backend must pass. Exit code 1 if one fails.

    Example: assay sandbox selftest --quick
    """
    return run_checks(find(ready=1), backend, quick=quick, named=named)


def run_checks(target: BrokerTarget, backend: str, *, quick: bool, named: str | None) -> Output[ConformanceDocument]:
    """Runs the sandbox conformance checks; exit code 1 if one failed. Raises BadParameter if no check's
    name contains `named`."""
    wanted = backends(target, backend)
    checks = [check for check in chosen(quick=quick) if named is None or named in check.name]
    if not checks:
        raise typer.BadParameter(f"no check's name contains {named!r}", param_hint="--check")
    found = {name: _examined(target.settings, name, checks) for name in wanted}
    failed = sum(result.outcome is CheckOutcome.FAIL for results in found.values() for result in results)
    by_backend = {name.value: tuple(results) for name, results in found.items()}
    code = ExitCode.FAILED_VERDICT if failed else ExitCode.OK
    return Output(ConformanceDocument(conforms=not failed, backends=by_backend), lambda: _show(found, failed), code)


def backends(target: BrokerTarget, name: str) -> tuple[BackendName, ...]:
    """Returns the sandbox backends that this name selects. Raises AssayError (4) for one that the policy does not
    use."""
    if name == ALL:
        return target.allowed
    wanted = backend_named(name)
    if wanted not in target.allowed:
        raise AssayError(
            f"the policy does not use {wanted}",
            f'let the owner set model_code or tools = "{wanted}" in [sandboxes] of the policy',
            ExitCode.REFUSED,
        )
    return (wanted,)


@prints
def bench(backend: Backend = None, quick: Quick = False) -> Output[BenchDocument]:
    """Measure calls, snapshots, rollbacks, branches and idle sandboxes here, in under a minute.

    Example: assay sandbox bench --quick
    """
    return run_bench(find(ready=8), backend, quick=quick)


def run_bench(target: BrokerTarget, backend: str | None, *, quick: bool) -> Output[BenchDocument]:
    """Measures the costs of one sandbox backend, by default that of model code. Raises AssayError (4) if the
    policy's bounds are too low."""
    chosen = target.settings.backend if backend is None else backends(target, backend)[0]
    target.require_within(BENCH_LIMITS, dict.fromkeys(places.BOUNDED, "assay sandbox bench"))
    values: dict[str, object] = {
        "backend": chosen.value,
        "quick": quick,
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
    }
    started = time.monotonic()
    steps = bench_steps(chosen)
    with sessions(target.settings.model_copy(update={"backend": chosen, "limits": BENCH_LIMITS})) as pool:
        for number, step in enumerate(steps, 1):
            typer.echo(f"{number}/{len(steps)}  {step.what}", err=True)
            try:
                values |= step.figures(pool, quick=quick)
            except Violation as error:
                raise AssayError(
                    f"{step.what} cannot be measured: {error}",
                    "find the failing checks with `assay sandbox selftest`",
                    ExitCode.INFRASTRUCTURE,
                ) from error
    values["seconds"] = round(time.monotonic() - started, 1)
    document = BenchDocument.model_validate(values)
    return Output(document, lambda: show_table(("figure", "value"), values.items(), empty="nothing was measured"))


def _examined(settings: RuntimeSettings, backend: BackendName, checks: Sequence[ConformanceCheck]) -> list[CheckResult]:
    """Runs these conformance checks of a sandbox backend in one pool, with the limits that the suite is written for."""
    results: list[CheckResult] = []
    own = settings.model_copy(update={"backend": backend, "limits": LIMITS})
    with sessions(own) as pool:
        for number, result in enumerate(conform(pool, backend, checks), 1):
            results.append(result)
            show_progress(f"{backend} {number}/{len(checks)}  {result.name}: {result.outcome.value}")
    show_progress("")
    return results


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
            if result.outcome is CheckOutcome.FAIL:
                show_line("")
                typer.echo(f"{typer.style('fail', fg=typer.colors.RED)}  {backend}: {result.name}")
                show_line(f"  should hold: {result.asserts}")
                show_line(f"  seen: {printable(result.detail, limit=600)}")
        refused = [result for result in results if result.outcome is CheckOutcome.REFUSED]
        for detail in dict.fromkeys(result.detail for result in refused):
            names = ", ".join(result.name for result in refused if result.detail == detail)
            show_line("")
            typer.echo(f"{typer.style('refused', fg=typer.colors.YELLOW)}  {backend}: {names}")
            show_line(f"  as documented: {printable(detail, limit=600)}")
    show_line("")
    outcomes = [result.outcome for results in found.values() for result in results]
    held, left = outcomes.count(CheckOutcome.PASS), outcomes.count(CheckOutcome.REFUSED)
    hold = f"all {held} checks passed" + (f", and {left} are refused as documented" if left else "")
    show_line(f"{failed} of {counted(len(outcomes), 'check')} failed" if failed else hold)


def _summary(results: Sequence[CheckResult]) -> str:
    if not results:
        return "-"
    counts = [(sum(result.outcome is outcome for result in results), outcome.value) for outcome in CheckOutcome]
    summary = ", ".join(f"{count} {name}" for count, name in counts if count)
    return f"{summary}  {sum(result.seconds for result in results):.1f} s"
