"""How often a policy is fooled over a quarter, and how soon it finds a real gain: the bars of the packaged one.

    python benchmarks/policy.py --json FILE
    python benchmarks/policy.py --policy my.toml --quarters 500

The gates' own functions on made-up nights (`policies.simulate`), on one core. Bars: of 2,000 simulated quarters of 90
nights at most 5 % promote a candidate that is no better; a gain of 4 points on 800 questions, a fifth of them
discordant, is found within 5 nights in at least 80 %; within about a minute.

Before that the windows in which a promoted model is tried beside the champion (`canary_windows`), 100 of
people's jobs each: how often a model that is no worse is taken back (bar: the policy's own `alpha`), and how soon one
that is worse.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.canary_windows import Service, simulate_service
from benchmarks.record import write_run
from policies.contract.rules import ServiceRules
from policies.policy import load
from policies.simulate import Assumed, simulate

FOOLED_BAR = 0.05
POWER_BAR = 0.8
CHAMPIONS = (0.9, 0.6, 0.3)
"""Shares of the jobs that the champion verifies."""
FALLS = (1.0, 0.75, 0.5, 0.0)
"""What is left of that with the promoted model; 1: it is no worse."""


def windows(rules: ServiceRules, number: int, seed: int) -> tuple[list[dict[str, object]], bool]:
    """One row for each pair of models, and whether no model that is no worse was taken back too often."""
    rows: list[dict[str, object]] = []
    met = True
    for champion in CHAMPIONS:
        for fall in FALLS:
            assumed = Service(champion=champion, canary=round(champion * fall, 3), windows=number, seed=seed)
            found = simulate_service(rules, assumed)
            rows.append({**assumed.model_dump(), **found.model_dump()})
            met = met and (fall < 1.0 or found.taken_back_low <= rules.alpha)
            print(
                f"window: champion {100 * champion:g} %, promoted {100 * assumed.canary:g} %: taken back in "
                f"{100 * found.taken_back:.1f} % ({100 * found.taken_back_low:.1f} to "
                f"{100 * found.taken_back_high:.1f}), after {found.median_jobs} jobs"
            )
    return rows, met


def main() -> int:
    """1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", type=Path, help="the file; the packaged one otherwise")
    parser.add_argument("--quarters", type=int, default=2_000)
    parser.add_argument("--windows", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    policy = load(asked.policy)
    started, used = time.monotonic(), time.process_time()
    rows, rarely = windows(policy.service, asked.windows, asked.seed)
    found = simulate(policy, Assumed(quarters=asked.quarters, seed=asked.seed))
    figures = {
        **found.model_dump(mode="json"),
        "policy": policy.digest,
        "seconds": round(time.monotonic() - started, 1),
        "processor_seconds": round(time.process_time() - used, 1),
        "windows": rows,
        "met": found.null_promoted_share <= FOOLED_BAR and found.power >= POWER_BAR and rarely,
    }
    print(
        f"quarters fooled: {100 * found.null_promoted_share:.2f} % "
        f"({100 * found.null_promoted_low:.2f} to {100 * found.null_promoted_high:.2f}), bar {100 * FOOLED_BAR:g} %"
    )
    print(
        f"found within {found.assumed.within} nights: {100 * found.power:.1f} % "
        f"({100 * found.power_low:.1f} to {100 * found.power_high:.1f}), bar {100 * POWER_BAR:g} %"
    )
    print(f"{figures['processor_seconds']} s of one core, {figures['seconds']} s on the clock")
    write_run(figures, asked.json)
    return 0 if figures["met"] else 1


if __name__ == "__main__":
    sys.exit(main())
