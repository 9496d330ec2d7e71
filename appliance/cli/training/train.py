"""`assay train`: a training in stages, by a recipe."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from appliance.cli.shell.live_line import columns_of
from appliance.cli.shell.options import Seed, api_client, read_settings
from appliance.cli.show.printing import Output, prints, show_fields, show_line, show_table
from appliance.text.printable import printable
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from appliance.client import ApiClient
    from appliance.config.configuration import Settings
    from appliance.planning import Hardware, Layout, Shape
    from appliance.planning.training_recipes import StagedRecipe
    from appliance.records.cycles import Cycle

RECENT = 200
"""Cycles searched for one to resume."""
ELSEWHERE = "learners are on a host of the cluster"


class TrainingPlan(FrozenModel):
    name: str
    about: str
    digest: str
    stages: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    """Values that were scaled down to fit."""


@prints
def train(
    recipe: Annotated[
        str, typer.Option("--recipe", metavar="FILE", help="Recipe file, or a shipped recipe: seedling, rstar2-agent.")
    ],
    stage: Annotated[
        int | None, typer.Option("--stage", min=1, metavar="N", help="Only this stage, from the model in service.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the unfinished training of this recipe, or the one set aside.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan of the stages without starting.")] = False,
    seed: Seed = None,
) -> Output[Cycle | Annotated[TrainingPlan, "with --dry-run"]]:
    """Train in stages: SFT, RL with growing budgets, distillation.

    The daemon runs it as a cycle: the last stage's model is evaluated and decided on like a night's candidate. A stage
    that collapses ends the training at its last good checkpoint. Exit code 1: with --dry-run, a stage does not fit; 2:
    unusable recipe or conversations, or unknown stage; 3: no daemon; 4: another cycle is unfinished, or none of this
    recipe can be resumed.

    Example: assay train --recipe seedling --dry-run
    """
    from appliance.errors import ExitCode, UsageError
    from appliance.planning.training_recipes import plan_json, read_recipe, scaled, too_large

    if resume and seed is not None:
        raise UsageError(
            "--seed and --resume cannot be combined: a resumed training keeps its seed", "omit one of them"
        )
    settings = read_settings()
    found = read_recipe(recipe, settings.recipe)
    elsewhere = settings.placement.learners == "cluster"
    if found.scale and elsewhere:
        found = replace(found, notes=(f"not scaled: {ELSEWHERE}",))
    elif found.scale:
        found = scaled(found, *_where(settings, found))
    if stage is not None:
        found = found.only(stage)
    if not resume:
        _require_conversations(found)
    if dry_run:
        large = not elsewhere and too_large(found.stages, *_where(settings, found))
        plan = TrainingPlan(**plan_json(found), about=found.about, notes=found.notes)
        code = ExitCode.FAILED_VERDICT if large else ExitCode.OK
        return Output(plan, lambda: _show_plan(found, settings), code)
    if not resume:
        _say_scaled(found, settings)
    api = api_client()
    cycle = _resumed(api, found) if resume else _started(api, found, seed)
    lines = [
        f"cycle {cycle.id} {'continues' if resume else 'is running'} (seed {cycle.seed}, phase {cycle.phase})",
        "follow it with `assay cycle watch`, cancel it with `assay cycle cancel ID`",
    ]
    return Output(cycle, lines)


def _require_conversations(recipe: StagedRecipe) -> None:
    """Reads the conversation files of a recipe's stages. Raises TraceError for a line that a later stage could not
    read."""
    named = [(stage, recipe.files[stage.file]) for stage in recipe.stages if stage.file]
    if not named:
        return
    from appliance.worker.sft.traces import TraceError, read_traces

    for stage, path in named:
        try:
            read_traces(path.read_bytes(), stage.file)
        except TraceError as error:
            raise TraceError(f"stage {stage.name}, {path}: {error}", hint=error.hint) from error


def _started(api: ApiClient, recipe: StagedRecipe, seed: int | None) -> Cycle:
    from appliance.client.messages import StartTraining
    from appliance.planning.training_recipes import plan_json
    from appliance.records.cycles import CycleState

    before = _own(api.cycles(RECENT), recipe)
    for stage in recipe.stages:
        if stage.file:
            api.put_traces(recipe.files[stage.file].read_bytes())
    cycle = api.start_training(StartTraining(**plan_json(recipe), seed=seed))
    if before and before[0].state is CycleState.SET_ASIDE:
        aside = before[0].id
        said = f"{aside}, by this recipe, was set aside; to resume it instead, run `assay cycle cancel {cycle.id}`, "
        said += f"then `assay cycle resume {aside}`"
        typer.echo(printable(said), err=True)
    return cycle


def _own(cycles: Iterable[Cycle], recipe: StagedRecipe) -> list[Cycle]:
    """Returns the cycles that train by this recipe in its present form."""
    return [one for one in cycles if one.plan.get("named", {}).get("digest") == recipe.digest]


def _resumed(api: ApiClient, recipe: StagedRecipe) -> Cycle:
    """Resumes the unfinished cycle of this recipe, or else the newest one that was set aside. A daemon also resumes the
    unfinished one by itself."""
    from appliance.errors import AssayError, ExitCode
    from appliance.records.cycles import CycleState

    recent = api.cycles(RECENT)
    unfinished = next((one for one in recent if not one.state.rests), None)
    own = _own(recent, recipe)
    if unfinished is not None and unfinished not in own:
        raise AssayError(
            f"{unfinished.id} is unfinished and does not use this recipe in its present form",
            "resume it with its original recipe, or cancel it with `assay cycle cancel`",
            ExitCode.REFUSED,
        )
    if unfinished is not None:
        return api.start_cycle()
    if own and own[0].state is CycleState.SET_ASIDE:
        return api.resume_cycle(own[0].id)
    raise AssayError(
        f"no training of {recipe.name} in its present form is unfinished or set aside",
        "omit --resume to start one; see `assay cycle ls` for earlier ones",
        ExitCode.REFUSED,
    )


def _say_scaled(recipe: StagedRecipe, settings: Settings) -> None:
    """Reports on standard error how free memory scaled a recipe, and which stages do not fit. The daemon may read
    models that this user cannot."""
    from appliance.errors import AssayError
    from appliance.inference.engine import ModelError
    from appliance.planning.training_recipes import too_large

    if recipe.notes:
        typer.echo(printable(f"{recipe.name}: {'; '.join(recipe.notes)}"), err=True)
    if settings.placement.learners == "cluster":
        return
    with suppress(AssayError, ModelError):
        if large := too_large(recipe.stages, *_where(settings, recipe)):
            said = f"too large for this machine: {', '.join(large)}; see `assay train --dry-run`"
            typer.echo(printable(said), err=True)


def _where(settings: Settings, recipe: StagedRecipe) -> tuple[Shape, Hardware, Layout, dict[str, Shape]]:
    """Returns the starting model's shape, this machine, the GPU layout, and the shapes of scoring models, if known."""
    from appliance.cli.machine.recommended import layout_of, machine_of, shape_named
    from appliance.errors import AssayError
    from appliance.inference.engine import ModelError
    from appliance.models.export_model import published
    from appliance.readiness.model import shape_in

    machine = machine_of(settings)
    teachers: dict[str, Shape] = {}
    for name in {stage.scored_by for stage in recipe.stages if stage.scored_by}:
        with suppress(AssayError, ModelError):
            teachers[name] = shape_in(published(name, settings.data))
    return shape_named(settings, "")[1], machine, layout_of(settings, machine), teachers


