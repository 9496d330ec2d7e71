"""Does the sampler of difficulty hold what is trained on between .2 and .8? A simulation with abilities that move.

    python benchmarks/difficulty.py [--steps 200] [--seeds 5] [--json FILE]

40 tasksets of 5 levels. A model has an ability in each, which walks upward by chance; a task of a level passes with a
logistic chance of ability minus difficulty, and tasks of one level differ. Each step asks 24 tasks, 16 rollouts each.
Told beside asking everything equally often: the share of tasks whose level has a pass rate from .2 to .8, and the
groups with right and wrong rollouts. Bars: at least 70 %; at least 1.5 times as many groups.

The first ten steps are told alone: beside them, of trainings that begin with what `assay curriculum measure` finds of
each place, two questions with four attempts each. Bar: 60 % informative groups in the
tenth, as a mean over seeds. Nothing here depends on a clock.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run
from curriculum.difficulty import HIGH, LOW, Difficulty, Place, Seen

TASKSETS, LEVELS, TASKS, ROLLOUTS = 40, 5, 24, 16
SPACING, SPREAD, DRIFT = 1.6, 0.7, 0.02
QUESTIONS, ATTEMPTS, FIRST = 2, 4, 10


def logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def simulated(seed: int, steps: int, *, adaptive: bool, measured: bool = False) -> dict[str, Any]:
    """One training: share inside the band, and groups with signal in each step."""
    world, choice = Random(f"world {seed}"), Random(f"choice {seed}")
    names = [f"t{number}" for number in range(TASKSETS)]
    ability = {name: world.gauss(-1.5, 2.0) for name in names}
    known = Difficulty()
    if measured:
        known = known.after([asked(Place(name, level), ability, choice) for name in names for level in range(LEVELS)])
    inside, by_step = 0, []
    for _ in range(steps):
        informative = 0
        seen: list[Seen] = []
        for _ in range(TASKS):
            if adaptive:
                place = known.choose(dict.fromkeys(names, LEVELS), [1.0] * TASKSETS, choice)
            else:
                place = Place(choice.choice(names), choice.randrange(LEVELS))
            gap = ability[place.taskset] - SPACING * (place.level - 1)
            inside += LOW <= logistic(gap) <= HIGH
            passes = logistic(gap + choice.gauss(0, SPREAD))
            passed = sum(choice.random() < passes for _ in range(ROLLOUTS))
            informative += 0 < passed < ROLLOUTS
            seen.append(Seen(place, passed, ROLLOUTS))
        known = known.after(seen)
        by_step.append(informative)
        for name in names:
            ability[name] += world.gauss(DRIFT, 3 * DRIFT)
    first = [informative / TASKS for informative in by_step[:FIRST]]
    return {"inside": inside / (steps * TASKS), "groups": sum(by_step) / steps, "first": first}


def asked(place: Place, ability: dict[str, float], rng: Random) -> Seen:
    """What a measurement sees of a place."""
    gap = ability[place.taskset] - SPACING * (place.level - 1)
    rates = [rate for _ in range(QUESTIONS) for rate in [logistic(gap + rng.gauss(0, SPREAD))] * ATTEMPTS]
    return Seen(place, sum(rng.random() < rate for rate in rates), len(rates))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    report: dict[str, Any] = {}
    arms = {"uniform": {"adaptive": False}, "adaptive": {"adaptive": True}}
    for name, arm in {**arms, "measured": {"adaptive": True, "measured": True}}.items():
        runs = [simulated(seed, args.steps, **arm) for seed in range(args.seeds)]
        report[name] = {
            figure: [round(fold(run[figure] for run in runs), 3) for fold in (mean, min, max)]
            for figure in ("inside", "groups")
        }
        report[name]["first"] = [round(mean(step), 3) for step in zip(*(run["first"] for run in runs), strict=True)]
    report["times"] = round(report["adaptive"]["groups"][0] / report["uniform"]["groups"][0], 2)
    print(json.dumps(report, indent=2))
    write_run(report, args.json)
    held = report["adaptive"]["inside"][0] >= 0.7 and report["times"] >= 1.5
    sys.exit(0 if held and report["measured"]["first"][-1] >= 0.6 else 1)


if __name__ == "__main__":
    main()
