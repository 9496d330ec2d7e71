"""`assay evaluate`: measures a model by domain and taskset, with intervals, on any engine.

Invariants: nothing goes into the ledger, and files contain no question and no answer. --resume continues a stopped run.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.models.engine import configured_engine, model_files
from appliance.cli.shell.options import read_settings
from appliance.cli.show.printing import Output, prints, show_line, show_progress, show_table
from appliance.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from appliance.config.configuration import Settings
    from appliance.evaluation.figures import EvaluationResults
    from appliance.evaluation.plan import EvaluationPlan, OpenQuestion
    from appliance.evaluation.run import Answerer
    from appliance.inference.engine import ModelFiles
    from runtime.sandbox import SessionPool

Tasksets = Annotated[
    list[str] | None, typer.Option("--taskset", metavar="NAME", help="Taskset (repeatable; default: the recipe's).")
]
Endpoint = Annotated[str, typer.Option("--endpoint", metavar="URL", help="An OpenAI-compatible API on this machine.")]
Temperature = Annotated[float, typer.Option("--temperature", min=0, help="Sampling temperature; 0 is greedy.")]
INTERRUPTED = 130
RESULTS, PAGE = "results.json", "page.html"


@prints
def evaluate(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for attempts, results and page.")],
    model: Annotated[
        str,
        typer.Argument(help="champion, candidate, a digest's first digits, a base, a folder; a name at --endpoint."),
    ] = "champion",
    endpoint: Endpoint = "",
    tasksets: Tasksets = None,
    items: Annotated[int, typer.Option("--items", min=1, max=100_000, help="Questions per taskset and seed.")] = 20,
    repeats: Annotated[int, typer.Option("--repeats", min=1, max=1024, help="Attempts per question.")] = 4,
    seeds: Annotated[
        list[int] | None, typer.Option("--seed", min=0, help="Seed of the questions (repeatable).")
    ] = None,
    temperature: Temperature = 1.0,
    tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=16, help="Tokens of a conversation; with an endpoint, of a turn.")
    ] = None,
    calls: Annotated[int | None, typer.Option("--max-calls", min=0, help="Tool calls per conversation.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
) -> Output[EvaluationResults]:
    """Measure a model on open questions, with intervals; any engine.

    Shows pass@1 and pass@k by domain and taskset, on questions of the validation split. Exit code 0 if all was judged,
    2 for an invalid request, 5 if attempts were lost to infrastructure errors; Ctrl-C (130) keeps finished attempts.

    Example: assay evaluate champion --taskset programs --items 20 --repeats 4 --seed 0 --seed 1 --out runs/a
    """
    from appliance import __version__
    from appliance.evaluation.plan import EvaluationPlan, versioned

    settings = read_settings()
    usable, left_out = askable(tasksets or settings.recipe.tasksets, given=bool(tasksets))
    files, digest = ({}, "") if endpoint else files_of(model, settings.data)
    budget = settings.recipe.agent
    plan = EvaluationPlan(
        model=model if endpoint else digest,
        engine=endpoint or settings.model.engine,
        tasksets=versioned(usable),
        items=items,
        seeds=tuple(dict.fromkeys(seeds or [0])),
        repeats=repeats,
        temperature=temperature,
        max_tokens=tokens or budget.max_tokens,
        max_calls=budget.max_calls if calls is None else calls,
        max_result_chars=budget.max_result_chars,
        assay=__version__,
    )
    return carried_out(plan, settings, files, out, left_out, resume=resume, show=lambda found: _show(found, out))


def askable(names: Sequence[str], *, given: bool) -> tuple[list[str], dict[str, str]]:
    """Splits tasksets into those that can be checked here, and the others with reasons. Raises UsageError if none is
    left of those that were `given`."""
    from curriculum.registry import taskset_named

    named = list(dict.fromkeys(names))
    left_out = {name: reason for name in named if (reason := taskset_named(name).missing())}
    if left_out and given and len(left_out) == len(named):
        raise UsageError(f"nothing can be asked: {'; '.join(left_out.values())}", "name other tasksets")
    return [name for name in named if name not in left_out], left_out


def files_of(model: str, data: Path) -> tuple[ModelFiles, str]:
    """Returns a model's files and digest. Raises UsageError."""
    from appliance.inference.engine import ModelError

    try:
        return model_files(model, data)
    except ModelError as error:
        raise UsageError(str(error), error.hint) from error