def _show_plan(recipe: StagedRecipe, settings: Settings) -> None:
    from appliance.cli.machine.recommended import shape_named
    from appliance.planning.training_recipes import rows_of

    name, _ = shape_named(settings, "")
    evaluation = recipe.stages[-1].recipe.evaluation
    show_fields(
        [
            ("recipe", f"{recipe.name}: {recipe.about}" if recipe.about else recipe.name),
            ("starts from", name),
            ("scaled", "; ".join(recipe.notes)),
            ("then", f"{evaluation.sealed_items} sealed questions, and a decision by the policy in force"),
        ]
    )
    show_line("")
    show_stages(rows_of(recipe.stages, *_where(settings, recipe)), columns_of(sys.stdout))
    show_line("")
    if settings.placement.learners == "cluster":
        show_line(f"{ELSEWHERE}, but the memory shown is this machine's: run `assay train --dry-run` there")
    show_line("A stage that collapses ends the training at its last good checkpoint. Nothing was started.")


def show_stages(rows: Sequence[Sequence[object]], screen: int | None) -> None:
    """Prints a line of a table for each stage, or on a terminal of `screen` columns too narrow for it a paragraph."""
    from appliance.planning.training_recipes import COLUMNS

    widths = [max(len(str(cell)) for cell in column) for column in zip(COLUMNS, *rows, strict=True)]
    if screen is None or sum(widths) + 2 * (len(widths) - 1) <= screen:
        show_table(COLUMNS, rows, empty="no stage")
        return
    for number, *cells in rows:
        named = ", ".join(f"{name} {cell}" for name, cell in zip(COLUMNS[1:], cells, strict=True))
        show_line(f"stage {number}: {named}", indent=4)
