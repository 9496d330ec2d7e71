"""What a night of the embedded policy model learns, and what selector, objective and credit change about it.

    python -m benchmarks.learning [--seeds 0,1,2] [--parallel 2] [--json FILE]
    python -m benchmarks.learning --arms all --tokens 600000 [--seeds 0,1,2] [--parallel 2] [--results FILE]
    python -m benchmarks.learning --arms all --tokens 600000 --results FILE --table --beside roc
    python -m benchmarks.learning --arms stale1,stale4 --tokens 600000 --parallel 1

For each seed: one warm start, then from the same weights one night for each arm, everything real. All arms answer the
same sealed questions, and are compared with the warm start and, question by question, with plain GRPO. Success is
sampled at temperature 1; greedy stands beside it. Tools run in gVisor.

Without options: GRPO-RoC beside plain GRPO on the same compute (as many rollouts sampled, as many trained on, chosen
uniformly). Bars: at least +25 points in every seed with the interval above 0; tool errors inside the correct rollouts
trained on at most a fifth of GRPO's, inside held-out correct ones at most 0.6 (means over seeds); accuracy not lower
than GRPO's by more than its interval.

The arms `branch_...` are GRPO-RoC with half of each task's rollouts kept for branches: `branch_repair` after the result
of the first failed call, `branch_entropy` at the least sure token, `branch_both` at a failed call and else there;
`branch_plain` is `branch_entropy` without RoC. None branches before a failed call, which finds no place on these tasks.
A branch does not sample its beginning again, so these arms take more and smaller steps of the same tokens;
`roc_small_steps` is GRPO-RoC with steps about as small (with `--small`).

With `--tokens`: each arm samples as many tokens as that and takes no further step; a step is not cut, so an arm may
have up to a step's more. A table follows, an arm a row. Each seed runs in a process of its own with one thread;
`--parallel` at once. `--small` has smaller steps and evaluations, and `--model` begins with a model folder instead of a
warm start, so that seeds differ in what is asked and drawn alone: what they show is coarse.

With `--results` an arm's figures are added to that file as a line as soon as it has ended, and its ledger and weights
are kept beside it: the same command goes on where an earlier one was stopped, with other arms too. `--table` runs
nothing and prints the table of the lines that are there, over the seeds that an arm and plain GRPO both have;
`--beside roc` runs and compares with GRPO-RoC instead, whose selection the arms that branch have, too.

The arms `stale1` and `stale4` learn from tokens that are up to so many steps old, and sample meanwhile. Their
tokens trained on a minute, beside those of an arm that takes turns, say what the pipeline gains where sampler and
learner share one processor, and need a machine with nothing beside them. The bound on age is never exceeded: a step
whose tokens are older ends the run.

`--demo FOLDER` begins where the demonstration of a pretrained model (`assay demo --model`) began its own training: from
its warm-started model, with its recipe. With `--small`, a step has 4 tasks of 8 rollouts. The arms `lora` and `qlora`
train adapters, whose mismatch between learner and engine the table tells:

    python -m benchmarks.learning --demo FOLDER --own-start --small --steps 50 --seeds 1 --beside lora --arms qlora
    python -m benchmarks.learning --demo FOLDER --small --tokens 50000 --seeds 1 --beside roc --arms sdft,sdpo

With `--own-start` an arm begins with the pretrained model itself and makes the warm start by its own method, as an
owner of that model would, at the rate that `assay plan` recommends.

The arms `cut` and `cut_soon` cut stragglers: at 1.5 times the length that nine of ten rollouts of the steps before
stayed within, and at 1.1 times that of half of them, which is far more often than anybody should.
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
from statistics import mean, stdev
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run

ROOT = Path(__file__).resolve().parents[1]
PLAIN = "plain"
ARMS: dict[str, dict[str, Any]] = {
    PLAIN: {"selector": "uniform"},
    "roc": {"selector": "roc"},
    "roc_sorted": {"selector": "roc_sorted"},
    "roc_small_steps": {"selector": "roc", "tasks_per_step": 8},
    "hicra": {"selector": "uniform", "planning": {"credit": True}},
    "length": {"selector": "uniform", "objective": "reinforce"},
    "grpo": {"selector": "uniform", "objective": "grpo"},
    "dr_grpo": {"selector": "uniform", "objective": "dr_grpo"},
    "gspo": {"selector": "uniform", "objective": "gspo"},
    "cispo": {"selector": "uniform", "objective": "cispo"},
    "dppo": {"selector": "uniform", "objective": "dppo"},
    "max_rl": {"selector": "uniform", "objective": "max_rl"},
    "branch_repair": {"selector": "roc", "branching": {"where": "repair"}},
    "branch_entropy": {"selector": "roc", "branching": {"where": "highest_entropy"}},
    "branch_both": {"selector": "roc", "branching": {"where": "both"}},
    "branch_plain": {"selector": "uniform", "branching": {"where": "highest_entropy"}},
    "stale1": {"selector": "uniform", "max_staleness": 1},
    "stale4": {"selector": "uniform", "max_staleness": 4},
    "sdft": {"selector": "roc", "self_distillation": {"shown": "solution"}},
    "sdpo": {"selector": "roc", "self_distillation": {"shown": "reason"}},
    "sdft_half": {"selector": "roc", "self_distillation": {"shown": "solution", "share": 0.5}},
    "sdpo_half": {"selector": "roc", "self_distillation": {"shown": "reason", "share": 0.5}},
    "lora": {"selector": "roc", "method": "lora", "learning_rate": 1e-4},
    "qlora": {"selector": "roc", "method": "qlora", "learning_rate": 1e-4},
    "screened": {"selector": "roc", "screening": 4},
    "cut": {"selector": "uniform", "stragglers": {"past": 1.5}},
    "cut_soon": {"selector": "uniform", "stragglers": {"past": 1.1, "share": 0.5}},
}
"""The training recipe of each; what is not named is as usual (the objective is `dapo`). Plain GRPO is the first."""

SMALL: dict[str, Any] = {
    "training": {"tasks_per_step": 12, "watch_items": 16},
    "evaluation": {"sealed_items": 192, "unsolvable_items": 8},
}
SMALL_DEMO: dict[str, Any] = {
    "training": {"tasks_per_step": 4, "rollouts_per_task": 8, "keep": 4},
    "evaluation": {"sealed_items": 256, "unsolvable_items": 8},
}
LEAST_A_STEP = 1500
"""Sampled tokens of a step, at least: an arm with a budget of tokens takes so few steps that it can be spent."""
ENDS = 5
"""First and last steps whose lengths are told."""
T_975 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""Student's t, by degrees of freedom: intervals over seeds."""


