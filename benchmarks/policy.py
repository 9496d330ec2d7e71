"""How often a policy is fooled over a quarter, and how soon it finds a real gain: the bars of the packaged one.

    python benchmarks/policy.py --json FILE
    python benchmarks/policy.py --policy my.toml --quarters 500

The gates' own functions on made-up nights (`policies.simulate`), on one core. Bars: of 2,000 simulated quarters of 90
nights at most 5 % promote a candidate that is no better; a gain of 4 points on 800 questions, a fifth of them
discordant, is found within 5 nights in at least 80 %; within about a minute.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from policies.policy import load
from policies.simulate import Assumed, simulate

FOOLED_BAR = 0.05
POWER_BAR = 0.8


def main() -> int:
    """1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", type=Path, help="the file; the packaged one otherwise")
    parser.add_argument("--quarters", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    policy = load(asked.policy)
    started, used = time.monotonic(), time.process_time()
    found = simulate(policy.promotion, Assumed(quarters=asked.quarters, seed=asked.seed))
    figures = {
        **found.model_dump(mode="json"),
        "policy": policy.digest,
        "seconds": round(time.monotonic() - started, 1),
        "processor_seconds": round(time.process_time() - used, 1),
        "met": found.null_promoted_share <= FOOLED_BAR and found.power >= POWER_BAR,
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
    if asked.json is not None:
        asked.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if figures["met"] else 1


if __name__ == "__main__":
    sys.exit(main())
