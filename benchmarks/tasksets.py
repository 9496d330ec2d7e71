"""What must hold of every taskset whose answers are decided from their text: the bars, measured.

    python benchmarks/tasksets.py [--seeds 200] [--short] [--only NAME ...] [--json FILE]

For each taskset and level, over that many seeds: the share of reference answers that pass their own check (bar: all),
the share of tasks for which one of the null answers passes (bar: at most 2 %), the share of different questions among
the drawn, and the mean length of question and answer, which says how levels grow. Drafts a second are by processor
time, on one core (bar: 2,000); how many checks a second follow, too. `--short` takes 10 seeds. A spec that a sandbox or
Lean has to decide is counted as `conducted` and left to the tests of its kind.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

# A script's own folder comes first on the path, and there is a `runtime` in it.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from curriculum.contract.taskset import TaskDraft, Taskset
from curriculum.registry import TASKSETS, make_draft
from verifiers.contract.verdict import Outcome
from verifiers.registry import decide, is_decided

RATE, NULLS = 2_000, 0.02
AT_LEAST_SECONDS = 0.2


def drafts(name: str, level: int, seeds: int) -> list[TaskDraft]:
    return [make_draft(name, level, seed) for seed in range(seeds)]


def wrong_references(made: Sequence[TaskDraft]) -> list[str]:
    """The keys of those whose own answer does not pass."""
    return [draft.key for draft in made if decide(draft.spec, draft.answer).outcome is not Outcome.PASS]


def guessed(taskset: Taskset, made: Sequence[TaskDraft]) -> float:
    """The share of these for which one of the null answers passes."""
    found = sum(
        any(decide(draft.spec, nothing).outcome is Outcome.PASS for nothing in taskset.null_answers) for draft in made
    )
    return found / len(made)


def rate(taskset: Taskset) -> float:
    """Drafts a second of processor time, over all levels."""
    rng, count, started = Random(0), 0, time.process_time()
    while time.process_time() - started < AT_LEAST_SECONDS:
        for level in range(taskset.level_count):
            for _ in range(20):
                taskset.draft(level, rng)
                count += 1
    return count / (time.process_time() - started)


def measured(name: str, seeds: int) -> dict[str, Any]:
    taskset = TASKSETS[name]
    levels: list[dict[str, Any]] = []
    started, checks = time.process_time(), 0
    for level in range(taskset.level_count):
        made = drafts(name, level, seeds)
        row: dict[str, Any] = {
            "distinct": len({draft.key for draft in made}) / seeds,
            "characters": sum(len(draft.messages[-1].text) + len(draft.answer) for draft in made) / seeds,
        }
        if is_decided(made[0].spec):
            row |= {"wrong": wrong_references(made), "guessed": guessed(taskset, made)}
            checks += seeds
        levels.append(row)
    return {
        "name": name,
        "levels": levels,
        "checked_a_second": checks / max(time.process_time() - started, 1e-9),
        "drafts_a_second": rate(taskset),
    }


def shown(row: dict[str, Any]) -> str:
    levels = row["levels"]
    conducted = "wrong" not in levels[0]
    checked = (
        "conducted"
        if conducted
        else f"references {1 - sum(len(one['wrong']) for one in levels) / row['drafted']:7.2%}"
        f"  guessed {max(one['guessed'] for one in levels):6.2%}"
    )
    lengths = " ".join(f"{one['characters']:.0f}" for one in levels)
    return (
        f"{row['name']:26} {row['drafts_a_second']:8.0f}/s  {checked}  distinct at least"
        f" {min(one['distinct'] for one in levels):4.0%}  characters"
        f" {lengths}"
    )


def below_bars(row: dict[str, Any]) -> list[str]:
    """What does not meet its bar, in sentences."""
    found = [f"{row['name']}: {row['drafts_a_second']:.0f} drafts a second"] if row["drafts_a_second"] < RATE else []
    for level, one in enumerate(row["levels"]):
        if one.get("wrong"):
            found.append(f"{row['name']} level {level}: a reference does not pass: {one['wrong'][:2]}")
        if one.get("guessed", 0) > NULLS:
            found.append(f"{row['name']} level {level}: a null answer passes for {one['guessed']:.1%}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", nargs="+", choices=sorted(TASKSETS), metavar="NAME")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    seeds = 10 if asked.short else asked.seeds
    rows, missed = [], []
    for name in asked.only or TASKSETS:
        row = measured(name, seeds)
        row["drafted"] = seeds * len(row["levels"])
        rows.append(row)
        missed += below_bars(row)
        print(shown(row), flush=True)
    print(*missed, sep="\n", file=sys.stderr)
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
