"""Whether an attempt at a job should branch where a call fails: equal numbers of sampled tokens, with and without.

    python benchmarks/branching.py --model FOLDER [--two-steps] [--tasks 256] [--attempts 16] [--ways 3] [--json FILE]

FOLDER is a model of the embedded kind, such as `models/<champion>` of a demonstration. Its own questions (validation
split) take one call that works. With `--two-steps` two of them are asked at once and their answers added, which takes a
second call that builds on the first; the model is taught that form first, with wrong choices and failing calls among
the examples. Each question is attempted independently; an attempt whose call fails after one that worked also goes on
from the state before it, in `ways` ways. The plain attempts are thereby part of the same run, so both sides share their
luck. A budget of tokens is then spent on a question in random order of its attempts: plain ones alone, or each followed
by its first k branches. Success is the share of questions with a verified answer within the budget, averaged over
orders; tokens are those that were sampled (what a branch keeps costs nothing). Intervals: 95 %, paired bootstrap over
questions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "PASSIVE")

import torch

from appliance.agent.answers import written
from appliance.agent.assignment import Assignment
from appliance.agent.branching import Branching
from appliance.agent.budget import AgentBudget
from appliance.agent.judging import judge
from appliance.config import Settings
from appliance.inference.folder import open_model, read_model
from appliance.learning.recipe import WarmStartRecipe
from appliance.learning.sft import SftTrainer, encode
from appliance.ledger.sqlite import SqliteLedger
from appliance.places import runtime_settings
from appliance.policy_files import load_policy
from appliance.records.rollouts import Purpose
from appliance.records.training import Judged
from appliance.rendering.formats import load_renderer
from appliance.worker.context import WorkContext
from appliance.worker.demonstrations import play
from curriculum.contract.task import Split, Task, asked
from curriculum.demonstrations import Demonstration
from curriculum.families.phrased import PhrasedDraft, PhrasedTaskset
from curriculum.registry import taskset_named
from curriculum.sealed import TaskStream, draw_task
from curriculum.seeds import derive
from verifiers.answers.spec import AnswerSpec

Try = tuple[int, bool]
"""Tokens that were sampled, and whether its answer was verified."""
RIGHT, FAIL_FIRST, EXAMPLES, STEPS, MOST_TOKENS = 0.8, 0.5, 3_000, 250, 240
ORDERS = 50
RESAMPLES = 2_000
BUDGETS = (1.0, 2.0, 4.0, 8.0)
"""In mean plain attempts."""


def added(code: str) -> str:
    """A call that prints what it printed, plus what the first one kept."""
    return code.replace("print(", "print(a+", 1)


def kept(code: str) -> str:
    """A call that keeps what it printed."""
    *above, last = code.split("\n")
    return "\n".join([*above, f"a={last.removeprefix('print(').removesuffix(')')}", "print(a)"])


def two_steps(split: Split, rng: Random) -> tuple[Task, list[tuple[Task, PhrasedDraft]]]:
    """Two questions in one, whose answers are integers and are added."""
    found: list[tuple[Task, PhrasedDraft]] = []
    while len(found) < 2:
        task, draft = draw_task(split, rng, set())
        if isinstance(draft, PhrasedDraft) and isinstance(draft.spec, AnswerSpec):
            found.append((task, draft))
    spec = AnswerSpec(notation="digits", expected=str(sum(int(draft.answer) for _, draft in found)))
    question = asked(" plus ".join(task.question for task, _ in found))
    return Task(taskset="arithmetic", level=0, seed=0, split=split, messages=question, spec=spec), found


def shown_how(rng: Random) -> Demonstration:
    """Each step picks the operation that is asked for in four of five; half of the steps fail first."""
    task, steps = two_steps(Split.TRAIN, rng)
    calls: list[str] = []
    for change, (step, draft) in zip((kept, added), steps, strict=True):
        taskset = taskset_named(step.taskset)
        assert isinstance(taskset, PhrasedTaskset)
        *wrong, right = taskset.demonstrate(draft, rng, right_choice=RIGHT, fail_first=FAIL_FIRST).calls
        calls += [added(code) if change is added else code for code in wrong] + [change(right)]
    return Demonstration(task=task, calls=tuple(calls), topic="", right=True)


def teach(context: WorkContext, model: Path, budget: AgentBudget) -> Any:
    rng = Random(0)
    made = [shown_how(rng) for _ in range(EXAMPLES)]
    renderer = load_renderer(read_model(model))
    encoded = [
        encode(
            renderer,
            renderer.prompt(one.task.messages),
            list(zip(one.calls, one.results, strict=True)),
            written(one.answer, one.task.form),
        )
        for one in play(made, context.sessions, context.policy, budget.max_result_chars, caller="branching")
    ]
    recipe = WarmStartRecipe(steps=STEPS, batch=48, learning_rate=2e-3)
    learner = SftTrainer(
        open_model(read_model(model)), encoded, recipe, 0, max_tokens=budget.max_tokens, companions=read_model(model)
    )
    figures = learner.run_steps(STEPS)
    print(f"taught {STEPS} steps, loss {figures['loss']:.3f}, {figures['seconds']:.0f} s", flush=True)
    return learner.model


def run(model: Path, data: Path, tasks: list[Task], attempts: int, ways: int, *, two: bool) -> list[Judged]:
    settings, seed = Settings.load({"data": str(data)}), 0
    with SqliteLedger(data / "ledger.sqlite3") as ledger:
        recipe, policy = settings.recipe, load_policy(data)
        budget = AgentBudget(max_tokens=MOST_TOKENS, max_calls=6) if two else recipe.agent
        with WorkContext(data, ledger, runtime_settings(settings, data), budget, policy) as context:
            if two:
                context.engine.push(teach(context, model, budget), "taught")
            else:
                context.engine.push(read_model(model), model.name)
            agent = context.agent(load_renderer(read_model(model)))
            asked = [
                Assignment(
                    id=f"{task.id}.{sample}",
                    task=task,
                    cycle="branching",
                    step=0,
                    sample=sample,
                    purpose=Purpose.JOB,
                    temperature=recipe.training.temperature,
                    seed=derive("branching", seed, task.id, sample),
                )
                for task in tasks
                for sample in range(attempts)
            ]
            made = agent.roll(asked, branching=Branching(each=ways, in_all=len(asked) * ways))
            return judge(made, {task.id: task for task in tasks}, context.checker)


def grouped(judged: list[Judged]) -> dict[str, list[list[Try]]]:
    """By question: its attempts, each with its branches behind it."""
    found: dict[str, dict[str, list[Try]]] = defaultdict(dict)
    for one in judged:
        rollout = one.rollout
        one_try = (rollout.sampled_tokens, one.verdict.passed)
        found[rollout.task].setdefault(rollout.branch_of or rollout.id, []).append(one_try)
    return {task: list(attempts.values()) for task, attempts in found.items()}


def success(attempts: list[list[Try]], branches: int, budget: float, random: Random) -> float:
    """Share of orders in which one of the tries that end within the budget is verified."""
    solved = 0
    for _ in range(ORDERS):
        left = budget
        tries = (one for attempt in random.sample(attempts, len(attempts)) for one in attempt[: 1 + branches])
        for tokens, passed in tries:
            left -= tokens
            if left < 0:
                break
            if passed:
                solved += 1
                break
    return solved / ORDERS


def interval(differences: list[float]) -> tuple[float, float, float]:
    random, n = Random(0), len(differences)
    means = sorted(sum(random.choices(differences, k=n)) / n for _ in range(RESAMPLES))
    return sum(differences) / n, means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]


def rates(judged: list[Judged]) -> dict[str, Any]:
    """What became of attempts that branched, of their branches, and of plain attempts at the same questions."""
    by_id = {one.rollout.id: one for one in judged}
    branches = [one for one in judged if one.rollout.branch_of]
    left = [by_id[name] for name in {one.rollout.branch_of for one in branches} if name in by_id]
    plain: list[tuple[float, float]] = []
    groups = defaultdict(list)
    for one in judged:
        if not one.rollout.branch_of:
            groups[one.rollout.task].append(one)
    for one in left:
        others = [other for other in groups[one.rollout.task] if other is not one]
        plain.append(
            (
                sum(other.verdict.passed for other in others) / len(others),
                sum(other.rollout.sampled_tokens for other in others) / len(others),
            )
        )

    def of(some: list[Judged]) -> dict[str, float]:
        n = max(1, len(some))
        return {
            "number": len(some),
            "passed": sum(one.verdict.passed for one in some) / n,
            "tokens": sum(one.rollout.sampled_tokens for one in some) / n,
        }

    n = max(1, len(plain))
    fresh = {"passed": sum(p for p, _ in plain) / n, "tokens": sum(t for _, t in plain) / n}
    everyone = of([one for one in judged if not one.rollout.branch_of])
    return {
        "all attempts": everyone,
        "attempts that branched": of(left),
        "their branches": of(branches),
        "other attempts at their questions": fresh,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--tasks", type=int, default=256)
    parser.add_argument("--attempts", type=int, default=16)
    parser.add_argument("--ways", type=int, default=3)
    parser.add_argument("--two-steps", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    tasks = TaskStream(Split.VALIDATION, 0).tasks(0, asked.tasks)
    if asked.two_steps:
        rng = Random(1)
        tasks = [two_steps(Split.VALIDATION, rng)[0] for _ in range(asked.tasks)]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="assay-b-") as folder:
        judged = run(asked.model.resolve(), Path(folder), tasks, asked.attempts, asked.ways, two=asked.two_steps)
    figures: dict[str, Any] = {"seconds": time.monotonic() - started, "rates": rates(judged), "budgets": {}}
    groups = grouped(judged)
    mean = figures["rates"]["all attempts"]["tokens"]
    print(json.dumps(figures["rates"], indent=1), f"{figures['seconds']:.0f} s")
    for times in BUDGETS:
        curve = {}
        for k in range(asked.ways + 1):
            random = Random(f"{times}")
            curve[k] = [success(groups[task], k, times * mean, random) for task in sorted(groups)]
        row: dict[str, Any] = {"plain": sum(curve[0]) / len(curve[0])}
        line = f"{times:4g} attempts' tokens: plain {row['plain']:.3f}"
        for k in range(1, asked.ways + 1):
            gain = interval([100 * (a - b) for a, b in zip(curve[k], curve[0], strict=True)])
            row[f"branches_{k}"] = gain
            line += f"; {k} branches {gain[0]:+.2f} points [{gain[1]:+.2f}, {gain[2]:+.2f}]"
        print(line)
        figures["budgets"][times] = row
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
