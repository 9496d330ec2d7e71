"""What the choice of a job's next attempts costs, beside an oracle in simulation and a fixed number in replay.

    python -m benchmarks.budgets [--jobs 10000] [--seeds 5] [--ledger FOLDER ...] [--group 16] [--json FILE]

Simulation: jobs of three kinds of check, whose success rates come from zero-inflated beta distributions, or from
two-point and logit-normal ones that the model cannot express. The product's choice (`appliance.jobs.spending`) learns
from the jobs before; the oracle knows the distribution, makes one attempt after another, and stops when the next is not
worth its cost. The cost of a job is its attempts, plus the worth of a verified answer if there is none. Steps of the
product make their attempts together; all of them count, also those that were running when one passed.
Bars: at most 1.10 of the oracle's cost under the right model, 1.25 under wrong ones.

Replay: each recorded group of `--group` rollouts of the nights in `--ledger` is a job with sealed attempts, its taskset
and level a kind of check. A fixed number makes 8 attempts, all at once, or one after another until one passes. Bars: at
least 20 % fewer attempts at a solve rate within one point; in each bin of 200 steps, the share that passed is inside
the 99 % interval around what was expected.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import NormalDist, mean, stdev

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.jobs.spending import WORTH, Experience, next_step
from appliance.jobs.success_model import ASSUMED, Tries, fitted
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.jobs import JobStep
from benchmarks.record import write_run

BUDGET = 16
FIXED = 8
BIN = 200
LEARNS_EVERY = 50
"""Jobs of a kind after which its model is fitted again; the product does so for every job."""

Draw = Callable[[random.Random], float]


def zero_inflated(hopeless: float, a: float, b: float) -> Draw:
    return lambda rng: 0.0 if rng.random() < hopeless else rng.betavariate(a, b)


def two_point(share: float, low: float, high: float) -> Draw:
    return lambda rng: high if rng.random() < share else low


def logit_normal(middle: float, spread: float) -> Draw:
    return lambda rng: 1 / (1 + math.exp(-rng.gauss(middle, spread)))


WORLDS: dict[str, dict[str, Draw]] = {
    "zero-inflated beta": {
        "easy": zero_inflated(0.05, 2.0, 1.0),
        "middling": zero_inflated(0.3, 0.4, 1.2),
        "hard": zero_inflated(0.7, 0.3, 2.0),
    },
    "two-point": {
        "easy": two_point(0.9, 0.02, 0.7),
        "middling": two_point(0.5, 0.0, 0.3),
        "hard": two_point(0.1, 0.001, 0.15),
    },
    "logit-normal": {
        "easy": logit_normal(1.5, 1.0),
        "middling": logit_normal(-1.5, 2.0),
        "hard": logit_normal(-5.0, 2.5),
    },
}


@dataclass
class Spent:
    """What a way of choosing attempts came to; `at_once` also counts attempts that ran beside the one that passed."""

    jobs: int = 0
    solved: int = 0
    attempts: int = 0
    at_once: int = 0
    expected: list[tuple[float, bool]] = field(default_factory=list)

    def cost(self, worth: float) -> float:
        return self.at_once + worth * (self.jobs - self.solved)


class Learner:
    """The product's choice, with a model of its own for each kind, learned from the attempts that it made."""

    def __init__(self, every: int = LEARNS_EVERY, budget: int = BUDGET) -> None:
        self._made: dict[str, list[Tries]] = defaultdict(list)
        self._known: dict[str, Experience] = {}
        self._every, self._budget = every, budget
        self.spent = Spent()

    def work(self, kind: str, outcomes: Iterator[bool]) -> None:
        """Makes the attempts at one job; `outcomes` are its sealed attempts."""
        made, spent = self._made[kind], self.spent
        if kind not in self._known or len(made) % self._every == 0 or len(made) < self._every:
            self._known[kind] = Experience(attempt=fitted(made, ASSUMED))
        before: list[JobStep] = []
        failed, solved = 0, False
        while not solved:
            left = self._budget - sum(one.attempts for one in before)
            step = next_step(self._known[kind], before, weights="", attempts=self._budget, left=left, tokens=None)
            if isinstance(step, str):
                break
            tried = [next(outcomes) for _ in range(step.attempts)]
            solved = any(tried)
            spent.expected.append((step.expected, solved))
            spent.at_once += len(tried)
            missed = tried.index(True) if solved else len(tried)
            spent.attempts += missed + solved
            failed += 0 if solved else missed
            before.append(step.model_copy(update={"failed": missed, "passed": int(solved), "ended": True}))
        spent.jobs += 1
        spent.solved += solved
        made.append(Tries(failed, before[-1].attempts if solved else 0))


def oracle(draws: dict[str, Draw], samples: int = 20_000) -> dict[str, int]:
    """Returns the attempts that are worth their cost for each kind, for whoever knows its distribution."""
    most = {}
    for kind, draw in draws.items():
        rng = random.Random(f"oracle {kind}")
        rates = [draw(rng) for _ in range(samples)]
        weights, count = [1.0] * samples, 0
        while count < BUDGET:
            solved = sum(weight * rate for weight, rate in zip(weights, rates, strict=True))
            if WORTH * BUDGET * solved < sum(weights):
                break
            weights = [weight * (1 - rate) for weight, rate in zip(weights, rates, strict=True)]
            count += 1
        most[kind] = count
    return most


