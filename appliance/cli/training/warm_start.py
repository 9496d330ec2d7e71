"""`assay warm-start`: a set of verified conversations to start a training with, and a manifest of the dropped ones.

Invariants: every conversation in the set ran in our sandboxes and passed its check here. A stage that learns from the
file verifies it again, and none of it counts as a rollout for a step of RL.
"""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.models.evaluate import Tasksets, Temperature
from appliance.cli.shell.options import read_settings
from appliance.cli.show.printing import Output, prints, show_fields, show_line, show_table
from appliance.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from appliance.worker.sft.warm_set import WarmSetManifest

CONVERSATIONS, MANIFEST = "conversations.jsonl", "manifest.json"


@prints
def warm_start(
    endpoint: Annotated[
        str, typer.Option("--endpoint", metavar="URL", help="The teacher: an OpenAI-compatible API on this machine.")
    ],
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="The teacher's model name at the endpoint.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the set; must not exist.")],
    tasksets: Tasksets = None,
    tasks: Annotated[int, typer.Option("--tasks", min=1, max=100_000, help="Questions for the teacher.")] = 64,
    samples: Annotated[int, typer.Option("--samples", min=1, max=1024, help="Attempts at each question.")] = 4,
    answers: Annotated[int, typer.Option("--answers", min=1, help="Verified answers kept per question.")] = 4,
    questions: Annotated[
        int, typer.Option("--questions", min=0, help="Keep this many questions with the longest answers; 0 for all.")
    ] = 0,
    sources: Annotated[
        int, typer.Option("--sources", min=0, help="Keep this many of the best answered tasksets; 0 for all.")
    ] = 0,
    against: Annotated[
        list[Path] | None,
        typer.Option("--against", metavar="DIR", help="Exclude this evaluation's questions (repeatable)."),
    ] = None,
    temperature: Temperature = 1.0,
    tokens: Annotated[int, typer.Option("--max-tokens", min=16, help="Tokens of a turn.")] = 1024,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the questions.")] = 0,
) -> Output[WarmSetManifest]:
    """Let a teacher answer training questions, verify the answers, and keep a set for a stage of SFT.

    The teacher may be the champion, served on this machine. Exit code 0 for a set, 1 if nothing was verified, 2 for an
    invalid request, 5 if the teacher does not answer, or nothing was verified and answers were lost to the
    infrastructure. A lost conversation does not affect others; 5 also for a set from a teacher that went down.

    Example: assay warm-start --endpoint http://127.0.0.1:8000/v1 --model teacher --out traces --taskset tables
    """
    from collections import Counter
    from dataclasses import replace

    from appliance.agent.api_conversation import refuses
    from appliance.cli.shell import broker_target
    from appliance.evaluation.plan import PLAN, EvaluationPlan
    from appliance.evaluation.plan import questions as questions_of
    from appliance.learning.recipes.stages import TeacherRecipe
    from appliance.settings.policy_files import load_policy
    from appliance.worker.sft.teacher import Teacher
    from appliance.worker.sft.traces import verified
    from appliance.worker.sft.warm_set import WarmSetManifest, WarmSetRules, before_rules, lines, selected
    from curriculum.contract.task import Split, Task
    from curriculum.registry import taskset_named
    from curriculum.sealed import TaskStream
    from curriculum.separation.index import SeparationIndex
    from policies.permissions import backend_for
    from runtime.profile import BackendName
    from verifiers.checker import Checker

    settings = read_settings()
    if out.exists():
        raise UsageError(f"{out} already exists", "name another folder")
    named = tuple(dict.fromkeys(tasksets or settings.recipe.tasksets))
    if missing := [reason for name in named if (reason := taskset_named(name).missing())]:
        raise UsageError(f"a taskset cannot be checked here: {missing[0]}", "name others with --taskset")
    open_questions: list[Task] = []
    for folder in against or ():
        try:
            plan = EvaluationPlan.model_validate_json((folder / PLAN).read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{folder} contains no evaluation", "set --against to a folder of `assay evaluate`"
            ) from error
        open_questions += [one.task for one in questions_of(plan)]
    asked = {one.key for one in open_questions}
    recipe = TeacherRecipe(
        base_url=endpoint, model=model, tasks=tasks, samples=samples, temperature=temperature, max_tokens=tokens
    )
    stream = TaskStream(Split.TRAIN, seed, frozenset(asked), tasksets=named).tasks(0, tasks)
    policy, runtime = load_policy(settings.data), broker_target.find().settings
    budget = settings.recipe.agent
    with ExitStack() as held:
        pool = held.enter_context(broker_target.sessions(runtime))
        tools = BackendName(backend_for(policy, "tools"))
        floor = policy.verifiers.require_kernel_floor
        made_checker = Checker(runtime, sessions=pool, tools_backend=tools, require_kernel_floor=floor)
        checker = held.enter_context(made_checker)
        made = Teacher(recipe, pool, policy, max_calls=budget.max_calls, max_result_chars=budget.max_result_chars)
        with made as teacher:
            tried = teacher.traces(stream, caller="warm-start")
        tally = verified(
            tried.traces,
            pool,
            checker,
            policy,
            apart=SeparationIndex(open_questions),
            max_result_chars=budget.max_result_chars,
            caller="warm-start",
        )
    tally = replace(tally, lost=tried.lost + tally.lost)
    rules = WarmSetRules(answers=answers, questions=questions, sources=sources)
    kept, dropped = selected(tally.kept, rules, asked, Counter(one.taskset for one in stream))
    needs_tools = samples * sum(bool(refuses(one)) for one in stream)
    content = lines(kept)
    manifest = WarmSetManifest(
        source=f"{endpoint} {model}",
        rules=rules,
        recorded=tasks * samples,
        dropped={**before_rules(tasks * samples, len(tried.traces) + tried.lost, needs_tools, tally), **dropped},
        kept=len(kept),
        questions=len({one.task.id for one in kept}),
        by_taskset={name: n for name in named if (n := sum(one.task.taskset == name for one in kept))},
        digest=hashlib.sha256(content).hexdigest(),
    )
    if kept:
        out.mkdir(parents=True)
        (out / CONVERSATIONS).write_bytes(content)
        (out / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")

    def show() -> None:
        show_fields([("asked", manifest.recorded), ("kept", manifest.kept), ("questions", manifest.questions)])
        show_table(("dropped", ""), list(manifest.dropped.items()), empty="nothing was dropped")
        if tried.lost:
            show_line(f"{tried.lost} conversations with the teacher were lost; last error: {tried.failure}")
        if kept:
            show_line(f'{out / CONVERSATIONS}: use it in a stage of `assay train` with data = "file"')
        else:
            show_line("nothing was verified or written")

    broke = ExitCode.INFRASTRUCTURE if tally.lost else ExitCode.FAILED_VERDICT
    return Output(manifest, show, ExitCode.OK if kept and not tried.down else broke)