def carried_out(
    plan: EvaluationPlan,
    settings: Settings,
    files: ModelFiles,
    out: Path,
    left_out: dict[str, str],
    *,
    resume: bool,
    show: Callable[[EvaluationResults], None],
) -> Output[EvaluationResults]:
    """Runs an evaluation, or what is left of it, in the folder `out`, with the model's `files` or at the plan's
    endpoint. Raises UsageError, and Exit (130) after Ctrl-C, which keeps finished attempts."""
    from appliance.cli.shell import broker_target
    from appliance.evaluation.figures import page, results
    from appliance.evaluation.plan import AttemptFile, questions
    from appliance.evaluation.run import EvaluationWork, carry_out
    from appliance.settings.policy_files import load_policy
    from appliance.system.clock import utc_now
    from appliance.system.durable_file import replace_file
    from curriculum.registry import domain_of
    from policies.permissions import backend_for
    from runtime.profile import BackendName
    from verifiers.checker import Checker

    asked = questions(plan)
    policy = load_policy(settings.data)
    runtime = broker_target.find().settings
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as held:
        file = held.enter_context(AttemptFile(out, plan, resume=resume))
        pool = held.enter_context(broker_target.sessions(runtime))
        tools = BackendName(backend_for(policy, "tools"))
        floor = policy.verifiers.require_kernel_floor
        made_checker = Checker(runtime, sessions=pool, tools_backend=tools, require_kernel_floor=floor)
        checker = held.enter_context(made_checker)
        made = _engine(plan, settings, files, pool) if files else _api(plan, pool)
        answerer = held.enter_context(made)
        asked = _askable(asked, answerer, left_out)
        work = EvaluationWork(plan, asked, answerer, checker, policy)
        names = {one.task.id for one in asked}

        def told(judged: int) -> None:
            show_progress(f"{judged} of {work.planned} attempts judged")

        interrupted = False
        try:
            carry_out(work, file, told)
        except KeyboardInterrupt:
            interrupted = True
        finally:  # what is done is written, whatever came
            show_progress("")
            found = results(
                plan,
                (one for one in file.found.values() if one.question in names),  # a run of another Assay asked others
                planned=work.planned,
                left_out=left_out,
                domain_of=domain_of,
                created=utc_now(),
            )
            replace_file(out / RESULTS, (found.model_dump_json(indent=2) + "\n").encode())
            replace_file(out / PAGE, page(found).encode())
            if not found.complete:
                judged = found.all.right + found.all.wrong
                typer.echo(
                    f"{judged} of {work.planned} attempts are judged and in {out}: continue with --resume", err=True
                )
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    return Output(found, lambda: show(found), ExitCode.OK if found.complete else ExitCode.INFRASTRUCTURE)


def _show(found: EvaluationResults, out: Path) -> None:
    from appliance.evaluation.figures import cells, headings, uncalled

    rows = [found.all, *found.domains, *(row for row in found.tasksets if len(found.tasksets) > 1)]
    ks = list(found.all.pass_at)
    show_table(headings(ks), [cells(row, ks) for row in rows], empty="nothing was asked")
    for name, why in found.left_out.items():
        show_line(f"not asked: {name}: {why}")
    if advice := uncalled(found):
        show_line(advice)
    if found.all.lost:
        show_line(f"{found.all.lost} attempts were lost to infrastructure errors and count as neither")
    show_line(f"{out / RESULTS} and {out / PAGE} have all figures; 95 % intervals, clustered by question")


def _askable(asked: list[OpenQuestion], answerer: Answerer, left_out: dict[str, str]) -> list[OpenQuestion]:
    """Returns the questions that the answerer accepts; adds the tasksets of the others to `left_out`, with reasons.
    Raises UsageError if none is left."""
    kept: list[OpenQuestion] = []
    for one in asked:
        if why := answerer.refuses(one.task):
            left_out[one.task.taskset] = why
        else:
            kept.append(one)
    if not kept:
        raise UsageError(f"nothing can be asked: {next(iter(left_out.values()))}", "name other tasksets")
    return kept


def _api(plan: EvaluationPlan, pool: SessionPool) -> Answerer:
    from appliance.agent.api_conversation import ApiSampling
    from appliance.evaluation.run import ApiAnswerer
    from appliance.inference.http.local_api import LocalApi

    sampling = ApiSampling(
        temperature=plan.temperature,
        max_tokens=plan.max_tokens,
        max_calls=plan.max_calls,
        max_result_chars=plan.max_result_chars,
    )
    return ApiAnswerer(LocalApi(plan.engine, plan.model), pool, sampling)


def _engine(plan: EvaluationPlan, settings: Settings, files: ModelFiles, pool: SessionPool) -> Answerer:
    """Loads the model into an engine, and returns an answerer that uses it. Raises UsageError for an unusable model."""
    from appliance.evaluation.run import EngineAnswerer
    from appliance.inference.engine import ModelError
    from appliance.rendering.formats import load_renderer

    budget = settings.recipe.agent.model_copy(update={"max_tokens": plan.max_tokens, "max_calls": plan.max_calls})
    try:
        engine = configured_engine(settings, rows=budget.concurrent, slots=plan.max_tokens)
        engine.push(files, plan.model)
        return EngineAnswerer(engine, load_renderer(files), pool, budget)
    except ModelError as error:
        raise UsageError(str(error), error.hint) from error
