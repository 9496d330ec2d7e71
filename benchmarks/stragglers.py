"""What it gains to cut stragglers, and what it costs.

    python benchmarks/stragglers.py [--engines 1,8] [--seeds 3] [--ledger FILE] [--json FILE]

The simulation of `benchmarks/scheduler.py` with its lengths, or those of a ledger's rollouts, where rollouts may have
8,192 tokens, or 32,768: nobody is cut (`past` 0), or those that are longer than `past` times the length that nine of
ten rollouts of the three steps before stayed within (`appliance.learning.straggler_limit`). Six steps follow each
other, and the last three are measured. Memory is a third of what all rollouts would hold at once, or enough for all.

    time      steps of the simulation until the last rollout of a step has ended, of those without a rule
    tokens    sampled and computed again, of those without a rule
    rows      share of the time of engines' rows, as many as are ever used at once, in which a rollout is there
    cut       share of the rollouts: each is a failure, whatever it would have come to

What a model learns from that is `python -m benchmarks.learning --arms plain,cut,cut_soon`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.learning.straggler_limit import WINDOW, StragglerLimits, StragglerRecipe
from benchmarks.scheduler import BLOCK, LONGEST, Engines, Recorded, Work, ours, recorded, rollouts_for

PASTS = (0.0, 3.0, 2.0, 1.5, 1.1)
BUDGETS = (LONGEST, 4 * LONGEST)
MEASURED = 3


class Watched(Engines):
    """Says how many rollouts are there, step by step."""

    def __init__(self, *of_engines: Any) -> None:
        super().__init__(*of_engines)
        self.there: list[int] = []

    def advance(self) -> list[int]:
        ended = super().advance()
        self.there.append(int(self.active.sum()) + len(ended))
        return ended


def measured(
    past: float, engines: int, seed: int, longest: int, tight: bool, known: Recorded | None
) -> dict[str, float]:
    recipe, limits = StragglerRecipe(past=past), StragglerLimits()
    memory: dict[str, Any] = {"longest": longest}
    found = []
    for step in range(WINDOW + MEASURED):
        work = Work(np.random.default_rng((seed, engines, step)), rollouts_for(engines), known, longest)
        wanted = work.final - work.prompt
        held = int(work.final.sum())
        limit = limits.of_step(step, recipe).get("all")
        most = wanted.max() if limit is None else math.ceil(limit / BLOCK)
        work.final = work.prompt + np.minimum(wanted, most)
        there = Watched(work, engines, math.ceil(held / 3 / engines) if tight else 2 * held)
        ours(there, memory)
        got = work.final - work.prompt
        limits = limits.after(step, {"all": (got * BLOCK).tolist()}, recipe)
        if step >= WINDOW:
            rows = max(there.there)
            found.append(
                {
                    "time": there.step,
                    "tokens": int(got.sum()) + there.regenerated,
                    "rows": sum(there.there) / (rows * there.step),
                    "cut": float((wanted > most).mean()),
                }
            )
    return {name: mean(one[name] for one in found) for name in found[0]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="1,8")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ledger", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    known = recorded(options.ledger) if options.ledger else None
    lines = []
    for engines in map(int, options.engines.split(",")):
        for longest in BUDGETS[:1] if known else BUDGETS:
            for tight in (True, False):
                room = "a third of the memory" if tight else "memory for all"
                print(f"engines: {engines}, {rollouts_for(engines)} rollouts of {longest} tokens at most, {room}")
                usual: dict[str, float] = {}
                for past in PASTS:
                    of_seeds = [measured(past, engines, seed, longest, tight, known) for seed in range(options.seeds)]
                    one = {name: mean(seed[name] for seed in of_seeds) for name in of_seeds[0]}
                    usual = usual or one
                    time, tokens = one["time"] / usual["time"], one["tokens"] / usual["tokens"]
                    print(
                        f"    past {past:3}: time {time:4.2f}, tokens {tokens:4.2f}, "
                        f"rows {100 * one['rows']:3.0f} %, cut {100 * one['cut']:4.1f} %",
                        flush=True,
                    )
                    about = {"engines": engines, "longest": longest, "tight": tight, "past": past}
                    lines.append({**one, **about, "time": time, "tokens": tokens})
    if options.json is not None:
        options.json.write_text(json.dumps(lines, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
