"""Rollouts of the five environments at once, each of which branches and goes back in the middle.

    python benchmarks/branching_worlds.py [--at-once 32] [--tasks 3] [--levels 5] [--only NAME] [--json FILE]

For each level, tasks whose world is prepared once and forked for so many rollouts at once: a third are oracles, which
take a call back in the middle and branch, a third act at random and a third do nothing. What each world says and
submits is held against the same calls alone. A world that is only read (mail, research) is asked by all of them and
their branches, as in the appliance, and held against its digest. The limits are the product's: no call has more than
2 s of its own time. Bars: oracles pass at least 95 %, the others at most 2 %, no rollout is lost, and nothing of one
rollout is in another's world. Real sandboxes; the MCP servers need `assay curriculum adapter install mcp`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "fixtures"))

from parallel_readers import mail_rollout, research_rollout, terminal_rollout
from parallel_worlds import AGENTS, Played, game_rollout, orchestration_rollout, play

from curriculum.environments import ENVIRONMENTS
from curriculum.registry import TASKSETS, make_draft
from runtime.sandbox import Limits, SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

ORACLE, OTHERS = 0.95, 0.02
ASKED: dict[str, tuple[str, Callable[[SessionPool], Callable[..., Played]]]] = {
    "games": ("hidden_rules", lambda _pool: game_rollout),
    "orchestration": ("orchestration", lambda _pool: orchestration_rollout),
    "terminal": ("terminal_repairs", terminal_rollout),
    "mail": ("mail_search", lambda _pool: mail_rollout),
    "research": ("research", lambda _pool: research_rollout),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--at-once", type=int, default=32)
    parser.add_argument("--tasks", type=int, default=3)
    parser.add_argument("--levels", type=int, default=5, help="So many, the easiest.")
    parser.add_argument("--only", choices=sorted(ASKED))
    parser.add_argument("--roots", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    missed, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        own = BrokerSettings(state_dir=Path(folder) / "state", root_dir=given.roots or Path(folder) / "roots", ready=0)
        # An oracle holds three worlds, and nobody waits for another's: there have to be enough for all.
        limits = Limits(calls=100_000)
        settings = RuntimeSettings(own=own, sandboxes=2 * given.at_once + 8, limits=limits)
        with Sessions(settings) as pool:
            for name in [given.only] if given.only else ASKED:
                environment, (taskset, rollout) = ENVIRONMENTS[name], ASKED[name]
                if why := environment.missing():
                    print(f"{name}: left out: {why}")
                    continue
                passed: Counter[str] = Counter()
                made: Counter[str] = Counter()
                leaks, lost, begun = [], [], time.monotonic()
                for level in range(min(given.levels, TASKSETS[taskset].level_count)):
                    for seed in range(given.tasks):
                        found = play(pool, environment, make_draft(taskset, level, seed), given.at_once, rollout(pool))
                        made.update(one.agent for one in found)
                        passed.update(one.agent for one in found if one.passed)
                        leaks += [one.leaks for one in found if one.leaks]
                        lost += [one.lost for one in found if one.lost]
                rates = {agent: passed[agent] / made[agent] for agent in AGENTS}
                rows.append({"name": name, "rates": rates, "rollouts": made.total(), "leaks": leaks, "lost": lost})
                told = ", ".join(f"{agent} {passed[agent]} of {made[agent]}" for agent in AGENTS)
                took = f"{time.monotonic() - begun:.0f} s"
                print(f"{name}: {told}; {len(leaks)} leaks, {len(lost)} lost, {took}", flush=True)
                print(*leaks[:3], *lost[:3], sep="\n", file=sys.stderr, flush=True)
                if rates["oracle"] < ORACLE or max(rates["random"], rates["null"]) > OTHERS or leaks or lost:
                    missed.append(name)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
