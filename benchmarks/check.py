"""Ordinary pairs per second through the whole command: reading, checking, writing, a line each.

    python benchmarks/check.py [--pairs 10000] [--jobs 2] [--json FILE]

`assay check answer --pairs FILE --out FILE` runs for few pairs and for all of them, in processes of their own; the
difference leaves out what starting it costs. Every pair is another one, and every fifth is wrong. What one check costs
by itself, the start included, is the median of five, for an answer and for a claim.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run

ROOT = Path(__file__).resolve().parents[1]
FEW = 64
BAR = 1000
SINGLE = {"answer": ("--gold", "1/2", "--answer", "0.5"), "smt": ("--claim", "-")}
CLAIM = b"(declare-const x Int)(assert (> x 3))(assert (not (> x 2)))"
TIMES = 5


def pairs(count: int) -> Iterator[tuple[str, str]]:
    """Numbers, fractions, decimals, roots, polynomials, tuples, intervals: what answers of school and contests are."""
    rng = random.Random(7)
    for number in range(count):
        a, b, c = number + 2, rng.randrange(2, 90), rng.randrange(1, 9)
        gold, right = [
            (f"{a}", f"{a}.0"),
            (f"\\frac{{{a}}}{{{b}}}", f"{2 * a}/{2 * b}" if a % b else f"{a // b}"),
            (f"{a}.{c}5", f"\\frac{{{100 * a + 10 * c + 5}}}{{100}}"),
            (f"{c}\\sqrt{{{b}}}+{a}", f"{a}+\\sqrt{{{b}}}*{c}"),
            (f"x^2+{a + b}x+{a * b}", f"(x+{a})(x+{b})"),
            (f"({a}, {b}, -{c})", f"\\left({a},{b},-{c}\\right)"),
            (f"[{c}, {a})", f"\\left[{c}, {a}\\right)"),
            (f"{a}\\pi", f"\\pi \\cdot {a}"),
        ][number % 8]
        yield gold, right if number % 5 else f"{right}1"


def seconds(folder: Path, count: int, jobs: int) -> tuple[float, dict[str, Any]]:
    """Of the whole process, and what it says at its end."""
    given, out = folder / f"{count}.jsonl", folder / f"{count}.out"
    with given.open("w") as stream:
        for number, (gold, prediction) in enumerate(pairs(count)):
            stream.write(json.dumps({"id": number, "gold": gold, "prediction": prediction}) + "\n")
    words = ["check", "answer", "--form", "equal", "--pairs", given, "--out", out, "--jobs", jobs, "--json"]
    started = time.monotonic()
    told = subprocess.run(
        [sys.executable, "-m", "appliance.cli.main", "--data", folder / "data", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    spent = time.monotonic() - started
    if told.returncode != 1:
        sys.exit(f"it ended with {told.returncode}: {told.stderr.decode()}")
    return spent, json.loads(told.stdout)


def single(folder: Path, kind: str) -> float:
    """Seconds of a whole `assay check KIND`; the first time is left out."""
    taken = []
    for _ in range(TIMES + 1):
        started = time.monotonic()
        told = subprocess.run(
            [sys.executable, "-m", "appliance.cli.main", "--data", folder / "data", "check", kind, *SINGLE[kind]],
            cwd=ROOT,
            input=CLAIM,
            capture_output=True,
            check=False,
        )
        taken.append(time.monotonic() - started)
        if told.returncode:
            sys.exit(f"it ended with {told.returncode}: {told.stderr.decode()}")
    return median(taken[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="assay-check-") as name:
        folder = Path(name)
        seconds(folder, FEW + 1, options.jobs)  # builds what a broker needs, which is there from then on
        few, _ = seconds(folder, FEW, options.jobs)
        all_of_them, totals = seconds(folder, options.pairs, options.jobs)
        alone = {kind: round(single(folder, kind), 2) for kind in SINGLE}
    figures = {
        "load": round(load, 1),
        "jobs": options.jobs,
        "pairs": options.pairs,
        "start_seconds": round(few, 2),
        "whole_seconds": round(all_of_them, 2),
        "per_second": round((options.pairs - FEW) / (all_of_them - few)),
        "bar_per_second": BAR,
        "one_check_seconds": alone,
        "passed": totals["pass"],
        "failed": totals["fail"],
        "without_verdict": totals["infra_error"] + totals["bad_spec"],
    }
    print(json.dumps(figures, indent=2))
    write_run(figures, options.json)


if __name__ == "__main__":
    main()
