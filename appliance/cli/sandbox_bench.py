"""`assay sandbox bench`: what the runtime costs on this machine, figure by figure.

Progress goes to standard error; the figures, a table or JSON alone, to standard output. Milliseconds end in `_ms`,
memory in `_mib`; `_p95` is the 95th percentile beside a median.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import typer

from appliance.cli.sandbox_place import Place, sessions
from appliance.cli.sandbox_selftest import backends
from appliance.cli.show import show_json, show_table
from appliance.errors import AssayError, ExitCode
from runtime.conformance import figures
from runtime.conformance.check import Violation
from runtime.conformance.figures import Spread
from runtime.conformance.suite import TAKES_SNAPSHOTS
from runtime.profile import BackendName
from runtime.sandbox import Tier

if TYPE_CHECKING:
    from runtime.sandbox import SessionPool

BRANCHES = 8
Values = dict[str, float]


class Step(NamedTuple):
    what: str
    measure: Callable[[SessionPool, int], Values]
    """Takes the pool and how often; gives figures by name."""
    times: int
    quick_times: int
    snapshots: bool = False
    """Whether it needs a backend that takes any."""


def _spread(name: str, found: Spread) -> Values:
    return {f"{name}_ms": found.p50, f"{name}_p95_ms": found.p95}


def _calls(tier: Tier, name: str) -> Callable[[SessionPool, int], Values]:
    def measure(pool: SessionPool, times: int) -> Values:
        found = figures.warm_calls(pool, tier, times)
        return {f"{name}_p50_ms": found.p50, f"{name}_p95_ms": found.p95}

    return measure


def _idle(pool: SessionPool, sandboxes: int) -> Values:
    found = figures.idle(pool, sandboxes)
    return {"idle_mib": round(found.mib, 1), "idle_is_pss": float(found.pss)}


STEPS = (
    Step("python3 -c, for comparison", lambda _, times: _spread("python_c", figures.python_c(times)), 40, 15),
    Step("calls of a shared interpreter", _calls(Tier.SHARED, "call"), 3_000, 500),
    Step("calls of a process", _calls(Tier.PROCESS, "process_call"), 1_000, 200),
    Step("calls of a sandbox", _calls(Tier.SANDBOX, "sandbox_call"), 1_000, 200),
    Step(
        "calls a second",
        lambda pool, times: {"calls_per_second": round(figures.calls_per_second(pool, 4, times))},
        20_000,
        4_000,
    ),
    Step("opening a sandbox", lambda pool, times: _spread("open", figures.opened(pool, times)), 15, 4),
    Step("snapshots", lambda pool, times: _spread("snapshot", figures.snapshots(pool, times)), 20, 5, snapshots=True),
    Step("rollbacks", lambda pool, times: _spread("restore", figures.rollbacks(pool, times)), 20, 5, snapshots=True),
    Step(
        "rollbacks to copies restored ahead",
        lambda pool, times: _spread("restore_ready", figures.rollbacks(pool, times, ready=True)),
        15,
        4,
        snapshots=True,
    ),
    Step(
        f"{BRANCHES} branches",
        lambda pool, times: _spread(f"branch{BRANCHES}", figures.branches(pool, BRANCHES, times)),
        8,
        2,
        snapshots=True,
    ),
    Step("idle sandboxes", _idle, 8, 4),
)


def run_bench(place: Place, backend: str | None, *, quick: bool, as_json: bool) -> ExitCode:
    """Figures of one backend: that of model code unless another is named."""
    chosen = place.settings.backend if backend is None else backends(place, backend)[0]
    values: dict[str, object] = {
        "backend": chosen.value,
        "quick": quick,
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
    }
    started = time.monotonic()
    for found in measured(place, chosen, quick=quick):
        values |= found
    values["seconds"] = round(time.monotonic() - started, 1)
    if as_json:
        show_json(values)
    else:
        show_table(("figure", "value"), values.items(), empty="nothing was measured")
    return ExitCode.OK


def measured(place: Place, backend: BackendName, *, quick: bool) -> Iterator[Values]:
    """Every figure that this backend can have, as soon as it is there."""
    steps = [step for step in STEPS if TAKES_SNAPSHOTS[backend] or not step.snapshots]
    with sessions(place.settings.model_copy(update={"backend": backend, "limits": figures.LIMITS})) as pool:
        for number, step in enumerate(steps, 1):
            typer.echo(f"{number}/{len(steps)}  {step.what}", err=True)
            try:
                yield step.measure(pool, step.quick_times if quick else step.times)
            except Violation as error:
                raise AssayError(
                    f"{step.what} cannot be measured: {error}",
                    "`assay sandbox selftest` says what does not hold here",
                    ExitCode.INFRASTRUCTURE,
                ) from error
