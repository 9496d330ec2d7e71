"""Whether an attempt at a job should branch where a call fails: equal numbers of sampled tokens, with and without.

    python benchmarks/branching.py --model FOLDER [--tasks 256] [--attempts 16] [--ways 3] [--json FILE]

FOLDER is a model of the embedded kind, such as `models/<champion>` of a demonstration. Each question (validation
split) is attempted independently; an attempt whose call fails after one that worked also goes on from the state before
it, in `ways` ways. The plain attempts are thereby part of the same run, so both sides share their luck. A budget of
tokens is then spent on a question in random order of its attempts: plain ones alone, or each followed by its first k
branches. Success is the share of questions with a verified answer within the budget, averaged over orders; tokens are
those that were sampled (what a branch keeps costs nothing). Intervals: 95 %, paired bootstrap over questions.
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

from appliance.agent.branching import Branching
from appliance.agent.dialect import Codec
from appliance.agent.judging import judge
from appliance.agent.loop import Assignment
from appliance.config import Settings
from appliance.ledger.sqlite import SqliteLedger
from appliance.places import load_policy, runtime_settings
from appliance.records import Judged, Purpose
from appliance.worker.equipment import Equipment
from appliance.worker.seeds import derive
from curriculum.sealed import TaskStream
from curriculum.task import Split, Task

Try = tuple[int, bool]
"""Tokens that were sampled, and whether its answer was verified."""
ORDERS = 50
RESAMPLES = 2_000
BUDGETS = (1.0, 2.0, 4.0, 8.0)
"""In mean plain attempts."""


def run(model: Path, data: Path, tasks: list[Task], attempts: int, ways: int, seed: int) -> list[Judged]:
    settings = Settings.load({"data": str(data)})
    with SqliteLedger(data / "ledger.sqlite3") as ledger:
        recipe, policy = settings.recipe, load_policy(data)
        with Equipment(data, ledger, runtime_settings(settings, data), recipe.agent, policy) as equipment:
            equipment.engine.load(model, model.name)
            agent = equipment.agent(Codec.load(model))
            asked = [
                Assignment(
                    id=f"{task.id}.{sample}",
                    task=task.id,
                    prompt=task.prompt,
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
            return judge(made, {task.id: task for task in tasks}, equipment.checker)


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
        "fresh": fresh,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--tasks", type=int, default=256)
    parser.add_argument("--attempts", type=int, default=16)
    parser.add_argument("--ways", type=int, default=3)
    parser.add_argument("--level-seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    tasks = TaskStream(Split.VALIDATION, asked.level_seed, frozenset()).tasks(0, asked.tasks)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="assay-b-") as folder:
        judged = run(asked.model.resolve(), Path(folder), list(tasks), asked.attempts, asked.ways, asked.level_seed)
    figures: dict[str, Any] = {"seconds": time.monotonic() - started, "rates": rates(judged), "budgets": {}}
    groups = grouped(judged)
    mean = figures["rates"]["all attempts"]["tokens"]
    print(json.dumps(figures["rates"], indent=1), f"{figures['seconds']:.0f} s")
    for times in BUDGETS:
        curve = {}
        for k in range(asked.ways + 1):
            random = Random(f"{times}")
            curve[k] = [success(groups[task], k, times * mean, random) for task in sorted(groups)]
        row = {"plain": sum(curve[0]) / len(curve[0])}
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