def simulated(world: str, jobs: int, seed: int, most: dict[str, int]) -> dict[str, float]:
    """Returns the figures of one simulated run."""
    rng, draws = random.Random(f"{world} {seed}"), WORLDS[world]
    learner, best = Learner(), Spent()
    for _ in range(jobs):
        kind = rng.choice(sorted(draws))
        rate = draws[kind](rng)
        outcomes = [rng.random() < rate for _ in range(BUDGET)]
        learner.work(kind, iter(outcomes))
        ours = outcomes[: most[kind]]
        best.jobs += 1
        best.solved += any(ours)
        best.attempts += ours.index(True) + 1 if any(ours) else len(ours)
    best.at_once = best.attempts
    worth, spent = WORTH * BUDGET, learner.spent
    return {
        "cost": spent.cost(worth) / best.cost(worth),
        "attempts": spent.attempts / best.attempts,
        "at_once": spent.at_once / best.attempts,
        "solved": spent.solved / jobs,
        "oracle_solved": best.solved / jobs,
        "bins_outside": len(outside(spent.expected)),
    }


@cache
def _z() -> float:
    return NormalDist().inv_cdf(0.995)


def outside(expected: Sequence[tuple[float, bool]]) -> list[tuple[float, float]]:
    """Returns (expected, share that passed) of each bin of at least 200 predictions, in order, whose share is outside
    the 99 % interval of so many draws."""
    ordered, found = sorted(expected), []
    bins = max(1, len(ordered) // BIN)
    for number in range(bins):
        part = ordered[number * len(ordered) // bins : (number + 1) * len(ordered) // bins]
        chance, passed = mean(p for p, _ in part), mean(done for _, done in part)
        half = _z() * math.sqrt(sum(p * (1 - p) for p, _ in part)) / len(part)
        if abs(passed - chance) > half + 0.5 / len(part):
            found.append((chance, passed))
    return found


def groups_of(folder: Path, size: int) -> Iterator[tuple[str, list[bool]]]:
    """Yields the taskset and level of each recorded group of at least `size` judged rollouts, with what they came
    to."""
    with SqliteLedger(folder / "ledger.sqlite3") as ledger:
        for cycle in reversed(ledger.cycles()):
            for step in ledger.recorded_steps(cycle.id):
                record = ledger.step(cycle.id, step)
                assert record is not None
                levels = {str(task["id"]): f"{task['taskset']} {task['level']}" for task in record.tasks}
                by_task: dict[str, list[bool]] = defaultdict(list)
                for one in record.judged:
                    if one.rollout.branch_of is None and one.verdict.outcome.value != "infra_error":
                        by_task[one.rollout.task].append(one.verdict.passed)
                yield from ((levels[task], made) for task, made in by_task.items() if len(made) >= size)


def replayed(groups: Sequence[tuple[str, list[bool]]], seed: int, size: int) -> dict[str, float]:
    """Returns the figures of one replay, each group in an order of its own."""
    rng = random.Random(f"replay {seed}")
    learner, fixed, all_eight = Learner(every=1, budget=size), Spent(), 0
    for kind, made in groups:
        outcomes = rng.sample(made, size)
        learner.work(kind, iter(outcomes))
        first = outcomes[:FIXED]
        fixed.solved += any(first)
        fixed.attempts += first.index(True) + 1 if any(first) else len(first)
        all_eight += len(first)
    spent = learner.spent
    return {
        "fewer": 1 - spent.attempts / fixed.attempts,
        "fewer_than_all": 1 - spent.at_once / all_eight,
        "solved": spent.solved / len(groups),
        "fixed_solved": fixed.solved / len(groups),
        "bins": len(spent.expected) // BIN,
        "bins_outside": len(outside(spent.expected)),
    }


def _line(name: str, runs: Sequence[dict[str, float]]) -> str:
    parts = [
        f"{key} {mean(run[key] for run in runs):.3f} ± {stdev([run[key] for run in runs]) if len(runs) > 1 else 0:.3f}"
        for key in runs[0]
    ]
    return f"{name}: {', '.join(parts)}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ledger", type=Path, nargs="*", default=[], help="data folders whose groups are replayed")
    parser.add_argument("--group", type=int, default=BUDGET, help="rollouts of a replayed group: a job's budget")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    figures: dict[str, list[dict[str, float]]] = {}
    missed: list[str] = []
    for world, draws in WORLDS.items():
        most = oracle(draws)
        runs = [simulated(world, given.jobs, seed, most) for seed in range(given.seeds)]
        figures[world] = runs
        print(_line(f"{world} (oracle: {most})", runs), flush=True)
        if mean(run["cost"] for run in runs) > (1.10 if world == "zero-inflated beta" else 1.25):
            missed.append(f"{world}: cost")
    groups = [group for folder in given.ledger for group in groups_of(folder, given.group)]
    if groups:
        runs = [replayed(groups, seed, given.group) for seed in range(given.seeds)]
        figures["replay"] = runs
        print(_line(f"replay of {len(groups)} groups", runs), flush=True)
        if mean(run["fewer"] for run in runs) < 0.2 or mean(run["fixed_solved"] - run["solved"] for run in runs) > 0.01:
            missed.append("replay")
        if any(run["bins_outside"] for run in runs):
            missed.append("calibration")
    write_run(figures, given.json)
    for one in missed:
        print(f"missed: {one}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
