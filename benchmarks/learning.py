"""What a night of the embedded policy model learns, and what RoC changes about it: three seeds, everything real.

    python benchmarks/learning.py [--seeds 0,1,2] [--parallel 2] [--json FILE]

For each seed: one warm start, then from the same weights one night with GRPO-RoC and one with plain GRPO on the same
compute (as many rollouts sampled, as many trained on, chosen uniformly). Both are examined on the same sealed questions
against the same warm start. Success is sampled at temperature 1; greedy stands beside it. Tools run in gVisor.

Bars: at least +25 points in every seed with the interval above 0; tool errors inside the correct rollouts trained on at
most a fifth of GRPO's, inside held-out correct ones at most 0.6 (means over seeds); accuracy not lower than GRPO's by
more than its interval. Each seed runs in a process of its own with one thread; `--parallel` at once.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Any

ARMS = {"roc": "roc", "grpo": "uniform"}


def one_seed(seed: int, data: Path) -> dict[str, Any]:
    """Both arms of one seed; figures as shares of 1, gains in points."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    from appliance.clock import utc_now
    from appliance.config import Settings
    from appliance.learning.comparison import compare
    from appliance.learning.recipe import Recipe, TrainingRecipe
    from appliance.ledger.sqlite import SqliteLedger
    from appliance.places import runtime_settings
    from appliance.records.cycles import Cycle, CycleState
    from appliance.records.training import Group, Judged
    from appliance.worker.context import WorkContext
    from appliance.worker.cycle import CycleRun
    from appliance.worker.progress import CycleProgress
    from appliance.worker.rl_loop import trained_on
    from policies.policy import load

    torch.set_num_threads(1)
    settings = Settings.load({"data": str(data)})
    figures: dict[str, Any] = {"seed": seed}
    start: str | None = None
    with SqliteLedger(data / "ledger.sqlite3") as ledger:
        for arm, selector in ARMS.items():
            recipe = Recipe(training=TrainingRecipe(selector=selector))
            plan: dict[str, Any] = {"recipe": recipe.model_dump(mode="json")}
            if start is not None:
                plan["start"] = start
            now = utc_now()
            cycle = Cycle(
                id=f"{arm}-{seed}",
                kind="night",
                seed=seed,
                plan=plan,
                phase="prepare",
                state=CycleState.RUNNING,
                created=now,
                updated=now,
            )
            ledger.put_cycle(cycle)
            with WorkContext(data, ledger, runtime_settings(settings, data), recipe.agent, load(None)) as context:
                progress = CycleProgress(cycle, ledger, time.monotonic)
                CycleRun(cycle, context, progress, None).train()
                progress = CycleProgress(progress.cycle, ledger, time.monotonic)
                CycleRun(progress.cycle, context, progress, None).evaluate()
            start = progress.cycle.plan["start"]
            evaluation = ledger.evaluation(f"{cycle.id}.evaluation")
            assert evaluation is not None
            sampled = compare(evaluation.candidate, evaluation.champion)
            greedy = compare(evaluation.candidate_greedy, evaluation.champion_greedy)
            trained: list[Judged] = []
            for step in ledger.recorded_steps(cycle.id):
                record = ledger.step(cycle.id, step)
                assert record is not None
                groups: tuple[Group, ...] = record.groups
                trained += [one for one in trained_on(record.judged, groups) if one.verdict.passed]
            calls = sum(len(one.rollout.calls) for one in trained)
            figures[arm] = {
                "before": sampled.champion.value,
                "after": sampled.candidate.value,
                "after_low": sampled.candidate.low,
                "after_high": sampled.candidate.high,
                "gain": 100 * sampled.gain.value,
                "gain_low": 100 * sampled.gain.low,
                "gain_high": 100 * sampled.gain.high,
                "greedy_before": greedy.champion.value,
                "greedy_after": greedy.candidate.value,
                "errors_before": sampled.champion_errors,
                "errors_held_out": sampled.candidate_errors,
                "errors_trained_on": sum(one.rollout.failed_calls for one in trained) / calls if calls else 0.0,
                "seconds": progress.cycle.seconds,
            }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        with tempfile.TemporaryDirectory(prefix="assay-learning-") as folder:
            print(json.dumps(one_seed(arguments.one, Path(folder))))
        return
    waiting = [int(seed) for seed in arguments.seeds.split(",")]
    running: dict[int, subprocess.Popen[str]] = {}
    found: list[dict[str, Any]] = []
    while waiting or running:
        while waiting and len(running) < arguments.parallel:
            seed = waiting.pop(0)
            command = [sys.executable, __file__, "--one", str(seed)]
            running[seed] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for seed, process in list(running.items()):
            if process.poll() is not None:
                output = process.communicate()[0]
                del running[seed]
                if process.returncode != 0:
                    sys.exit(f"seed {seed} failed")
                found.append(json.loads(output.splitlines()[-1]))
                print(row(found[-1]), flush=True)
        time.sleep(0.5)
    summary = summarise(sorted(found, key=lambda one: one["seed"]))
    print(json.dumps({name: value for name, value in summary.items() if name != "seeds"}, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(summary, indent=1) + "\n")


def row(one: dict[str, Any]) -> str:
    parts = [f"seed {one['seed']}"]
    for arm in ARMS:
        part = one[arm]
        parts.append(
            f"{arm} {part['before']:.3f} -> {part['after']:.3f} "
            f"({part['gain']:+.1f} [{part['gain_low']:+.1f}, {part['gain_high']:+.1f}]), "
            f"greedy {part['greedy_before']:.3f} -> {part['greedy_after']:.3f}, errors in correct: "
            f"trained on {part['errors_trained_on']:.4f}, held out {part['errors_before']:.3f} -> "
            f"{part['errors_held_out']:.3f}"
        )
    return " | ".join(parts)


def summarise(found: list[dict[str, Any]]) -> dict[str, Any]:
    def average(arm: str, name: str) -> float:
        return mean(one[arm][name] for one in found)

    trained = average("roc", "errors_trained_on") / max(average("grpo", "errors_trained_on"), 1e-9)
    held_out = average("roc", "errors_held_out") / max(average("grpo", "errors_held_out"), 1e-9)
    lower = [one["grpo"]["after"] - one["roc"]["after"] for one in found]
    widths = [(one["roc"]["after_high"] - one["roc"]["after_low"]) for one in found]
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "smallest_gain": min(one["roc"]["gain"] for one in found),
        "smallest_gain_low": min(one["roc"]["gain_low"] for one in found),
        "trained_on_ratio": trained,
        "held_out_ratio": held_out,
        "accuracy_roc": average("roc", "after"),
        "accuracy_grpo": average("grpo", "after"),
        "accuracy_lower_by_at_most_the_interval": all(a <= b for a, b in zip(lower, widths, strict=True)),
        "seeds": found,
    }


if __name__ == "__main__":
    main()
