"""`assay check`: verifies answers, proofs, programs and texts, one or a file of them, without a daemon.

Each kind of check has a command, built from the options that the kind declares.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from appliance.cli.check.draft import draft
from appliance.cli.check.options import CheckRun
from appliance.cli.shell.model_options import parameter, parameter_name, parameters_of, with_options
from appliance.cli.shell.options import Data, Json
from verifiers.contract.kinds import Kind, KindOption
from verifiers.registry import KINDS


class KindGroup(TyperGroup):
    """Commands of the built-in kinds, and of kinds from admitted distributions when one is named."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if "/" in cmd_name and cmd_name in KINDS:
            holder = typer.Typer()
            holder.callback()(lambda: None)
            holder.command(cmd_name)(_command(KINDS[cmd_name]))
            return typer.main.get_group(holder).commands[cmd_name]
        return super().get_command(ctx, cmd_name)


app = typer.Typer(help="Verify answers, proofs, programs and texts.", no_args_is_help=True, cls=KindGroup)

TYPES: dict[str, Any] = {"text": str | None, "texts": list[str] | None, "file": str | None, "folder": Path | None}
ASSESS = parameter("assess", bool, default=False, help="Test the check itself: does it tell right from wrong?")


def _parameter(option: KindOption) -> inspect.Parameter:
    settings: dict[str, Any] = {"flag": option.flag, "help": option.help, "metavar": option.metavar or None}
    if option.takes == "nothing":
        return parameter(parameter_name(option.flag), bool, default=False, **settings)
    return parameter(parameter_name(option.flag), TYPES[option.takes], **settings)


def _command(kind: Kind) -> Callable[..., None]:
    given = kind.submission
    submission = parameter(
        parameter_name(given.flag), str | None, flag=given.flag, metavar=given.metavar, help=given.help
    )
    own = [_parameter(option) for option in (*kind.options, *kind.checker_options)]

    @with_options(
        [submission, *own, *([ASSESS] if kind.assess else []), *parameters_of(CheckRun)],
        doc=f"{kind.about}\n\nExample: {kind.example}" if kind.example else kind.about,
    )
    def check(context: typer.Context, data: Data = None, as_json: Json = False, **values: Any) -> None:
        from appliance.cli.check.work import run_check

        raise typer.Exit(run_check(context, data, kind, values, as_json=as_json))

    return check


for _kind in KINDS.data.values():
    if _kind.options or _kind.spec_file:
        app.command(_kind.command or _kind.name)(_command(_kind))


app.command("draft")(draft)


@app.command("selftest")
def selftest(
    context: typer.Context,
    verifiers: Annotated[
        list[str] | None,
        typer.Option("--verifier", metavar="NAME", help="Only this kind, such as answer or program (repeatable)."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, max=256, help="Concurrent cases (default: the number of processors).")
    ] = None,
    catalogue: Annotated[
        bool, typer.Option("--catalogue", help="Print the attacks as Markdown and run none of them.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Try every known attack on the verifiers here, and honest controls.

    Exit code 1 if an attack passes or a control does not, 5 if a case could not be run.

    Example: assay check selftest --verifier answer --jobs 2
    """
    import os

    from appliance.cli.check.selftest import run_cases, show_catalogue
    from appliance.cli.check.target import target_for

    if catalogue:
        show_catalogue(verifiers or [], as_json=as_json)
        return
    target = target_for(context, data, (), ready=2)
    jobs = jobs or len(os.sched_getaffinity(0))
    raise typer.Exit(run_cases(target, only=verifiers or [], jobs=jobs, as_json=as_json))
