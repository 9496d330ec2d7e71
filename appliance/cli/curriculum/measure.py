"""`assay curriculum measure`: how often a model passes, by topic and level, for the sampler and for `ls --for`.

Invariants: attempts are those of `assay evaluate` (open questions, no text kept); they lie in the data folder by the
model's weights, and the same command continues a stopped measurement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.models.evaluate import Endpoint, Tasksets, askable, carried_out, files_of
from appliance.cli.shell.options import read_settings
from appliance.cli.show.printing import Output, prints, show_line, show_table

if TYPE_CHECKING:
    from appliance.evaluation.figures import EvaluationResults


@prints
def measure(
    model: Annotated[
        str,
        typer.Option(
            "--model", help="champion, candidate, a digest's first digits, a base, a folder; or at --endpoint."
        ),
    ] = "champion",
    endpoint: Endpoint = "",
    tasksets: Tasksets = None,
    items: Annotated[int, typer.Option("--items", min=1, max=1000, help="Questions per topic and level.")] = 2,
    repeats: Annotated[int, typer.Option("--repeats", min=1, max=1024, help="Attempts per question.")] = 4,
) -> Output[EvaluationResults]:
    """Measure how often a model passes, by topic and level, with intervals; any engine.

    A night of this model with `recipe.training.difficulty = "adaptive"` begins with these rates instead of guesses, and
    `assay curriculum ls --for MODEL` lists the tasksets by what the model can learn from. Questions are of the
    validation split. Exit codes as of `assay evaluate`; the same command continues a stopped measurement.

    Example: assay curriculum measure --model smollm2 --taskset arithmetic --taskset digits
    """
    from appliance import __version__
    from appliance.evaluation.measured import folder_of, name_key, weights_key
    from appliance.evaluation.plan import EvaluationPlan, versioned
    from appliance.models.export_model import published

    settings = read_settings()
    usable, left_out = askable(tasksets or settings.recipe.tasksets, given=bool(tasksets))
    files, digest = ({}, "") if endpoint else files_of(model, settings.data)
    budget = settings.recipe.agent
    plan = EvaluationPlan(
        model=digest or model,
        engine=endpoint or settings.model.engine,
        tasksets=versioned(usable),
        items=items,
        each_topic=True,
        seeds=(0,),
        repeats=repeats,
        temperature=settings.recipe.training.temperature,
        max_tokens=budget.max_tokens,
        max_calls=budget.max_calls,
        max_result_chars=budget.max_result_chars,
        assay=__version__,
    )
    key = name_key(model) if endpoint else weights_key(published(model, settings.data))
    folder = folder_of(settings.data, key, plan)
    return carried_out(plan, settings, files, folder, left_out, resume=True, show=lambda found: _show(found, model))


def _show(found: EvaluationResults, model: str) -> None:
    rows = []
    for row in (*found.topics, found.all):
        score = row.pass_at.get("1")
        shown = ("-", "-") if score is None else (f"{score.value:.0%}", f"{score.low:.0%} to {score.high:.0%}")
        rows.append((row.name, *shown, row.questions, row.right + row.wrong))
    show_table(("level and topic", "passes", "95 %", "questions", "attempts"), rows, empty="nothing was asked")
    for name, why in found.left_out.items():
        show_line(f"not asked: {name}: {why}")
    if found.all.lost:
        show_line(f"{found.all.lost} attempts were lost to infrastructure errors and count as neither")
    show_line("95 %: interval, clustered by question")
    show_line(f"next: assay curriculum ls --for {model}")
