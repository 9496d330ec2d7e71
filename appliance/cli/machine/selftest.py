"""`assay selftest gpu`: tests that need a GPU, one line each with the observation or the reason for not running.

Progress goes to standard error; the table or JSON to standard output.
"""

from __future__ import annotations

from typing import Annotated

import typer

from appliance.cli.show.printing import Output, prints_without_data, show_lines, show_progress, show_table
from appliance.errors import ExitCode
from appliance.gpu_selftest.run import GPU_ROWS, NO_GPU, GpuResult, run_selftest
from runtime.model import FrozenModel

app = typer.Typer(help="Run the GPU self-test.", no_args_is_help=True)


@app.callback()
def _selftest() -> None: ...


class GpuSelftest(FrozenModel):
    gpus: int
    rows: tuple[GpuResult, ...]


@app.command()
@prints_without_data
def gpu(
    only: Annotated[str, typer.Option("--only", metavar="NAME", help="One row, such as G3 (default: all).")] = "",
) -> Output[GpuSelftest]:
    """Run the GPU tests of engines and learner on this machine's first NVIDIA GPU.

    Exit code 0: every test that ran passed; 1: one failed; 5: none ran, as on a machine without a GPU.

    Example: assay selftest gpu --only G3
    """
    from appliance.inference.vllm.placement import count_gpus, find_environment

    names = [row.name for row in GPU_ROWS]
    if only and only not in names:
        raise typer.BadParameter(f"unknown row {only!r}; use one of {', '.join(names)}", param_hint="--only")
    gpus, environment = count_gpus(), find_environment()
    results = []
    for result in run_selftest(gpus, vllm=environment is not None and environment.package == "vllm", only=only):
        results.append(result)
        show_progress(f"{result.name}: {result.outcome}")
    show_progress("")
    failed = sum(result.outcome == "failed" for result in results)
    ran = sum(result.outcome != "not run" for result in results)

    def show() -> None:
        show_table(
            ("row", "outcome", "observation or purpose", "command"),
            [(one.name, *_outcome(one), one.command) for one in results],
            empty="no row selected",
        )
        show_lines(["", f"{ran} of {len(results)} rows ran, {failed} failed"])

    code = ExitCode.INFRASTRUCTURE if not ran else ExitCode.FAILED_VERDICT if failed else ExitCode.OK
    return Output(GpuSelftest(gpus=gpus, rows=tuple(results)), show, code)


def _outcome(result: GpuResult) -> tuple[str, str]:
    if result.outcome != "not run":
        return result.outcome, result.seen
    if result.seen == NO_GPU:
        return f"not run: {NO_GPU}", f"would show: {result.shows}"
    return "not run", f"{result.seen}; would show: {result.shows}"
