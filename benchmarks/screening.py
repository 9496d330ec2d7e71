"""Do more groups of a night teach something if a posterior chooses the tasks that get whole groups?

    python -m benchmarks.screening [--first 4] [--group 16] [--seeds 20] [--ledger FOLDER ...] [--json FILE]

Told are whole groups with right and wrong rollouts, per 1,000 rollouts, in nights of 960 tasks in steps of 16. `whole`
gives every task a whole group. `mixed` adds a second block only where the first block had both, without a posterior.
`screened` is the product's choice (`appliance.worker.training.screening`). `misled` is that choice by a wrong prior,
which it keeps all night: 64 groups of every kind that came from the kind at the other end of the pass rates. `signal`
adds 4 m (n - m) / n² per group of n with m passes; `hard` counts groups of tasks with a success rate below .1.

Simulation: the success rates of `benchmarks.budgets`, which the posterior's model has or lacks, and `banded`: rates
that the difficulty sampler leaves, so that nearly all groups have both. Replay: the groups that the nights in
`--ledger` recorded, in random order. Bar: the 95 % interval over seeds of `screened` and of `misled` over `whole` lies
above 0, with `banded` not below -2 %. Nothing here depends on a clock.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import NormalDist, mean, stdev
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.worker.training.screening import GroupCounts, Screen
from benchmarks.budgets import WORLDS, groups_of, zero_inflated
from benchmarks.record import write_run
from curriculum.difficulty import Place, Seen

STEPS, TASKS = 60, 16
ARMS = ("whole", "mixed", "screened", "misled")
HARD = 0.1
LOSS = -2.0
"""Least percentage of the bar where nearly all groups have both outcomes."""
BANDED = "banded"
NIGHTS = {
    **WORLDS,
    BANDED: {"low": zero_inflated(0.02, 3, 6), "middle": zero_inflated(0.02, 4, 4), "high": zero_inflated(0.02, 6, 3)},
}


class Asked(NamedTuple):
    """A task with the sealed outcomes of its whole group."""

    kind: str
    outcomes: list[bool]
    rate: float

    @property
    def place(self) -> Place:
        return Place(self.kind, 0)


def night(world: str, seed: int, size: int) -> list[Asked]:
    """Returns the tasks of a simulated night."""
    rng, draws = random.Random(f"night {world} {seed}"), NIGHTS[world]
    tasks = []
    for _ in range(STEPS * TASKS):
        kind = rng.choice(sorted(draws))
        rate = draws[kind](rng)
        tasks.append(Asked(kind, [rng.random() < rate for _ in range(size)], rate))
    return tasks


def shuffled(groups: Sequence[tuple[str, list[bool]]], seed: int, size: int) -> list[Asked]:
    """Returns recorded groups in random order, each with `size` of its rollouts in random order."""
    rng = random.Random(f"shuffled {seed}")
    return [Asked(kind, rng.sample(made, size), mean(made)) for kind, made in rng.sample(groups, len(groups))]


def sampled(tasks: Iterator[Asked], arm: str, first: int, size: int, known: GroupCounts) -> dict[str, float]:
    """Returns groups, their signal and hard groups per 1,000 rollouts, for one night that asks tasks until they end."""
    rollouts, groups, signal, hard, mixed = 0, 0, 0.0, 0, 0.5
    while len(step := list(islice(tasks, TASKS))) == TASKS:
        continued: Container[int] = range(TASKS)
        if arm != "whole":
            screen = Screen.of([known.model(one.place) for one in step], first, size)
            if arm == "mixed":
                count = int(TASKS * size / (first + mixed * screen.more))
                screen = screen._replace(rate=(1 - 1e-9) / screen.more, tasks=count)
            step += islice(tasks, screen.tasks - TASKS)
            passes = [sum(one.outcomes[:first]) for one in step]
            mixed = 0.9 * mixed + 0.1 * mean(0 < one < first for one in passes)
            blocks = [(known.model(one.place), each, first - each) for one, each in zip(step, passes, strict=True)]
            continued = screen.continued(blocks, TASKS * size)
        seen = []
        for at, one in enumerate(step):
            made = one.outcomes if at in continued else one.outcomes[:first]
            passed, failed = sum(made), len(made) - sum(made)
            seen.append(Seen(one.place, passed, len(made)))
            if len(made) == size and passed and failed:
                groups += 1
                signal += 4 * passed * failed / size**2
                hard += one.rate < HARD
        rollouts += sum(one.judged for one in seen)
        assert sum(one.judged for one in seen) <= TASKS * size
        if arm == "screened":
            known = known.after(seen)
    return {"groups": 1000 * groups / rollouts, "signal": 1000 * signal / rollouts, "hard": 1000 * hard / rollouts}


def misled(tasks: Sequence[Asked]) -> GroupCounts:
    """Returns counts in which each kind has the groups of the kind at the other end of these tasks' pass rates."""
    kinds: dict[str, list[Seen]] = defaultdict(list)
    for one in tasks:
        kinds[one.kind].append(Seen(one.place, sum(one.outcomes), len(one.outcomes)))
    ordered = sorted(kinds, key=lambda kind: (mean(one.passed / one.judged for one in kinds[kind]), kind))
    swapped = zip(ordered, reversed(ordered), strict=True)
    return GroupCounts().after(one._replace(place=Place(kind, 0)) for kind, other in swapped for one in kinds[other])


