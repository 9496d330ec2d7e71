"""How often the gate `retention` lets a loss through, stops a ratchet, and passes a candidate that lost nothing.

    python benchmarks/retention.py --json FILE
    python benchmarks/retention.py --quarters 200 --runs 5000

The gates' own functions on drawn counts, on one core. Bars of the packaged policy, whose margin is 10 points:

- a quarter of 12 candidates, each shown to be better and each losing 4 points of one taskset: the third loss is never
  promoted in at least 95 % of 1,000 quarters; without the gate it always is
- a candidate that lost the margin or more passes on some of its nights with at most `alpha` (upper 99 % limit)
- a candidate that lost nothing passes within five nights in at least 80 %, with up to a fifth discordant questions: one
  taskset and five together, 102 questions each a night, as the first of its quarter

The same with later candidates of the quarter, and with 204 questions, is shown without a bar.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.record import write_run
from policies.contract.decision import GateOutcome
from policies.contract.evidence import PairCounts
from policies.gates import non_regression, retention
from policies.gates.tasksets import NonRegressionRules, nights_outcome
from policies.policy import load
from policies.simulate import Assumed, simulate
from policies.statistics import wilson
from policies.statistics.sequential import level_of

NIGHTS = 5
FALSE_LIMIT = 0.02
"""Two-sided error of the interval whose upper end is the 99 % limit."""


def passed(
    rng: np.random.Generator,
    rules: NonRegressionRules,
    alpha: float,
    *,
    loss: float,
    apart: float,
    items: int,
    tasksets: int,
    runs: int,
) -> int:
    """Candidates of which every taskset passed within five nights."""
    discordant = rng.binomial(items, apart, size=(runs, tasksets, NIGHTS))
    gained = rng.binomial(discordant, 0.5 - loss / (2 * apart))
    won, gone = gained.cumsum(axis=2).tolist(), (discordant - gained).cumsum(axis=2).tolist()
    found = 0
    for ups, downs in zip(won, gone, strict=True):
        nights = (
            [PairCounts(items * (night + 1), up[night], down[night]) for night in range(NIGHTS)]
            for up, down in zip(ups, downs, strict=True)
        )
        found += all(nights_outcome(one, rules, alpha) is GateOutcome.PASSED for one in nights)
    return found


def main() -> int:
    """1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quarters", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    policy, rng, met = load(), np.random.default_rng(asked.seed), True
    figures: dict[str, object] = {"policy": policy.digest, "margin": policy.rules_of(retention.GATE).margin}

    for apart in (10.0, 20.0):
        assumed = Assumed(quarters=asked.quarters, nights=1, items=510, families=5, discordant=apart, seed=asked.seed)
        found = simulate(policy, assumed)
        met = met and found.stopped_share >= 0.95 and found.stopped_share_before <= 0.05
        figures[f"ratchet {apart:g}"] = found.model_dump(
            include={"stopped_share", "stopped_share_before", "lost_points", "lost_points_before"}
        )
        print(
            f"ratchet, {apart:g} % discordant: stopped {100 * found.stopped_share:.1f} %, without the gate "
            f"{100 * found.stopped_share_before:.1f} %; lost {found.lost_points:.1f} and {found.lost_points_before:.1f}"
        )

    for gate in (non_regression.GATE, retention.GATE):
        rules = policy.rules_of(gate)
        for loss, apart in ((0.1, 0.1), (0.1, 0.2), (0.1, 0.4), (0.12, 0.2), (0.2, 0.3)):
            let = passed(rng, rules, rules.alpha, loss=loss, apart=apart, items=102, tasksets=1, runs=asked.runs)
            limit = wilson(let, asked.runs, alpha=FALSE_LIMIT)[1]
            met = met and limit <= rules.alpha
            figures[f"{gate.name}, loss {loss}, discordant {apart}"] = [let / asked.runs, limit]
            print(
                f"{gate.name}: a loss of {100 * loss:g} points ({apart:g} discordant) ever passes in "
                f"{100 * let / asked.runs:.2f} %, at most {100 * limit:.2f}"
            )

    rules = policy.rules_of(retention.GATE)
    for items in (102, 204):
        for apart in (0.1, 0.2):
            for number in (1, 2, 4, 8, 12):
                one, five = (
                    passed(
                        rng,
                        rules,
                        level_of(rules.alpha, number),
                        loss=0.0,
                        apart=apart,
                        items=items,
                        tasksets=many,
                        runs=asked.runs // many,
                    )
                    / (asked.runs // many)
                    for many in (1, 5)
                )
                if items == 102 and number == 1:
                    met = met and min(one, five) >= 0.8
                figures[f"no loss, {items} items, discordant {apart}, candidate {number}"] = [one, five]
                print(
                    f"no loss, {items} items, {apart:g} discordant, candidate {number}: one taskset {100 * one:.1f} %, "
                    f"five {100 * five:.1f} %"
                )
    figures["met"] = met
    write_run(figures, asked.json)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