def demonstrated(folder: Path, own_start: bool) -> tuple[dict[str, Any], Path]:
    """Returns the recipe of the newest demonstration in a data folder, without its warm start, and the model that its
    warm start ended with; with `own_start`, the recipe, and the pretrained model that the demonstration began with."""
    from appliance.ledger.sqlite import SqliteLedger

    stage = "imported" if own_start else "warm_start"
    with SqliteLedger(folder / "ledger.sqlite3") as ledger:
        made = {one.cycle: one for one in ledger.checkpoints() if one.stage == stage}
        cycle = next(one for one in ledger.cycles() if one.kind == "demo" and one.id in made)
    recipe = cycle.plan["recipe"] if own_start else {**cycle.plan["recipe"], "warm_start": {}}
    return recipe, folder / made[cycle.id].folder


def one_seed(
    seed: int,
    data: Path,
    arms: list[str],
    tokens: int | None,
    small: bool,
    model: Path | None,
    results: Path,
    demo: Path | None,
    most: int | None,
    own_start: bool,
) -> None:
    """All arms of one seed, an added line each; figures as shares of 1, gains in points."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    from appliance.config.configuration import Settings
    from appliance.config.places import runtime_settings
    from appliance.learning.recipes.recipe import Recipe
    from appliance.learning.signal.comparison import compare
    from appliance.ledger.sqlite import SqliteLedger
    from appliance.planning.recommend import WARM_RATES
    from appliance.records.cycles import Cycle, CycleState
    from appliance.records.rollouts import Purpose
    from appliance.records.training import Group, Judged, RolloutFilter
    from appliance.system.clock import utc_now
    from appliance.worker import cycle as cycles
    from appliance.worker.evaluation.evaluate import results as results_of
    from appliance.worker.setup.context import WorkContext
    from appliance.worker.setup.progress import CycleProgress
    from appliance.worker.training.rl_loop import RlLoop, trained_on
    from policies.policy import load

    class Budgeted(RlLoop):
        """A night that goes on without sampling and learning, once it has had its tokens."""

        @property
        def sampled(self) -> int:
            recorded = self._context.ledger.recorded_steps(self._cycle)
            for step in recorded[len(self._spent) :]:
                record = self._context.ledger.step(self._cycle, step)
                assert record is not None
                self._spent.append(sum(one.rollout.sampled_tokens for one in record.judged))
            return sum(self._spent)

        def run(self) -> Any:
            self._spent: list[int] = []
            return super().run()

        def _step(self, step: int) -> None:
            if tokens is not None and self.sampled >= tokens:
                self._trainer.train_step(step, (), ())
            else:
                super()._step(step)

        def _validate(self, step: int) -> Any:
            if tokens is not None and self.sampled >= tokens and step < self._training.steps:
                return self._stopping.advice("the tokens are spent")
            return super()._validate(step)

    cycles.RlLoop = Budgeted  # type: ignore[misc]
    evaluate = cycles.evaluate

    def evaluate_once(run: Any, tasks: Any, context: Any) -> Any:
        """Takes the answers that the same weights gave to the same questions in the evaluation of an earlier arm."""
        for other in context.ledger.cycles():
            only = RolloutFilter(cycle=other.id, purpose=Purpose.EVALUATION, step=run.number)
            judged = {one.rollout.task: one for one in context.ledger.rollouts(only, limit=len(tasks))}
            same = all(set(one.rollout.versions) == {run.model.manifest} for one in judged.values())
            if other.seed == seed and other.id != run.cycle and same and all(task.id in judged for task in tasks):
                answers = [judged[task.id] for task in tasks]
                return results_of(run, tasks, answers, seconds=0.0), answers
        return evaluate(run, tasks, context)

    cycles.evaluate = evaluate_once
    torch.set_num_threads(1)
    settings = Settings.load({"data": str(data)})
    begun: dict[str, Any] = {}
    if demo is not None:
        begun, model = demonstrated(demo, own_start)
    dtype = "bfloat16" if begun.get("training", {}).get("precision") == "bfloat16" else "auto"
    start: str | None = None
    with SqliteLedger(data / "ledger.sqlite3") as ledger:
        for arm in arms:
            known = ledger.cycle(f"{arm}-{seed}")
            if any(one["arm"] == arm and one["seed"] == seed for one in rows(results, tokens, small, model)):
                start = known.plan.get("start", start) if known is not None and not own_start else start
                continue
            shape: dict[str, Any] = {**begun}
            for name, part in ((SMALL_DEMO if begun else SMALL) if small else {}).items():
                shape[name] = {**shape.get(name, {}), **part}
            steps = most or max(20, (tokens or 0) // LEAST_A_STEP)
            budget = {"steps": steps, "watch_drop": 1.0, "watch_every": steps, "checkpoint_every": steps}
            budget = {} if tokens is None and most is None else budget
            if own_start:
                shape["warm_start"] |= {"learning_rate": WARM_RATES[ARMS[arm].get("method", "full")]}
            recipe = Recipe.model_validate({**shape, "training": {**shape.get("training", {}), **budget, **ARMS[arm]}})
            plan: dict[str, Any] = {"recipe": recipe.model_dump(mode="json")}
            if start is not None:
                plan["start"] = start
            now = utc_now()
            cycle = known or Cycle(
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
            begun_at = ledger.newest_event()
            sandboxes = runtime_settings(settings, data)
            with WorkContext(data, ledger, sandboxes, recipe.agent, load(None), dtype=dtype) as context:
                progress = CycleProgress(cycle, ledger, time.monotonic)
                cycles.CycleRun(cycle, context, progress, model).train()
                progress = CycleProgress(progress.cycle, ledger, time.monotonic)
                cycles.CycleRun(progress.cycle, context, progress, model).evaluate()
            start = None if own_start else progress.cycle.plan["start"]
            evaluation = ledger.evaluation(f"{cycle.id}.evaluation")
            assert evaluation is not None
            sampled = compare(evaluation.candidate, evaluation.champion)
            greedy = compare(evaluation.candidate_greedy, evaluation.champion_greedy)
            trained: list[Judged] = []
            spent = learned = taken = 0
            waits: list[float] = []
            ages: list[float] = []
            lengths: list[float] = []
            said = [
                event.figures for _, event in ledger.events(after=begun_at, limit=1_000_000) if event.kind == "step"
            ]
            mismatch = [figures["learning_mismatch_kl"] for figures in said if "learning_mismatch_kl" in figures]
            cut = 0.0
            for step in ledger.recorded_steps(cycle.id):
                record = ledger.step(cycle.id, step)
                assert record is not None
                groups: tuple[Group, ...] = record.groups
                learned_from = trained_on(record.judged, groups)
                trained += [one for one in learned_from if one.verdict.passed]
                learned += sum(one.rollout.sampled_tokens for one in learned_from)
                spent += sum(one.rollout.sampled_tokens for one in record.judged)
                taken += 1
                waits.append(record.metrics["learner_wait_share"])
                ages.append(record.metrics["staleness_mean"])
                lengths.append(record.metrics["length"])
                cut += record.metrics.get("stragglers_cut", 0.0)
            calls = sum(len(one.rollout.calls) for one in trained)
            figures = {
                "arm": arm,
                "seed": seed,
                "budget": tokens,
                "small": small,
                "model": model.name if model is not None else None,
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
                "tokens": spent,
                "trained_tokens": learned,
                "steps": taken,
                "passed": {one.task: one.passed for one in evaluation.candidate.items},
                "seconds": progress.cycle.seconds,
                "load": os.getloadavg()[0],
                "ended": str(utc_now()),
                "learner_wait_share": waits[-1] if waits else 0.0,
                "staleness": mean(ages) if ages else 0.0,
                "length_first": mean(lengths[:ENDS]) if lengths else 0.0,
                "length_last": mean(lengths[-ENDS:]) if lengths else 0.0,
                "mismatch_kl": mean(mismatch) if mismatch else 0.0,
                "cut": cut,
            }
            with results.open("a") as file:
                file.write(json.dumps(figures) + "\n")


def rows(results: Path, tokens: int | None, small: bool, model: Path | None) -> list[dict[str, Any]]:
    """The lines of earlier arms with the same settings."""
    if not results.exists():
        return []
    asked = (tokens, small, model.name if model is not None else None)
    found = [json.loads(line) for line in results.read_text().splitlines()]
    return [one for one in found if (one["budget"], one["small"], one["model"]) == asked]


def by_seed(found: list[dict[str, Any]], arms: list[str], beside: str = PLAIN) -> list[dict[str, Any]]:
    """One for each seed that has the arm `beside`: its arms, each with the questions that it won and lost against
    that."""
    seeds: dict[int, dict[str, Any]] = {}
    for one in found:
        if one["arm"] in arms:
            seeds.setdefault(one["seed"], {"seed": one["seed"]})[one["arm"]] = one
    whole = [seeds[seed] for seed in sorted(seeds) if beside in seeds[seed]]
    for of_seed in whole:
        plain = of_seed[beside]["passed"]
        for arm in of_seed.keys() & set(arms):
            pairs = [(won, plain[task]) for task, won in of_seed[arm]["passed"].items()]
            pairs = [pair for pair in pairs if None not in pair]
            of_seed[arm] |= {
                "won": sum(a > b for a, b in pairs),
                "lost": sum(a < b for a, b in pairs),
                "items": len(pairs),
            }
    return whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--arms", default=f"{PLAIN},roc", help=f"of {', '.join(ARMS)}; or all")
    parser.add_argument("--tokens", type=int, help="sampled tokens of each arm")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--model", type=Path, help="a model folder to begin with")
    parser.add_argument("--demo", type=Path, help="the data folder of a demonstration to begin with")
    parser.add_argument("--own-start", action="store_true", help="with --demo: each arm makes its own warm start")
    parser.add_argument("--steps", type=int, help="steps of each arm")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--results", type=Path, help="a file that lines are added to")
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument("--beside", default=PLAIN, choices=ARMS, help="the arm that the others are compared with")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arms = list(ARMS) if arguments.arms == "all" else arguments.arms.split(",")
    if unknown := set(arms) - ARMS.keys():
        parser.error(f"there is no arm {', '.join(sorted(unknown))}; there are {', '.join(ARMS)}")
    if arguments.table and arguments.results is None:
        parser.error("--table needs --results")
    if arguments.own_start and arguments.demo is None:
        parser.error("--own-start needs --demo")
    arms = [arguments.beside, *(arm for arm in arms if arm != arguments.beside)]
    with tempfile.TemporaryDirectory(prefix="assay-learning-") as folder:
        results = (arguments.results or Path(folder) / "results.jsonl").resolve()
        demo = arguments.demo and arguments.demo.resolve()
        model = arguments.model and arguments.model.resolve()
        model = demonstrated(demo, arguments.own_start)[1] if demo is not None else model
        if arguments.one is not None:
            data = results.with_suffix(f".{arguments.one}")
            data.mkdir(exist_ok=True)
            beside = (results, demo, arguments.steps, arguments.own_start)
            one_seed(arguments.one, data, arms, arguments.tokens, arguments.small, model, *beside)
            return
        if not arguments.table:
            run_seeds(arguments, arms, results)
        found = by_seed(rows(results, arguments.tokens, arguments.small, model), arms, arguments.beside)
    if not found:
        sys.exit(f"no seed has its arm {arguments.beside} yet")
    for one in found:
        print(row(one, [arm for arm in arms if arm in one]))
    arms = [arm for arm in arms if any(arm in one for one in found)]
    print(table(found, arms, arguments.beside))
    summary = {"arms": arms, "tokens": arguments.tokens, "small": arguments.small, **summarise(found, arms)}
    print(json.dumps({name: value for name, value in summary.items() if name != "seeds"}, indent=1))
    write_run(summary, arguments.json)


def run_seeds(arguments: argparse.Namespace, arms: list[str], results: Path) -> None:
    """Runs each seed in a process of its own, some at once. Ends the program at the end when one failed."""
    waiting = [int(seed) for seed in arguments.seeds.split(",")]
    running: dict[int, subprocess.Popen[bytes]] = {}
    failed: list[str] = []
    while waiting or running:
        while waiting and len(running) < arguments.parallel:
            seed = waiting.pop(0)
            command = [sys.executable, "-m", "benchmarks.learning", "--one", str(seed), "--arms", ",".join(arms)]
            command += ["--results", str(results), "--beside", arguments.beside]
            command += ["--tokens", str(arguments.tokens)] * (arguments.tokens is not None)
            command += ["--small"] * arguments.small
            command += ["--model", str(arguments.model.resolve())] if arguments.model is not None else []
            command += ["--demo", str(arguments.demo.resolve())] if arguments.demo is not None else []
            command += ["--own-start"] * arguments.own_start
            command += ["--steps", str(arguments.steps)] if arguments.steps is not None else []
            running[seed] = subprocess.Popen(command, cwd=ROOT)
        for seed, process in list(running.items()):
            if process.poll() is not None:
                del running[seed]
                if process.returncode != 0:
                    failed.append(str(seed))
        time.sleep(0.5)
    if failed:
        sys.exit(f"seeds {', '.join(failed)} failed; what has ended is in {results}, and the same command goes on")


def row(one: dict[str, Any], arms: list[str]) -> str:
    parts = [f"seed {one['seed']}"]
    for arm in arms:
        part = one[arm]
        parts.append(
            f"{arm} {part['before']:.3f} -> {part['after']:.3f} "
            f"({part['gain']:+.1f} [{part['gain_low']:+.1f}, {part['gain_high']:+.1f}]), "
            f"greedy {part['greedy_before']:.3f} -> {part['greedy_after']:.3f}, errors in correct: "
            f"trained on {part['errors_trained_on']:.4f}, held out {part['errors_before']:.3f} -> "
            f"{part['errors_held_out']:.3f}"
        )
    return " | ".join(parts)


def table(found: list[dict[str, Any]], arms: list[str], beside: str = PLAIN) -> str:
    """An arm a row, in Markdown. Against `beside`: over questions (pairs of all seeds together), and over seeds."""
    columns = (
        "arm",
        "seeds",
        "sampled tokens, thousands",
        "steps",
        "success",
        "greedy",
        f"over {'plain GRPO' if beside == PLAIN else beside}, points, 95 % over questions",
        "95 % over seeds",
        "tool errors in held-out right answers",
        "tokens of a rollout, first and last steps",
        "mismatch KL of learner and engine",
        "cut",
        "age of tokens, steps",
        "seconds of training, of these the learner waits",
        "tokens trained on, a minute",
        f"times those of {beside} (means over seeds)",
    )
    rows = [columns, ("---",) * len(columns)]
    for arm in arms:
        parts = [one[arm] for one in found if arm in one]
        tokens, steps, after, greedy, errors, age, waits, first, last, cut, mismatch = (
            mean(part.get(name, 0.0) for part in parts)
            for name in (
                "tokens", "steps", "after", "greedy_after", "errors_held_out", "staleness", "learner_wait_share",
                "length_first", "length_last", "cut", "mismatch_kl",
            )
        )  # fmt: skip
        seconds = f"{mean(part['seconds']['training'] for part in parts):.0f}, {100 * waits:.0f} %"
        pace, ratio = f"{_a_minute(parts):.0f}", "" if arm == beside else f"{_times(parts, found, beside):.2f}"
        against = ("", "") if arm == beside else (_over_questions(parts), _over_seeds(parts))
        rows.append(
            (
                *(arm, str(len(parts)), f"{tokens / 1000:.0f}", f"{steps:.0f}", f"{after:.3f}", f"{greedy:.3f}"),
                *(*against, f"{errors:.3f}", f"{first:.1f}, {last:.1f}", f"{mismatch:.2g}", f"{cut:.0f}"),
                *(f"{age:.2f}", seconds, pace, ratio),
            )
        )
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _a_minute(parts: list[dict[str, Any]]) -> float:
    """Trained tokens a minute of training; 0 of lines that do not have them."""
    return mean(60 * part.get("trained_tokens", 0) / part["seconds"]["training"] for part in parts)


def _times(parts: list[dict[str, Any]], found: list[dict[str, Any]], beside: str) -> float:
    """Against the same seeds of the arm `beside`."""
    seeds = {part["seed"] for part in parts}
    return _a_minute(parts) / max(1e-9, _a_minute([one[beside] for one in found if one["seed"] in seeds]))


def _over_questions(parts: list[dict[str, Any]]) -> str:
    from policies.statistics import paired_difference

    won, lost, items = (sum(part[name] for part in parts) for name in ("won", "lost", "items"))
    low, high = paired_difference(won, lost, items, alpha=0.05)
    return f"{100 * (won - lost) / items:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def _over_seeds(parts: list[dict[str, Any]]) -> str:
    gains = [100 * (part["won"] - part["lost"]) / part["items"] for part in parts]
    if len(gains) < 2:
        return "one seed"
    half = T_975[len(gains) - 1] * stdev(gains) / len(gains) ** 0.5
    return f"[{mean(gains) - half:+.1f}, {mean(gains) + half:+.1f}]"


def summarise(found: list[dict[str, Any]], arms: list[str]) -> dict[str, Any]:
    def average(arm: str, name: str) -> float:
        return mean(one[arm][name] for one in found)

    summary: dict[str, Any] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    }
    if all("roc" in one and PLAIN in one for one in found):
        lower = [one[PLAIN]["after"] - one["roc"]["after"] for one in found]
        widths = [(one["roc"]["after_high"] - one["roc"]["after_low"]) for one in found]
        summary |= {
            "smallest_gain": min(one["roc"]["gain"] for one in found),
            "smallest_gain_low": min(one["roc"]["gain_low"] for one in found),
            "trained_on_ratio": average("roc", "errors_trained_on") / max(average(PLAIN, "errors_trained_on"), 1e-9),
            "held_out_ratio": average("roc", "errors_held_out") / max(average(PLAIN, "errors_held_out"), 1e-9),
            "accuracy_roc": average("roc", "after"),
            "accuracy_grpo": average(PLAIN, "after"),
            "accuracy_lower_by_at_most_the_interval": all(a <= b for a, b in zip(lower, widths, strict=True)),
        }
    return {**summary, "seeds": found}


if __name__ == "__main__":
    main()
