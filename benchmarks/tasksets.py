"""What must hold of every taskset: the bars of a certification, measured at build, and how fast it makes tasks.

    python benchmarks/tasksets.py [--seeds 200] [--short] [--only NAME ...] [--conducted] [--record] [--json FILE]

For each taskset, over that many seeds of each level, what `curriculum.certification` tries: the share of reference
answers that pass their own check (bar: all), and of tasks that an agent passes which does no work (bar: at most 2 %, or
chance); then the share of different questions among the drawn, and the mean length of question and answer, which says
how levels grow. Drafts a second are by processor time, on one core (bar: 2,000). `--short` takes 10 seeds. Answers that
a sandbox or Lean has to decide are left out, unless `--conducted` has them checked, which needs root. `--record` writes
what each taskset that holds makes into `curriculum/certification/certified.json`: it then ships as certified.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

# A script's own folder comes first on the path, and there is a `runtime` in it.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from curriculum.certification.certificate import Certificate, shipped
from curriculum.certification.certify import REFERENCE, Judge, certify
from curriculum.contract.taskset import TaskDraft, Taskset
from curriculum.registry import BUILT_IN, TASKSETS, make_draft
from verifiers.checker import Checker
from verifiers.contract.verdict import Verdict
from verifiers.registry import decide, is_decided
from verifiers.registry.spec import Spec

FILE = Path(__file__).resolve().parents[1] / "curriculum" / "certification" / "certified.json"
RATE = 2_000
AT_LEAST_SECONDS = 0.2


def drafts(name: str, level: int, seeds: int) -> list[TaskDraft]:
    return [make_draft(name, level, seed) for seed in range(seeds)]


def rate(taskset: Taskset) -> float:
    """Drafts a second of processor time, over all levels."""
    rng, count, started = Random(0), 0, time.process_time()
    while time.process_time() - started < AT_LEAST_SECONDS:
        for level in range(taskset.level_count):
            for _ in range(20):
                taskset.draft(level, rng)
                count += 1
    return count / (time.process_time() - started)


def in_process(pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
    """Decides texts here: what is judged is our own."""
    return [decide(spec, answer) for spec, answer in pairs]


def measured(name: str, seeds: int, judge: Judge | None) -> dict[str, Any]:
    """`judge` conducts what is not decided from a text; without it, such answers are left out."""
    taskset = TASKSETS[name]
    every = [drafts(name, level, seeds) for level in range(taskset.level_count)]
    decided = all(is_decided(draft.spec) for made in every for draft in made)
    row: dict[str, Any] = {
        "name": name,
        "distinct": min(len({draft.key for draft in made}) / seeds for made in every),
        "characters": [sum(len(one.messages[-1].text) + len(one.answer) for one in made) / seeds for made in every],
        "drafts_a_second": rate(taskset),
    }
    asked = in_process if decided else judge
    if asked is not None:
        row["certificate"] = certify(BUILT_IN, name, asked, seeds=seeds)
    return row


def shown(row: dict[str, Any]) -> str:
    found: Certificate | None = row.get("certificate")
    checked = "conducted: left out"
    if found is not None:
        idle = {name: one for name, one in found.agents.items() if name != REFERENCE}
        worst = max(idle, key=lambda name: idle[name].rate)
        chance = f" (chance {idle[worst].chance:.1%})" if idle[worst].chance else ""
        checked = f"references {found.agents[REFERENCE].rate:7.2%}  {worst} {idle[worst].rate:.2%}{chance}"
    lengths = " ".join(f"{one:.0f}" for one in row["characters"])
    return (
        f"{row['name']:26} {row['drafts_a_second']:8.0f}/s  {checked:44}  distinct at least {row['distinct']:4.0%}"
        f"  characters {lengths}"
    )


def below_bars(row: dict[str, Any]) -> list[str]:
    """What does not meet its bar, in sentences."""
    found = [f"{row['name']}: {row['drafts_a_second']:.0f} drafts a second"] if row["drafts_a_second"] < RATE else []
    certificate: Certificate | None = row.get("certificate")
    return found + [f"{row['name']}: {fault}" for fault in (certificate.faults if certificate is not None else ())]


def record(rows: Sequence[dict[str, Any]]) -> None:
    """Puts down what holds: what a taskset makes, by its name."""
    known = dict(shipped())
    for row in rows:
        found: Certificate | None = row.get("certificate")
        if found is not None and found.holds:
            known[found.taskset] = found.made
    FILE.write_text(json.dumps({name: known[name] for name in sorted(known)}, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", nargs="+", choices=sorted(TASKSETS), metavar="NAME")
    parser.add_argument("--conducted", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    seeds = 10 if asked.short else asked.seeds
    rows, missed = [], []
    with Checker() if asked.conducted else nullcontext() as checker:
        for name in asked.only or TASKSETS:
            row = measured(name, seeds, checker.check_many if checker is not None else None)
            rows.append(row)
            missed += below_bars(row)
            print(shown(row), flush=True)
    print(*missed, sep="\n", file=sys.stderr)
    if asked.record:
        record(rows)
    if asked.json:
        found = [row | {"certificate": one.model_dump()} if (one := row.get("certificate")) else row for row in rows]
        asked.json.write_text(json.dumps(found, indent=1))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
