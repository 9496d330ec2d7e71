"""`assay check`: verifies answers, proofs, programs and texts, one or a file of them, without a daemon.

Each kind of check has a command, built from the options that the kind declares.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from appliance.cli.check.options import CheckRun
from appliance.cli.shell.lazy_group import CommandRow, loaded_command
from appliance.cli.shell.model_options import parameter, parameter_name, parameters_of, with_options
from appliance.cli.show.printing import Output, for_people, prints
from verifiers.contract.kinds import Kind, KindOption
from verifiers.registry import KINDS

if TYPE_CHECKING:
    from verifiers.selftest.report import SelfTest


DRAFT = CommandRow("check.draft:draft", "Let a model draft a checklist for your instruction, and check the draft.")


class KindGroup(TyperGroup):
    """Commands of the built-in kinds, and of kinds from admitted distributions when one is named."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), "draft"]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name == "draft":
            return loaded_command(cmd_name, DRAFT)  # it loads the checker of texts
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
    @partial(prints, returned=partial(_returned, kind))
    def check(**values: Any) -> Output[Any]:
        from appliance.cli.check.work import run_check

        return run_check(kind, values)

    return check


def _returned(kind: Kind) -> Any:
    """Returns the output's type of the command for a kind of check."""
    from appliance.cli.check.show import PairResult, PairsSummary
    from verifiers.contract.verdict import Verdict

    types: Any = Annotated[Verdict, "for one submission"] | Annotated[PairsSummary, "with --pairs and --out"]
    types |= Annotated[Iterator[PairResult], "with --pairs alone"]
    if kind.assess is not None:
        report = get_type_hints(kind.assess.load())["return"]
        types |= Annotated[report, "with --assess"]
    return Output[types]


for _kind in KINDS.data.values():
    if _kind.options or _kind.spec_file:
        app.command(_kind.command or _kind.name)(_command(_kind))


@app.command("selftest")
@prints
def selftest(
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
) -> Output[SelfTest | None]:
    """Try every known attack on the verifiers here, and honest controls.

    Exit code 1 if an attack passes or a control does not, 5 if a case could not be run. A kind that this machine cannot
    check at all, as proofs without Lean, is named and does not count, unless nothing else was asked for.

    Example: assay check selftest --verifier answer --jobs 2
    """
    from appliance.cli.check.selftest import catalogue_of, run_cases
    from appliance.cli.check.target import target_for
    from appliance.errors import UsageError

    if catalogue:
        if not for_people():
            raise UsageError("--catalogue: the catalogue has no JSON form", "leave out --json")
        typer.echo(catalogue_of(verifiers or []))
        return Output(None)
    target = target_for((), ready=2)
    return run_cases(target, only=verifiers or [], jobs=jobs or len(os.sched_getaffinity(0)))