def compared(nights: Sequence[Sequence[Asked]], first: int, size: int) -> dict[str, dict[str, list[float]]]:
    """Returns each arm's figures in these nights, and its groups over those of `whole` and of `mixed`, in per cent. The
    wrong prior of a night is learned from the night before."""
    runs: dict[str, list[dict[str, float]]] = defaultdict(list)
    for at, tasks in enumerate(nights):
        for arm in ARMS:
            known = misled(nights[at - 1]) if arm == "misled" else GroupCounts()
            runs[arm].append(sampled(iter(tasks), arm, first, size, known))
    found = {arm: {key: [one[key] for one in figures] for key in figures[0]} for arm, figures in runs.items()}
    for arm in ARMS:
        for other in ("whole", "mixed"):
            pairs = zip(found[arm]["groups"], found[other]["groups"], strict=True)
            found[arm][f"% over {other}"] = [100 * (one / beside - 1) for one, beside in pairs]
    return found


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Returns the mean and its 95 % interval, by Student's t as a series in the normal quantile."""
    free, z = len(values) - 1, NormalDist().inv_cdf(0.975)
    half = (z + (z**3 + z) / (4 * free)) * stdev(values) / math.sqrt(len(values)) if free else math.inf
    return mean(values), mean(values) - half, mean(values) + half


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=4, help="rollouts of a first block")
    parser.add_argument("--group", type=int, default=16, help="rollouts of a whole group")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--ledger", type=Path, nargs="*", default=[], help="data folders whose groups are replayed")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    nights: dict[str, list[list[Asked]]] = {
        world: [night(world, seed, given.group) for seed in range(given.seeds)] for world in NIGHTS
    }
    for folder in given.ledger:
        groups = list(groups_of(folder, given.group))
        name = f"replay of {len(groups)} groups of {folder}"
        nights[name] = [shuffled(groups, seed, given.group) for seed in range(given.seeds)]
    report: dict[str, dict[str, dict[str, tuple[float, float, float]]]] = {}
    missed = []
    for name, some in nights.items():
        found = compared(some, given.first, given.group)
        report[name] = {arm: {key: interval(values) for key, values in found[arm].items()} for arm in ARMS}
        for arm in ARMS:
            told = (f"{key} {a:.1f} [{b:.1f}, {c:.1f}]" for key, (a, b, c) in report[name][arm].items())
            print(f"{name}, {arm}: {', '.join(told)}", flush=True)
            low = interval(found[arm]["% over whole"])[1]
            if arm in ("screened", "misled") and low <= (LOSS if name == BANDED else 0):
                missed.append(f"{name}, {arm}: {low:.1f} %")
    write_run(report, given.json)
    for one in missed:
        print(f"missed: {one}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
