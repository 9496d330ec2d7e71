"""Answers beside math-verify, in one run: what passes that must not, what is turned away, and how many a second.

    python benchmarks/answers.py [--venv FOLDER] [--seconds 8] [--service] [--json FILE]

The pairs are those of tests/verifiers/answers/data: `ours`, `others`, which restate published mistakes, and `golds`:
expected answers in the forms of MATH, OlympiadBench, SciBench, GSM8K and AIME, each with an equal form and a near miss.
math-verify runs in an environment of its own, which is made in FOLDER; each of its answers is given as `$...$`, as it
asks for, with its own timeout of five seconds. What is asked for beyond equality (a form, a tolerance, one box) is told
to us only, so such pairs are left out where the two are compared. A pair that breaks a verifier counts as turned away.

Speed is measured on ordinary pairs: whole numbers, fractions, decimals, roots and short expressions, none of them
repeated, half of them equal. `--service` measures ours through the checker, too, with all that its boxes cost.
Bars: no false accepts; at most 3 % turned away or unknown; 97 % of the golds read; 1,000 a second
through the service on two cores; never slower than math-verify.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "verifiers" / "answers" / "data"
PINNED = "math-verify[antlr4_13_2]==0.9.0"

OTHER = r"""
import json, logging, sys, time
logging.disable(logging.CRITICAL)
from math_verify import parse, verify

def equal(gold, prediction):
    return bool(verify(parse("$" + gold + "$"), parse("$" + prediction + "$")))

equal("1", "1")
for line in sys.stdin:
    row = json.loads(line)
    started = time.perf_counter()
    try:
        passed = equal(row["gold"], row["prediction"])
    except Exception:
        passed = False
    print(json.dumps({"id": row["id"], "passed": passed, "seconds": time.perf_counter() - started}), flush=True)
"""

Row = dict[str, Any]
Results = dict[str, tuple[bool, str, float]]
"""By id: passed, ground, seconds."""


def environment(folder: Path) -> Path:
    """The Python of math-verify's environment, made where it is missing."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", PINNED], check=True)
    return python


def rows(name: str) -> list[Row]:
    found = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()]
    if name != "golds":
        return found
    return [
        {**row, "id": f"{row['id']} {sort}", "prediction": row[sort], "equal": sort == "equal"}
        for row in found
        for sort in ("equal", "unequal")
    ]


def ordinary(count: int, seed: int = 20) -> list[Row]:
    """Pairs as most of a training run has them."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        a, b, c = draw.randrange(99, 9_999), draw.randrange(2, 99), draw.randrange(2, 9)  # (a,b) is never (b,a)
        kinds = [
            (str(a), str(a), str(a + 1)),
            (rf"\frac{{{a}}}{{{b}}}", f"{a * c}/{b * c}", f"{a + 1}/{b}"),
            (f"{a}.{b}", f"{a}.{b}0", f"{a}.{b}1"),
            (rf"{c}\sqrt{{{b}}}", rf"\sqrt{{{c * c * b}}}", rf"\sqrt{{{c * b}}}"),
            (f"{b}x+{a}", f"{a}+{b}x", f"{a}x+{b}"),
            (f"({a},{b})", f"({a}, {b})", f"({b}, {a})"),
            (f"{b}(x+{c})", f"{b}x+{b * c}", f"{b}x+{c}"),
            (f"-{a}", f"-{a}", str(a)),
        ]
        gold, same, other = kinds[number % len(kinds)]
        equal = (number // len(kinds)) % 2 == 0
        found.append({"id": str(number), "gold": gold, "prediction": same if equal else other, "equal": equal})
    return found


def by_other(python: Path, pairs: list[Row]) -> Results:
    lines = "".join(json.dumps({key: row[key] for key in ("id", "gold", "prediction")}) + "\n" for row in pairs)
    done = subprocess.run([python, "-c", OTHER], input=lines, capture_output=True, text=True, check=False)
    found = {row["id"]: (row["passed"], "", row["seconds"]) for row in map(json.loads, done.stdout.splitlines())}
    return {row["id"]: found.get(row["id"], (False, "lost", 0.0)) for row in pairs}


def by_ours(pairs: list[Row]) -> Results:
    """In this process."""
    from verifiers.answers.spec import AnswerSpec
    from verifiers.answers.verifier import AnswerVerifier
    from verifiers.contract.errors import SpecError

    verifier = AnswerVerifier()
    verifier.verify(AnswerSpec(expected=r"\sqrt[3]{2+\sqrt5}+\sqrt[3]{2-\sqrt5}"), "1")
    found: Results = {}
    for row in pairs:
        spec = AnswerSpec(expected=row["gold"], **row.get("spec", {}))
        started = time.perf_counter()
        try:
            verifier.check(spec, prove=True)
            verdict = verifier.verify(spec, row["prediction"])
            passed, ground = verdict.passed, str(verdict.ground)
        except SpecError:
            passed, ground = False, "bad spec"
        found[row["id"]] = (passed, ground, time.perf_counter() - started)
    return found


def through_service(pairs: list[Row]) -> tuple[Results, float]:
    """Through the checker: (verdicts, seconds in all once it is warm)."""
    from verifiers import AnswerSpec, Checker

    specs = [(AnswerSpec(expected=row["gold"], **row.get("spec", {})), str(row["prediction"])) for row in pairs]
    with Checker() as checker:
        checker.check_many(specs[:200])
        started = time.perf_counter()
        verdicts = checker.check_many(specs)
        took = time.perf_counter() - started
    found = {row["id"]: (v.passed, str(v.ground), v.seconds) for row, v in zip(pairs, verdicts, strict=True)}
    return found, took


def score(pairs: list[Row], found: Results) -> dict[str, Any]:
    wrong = [row["id"] for row in pairs if found[row["id"]][0] and not row["equal"]]
    lost = [row["id"] for row in pairs if row["equal"] and not found[row["id"]][0]]
    unread = {row["gold"] for row in pairs if found[row["id"]][1] == "bad spec"}
    unknown = [row["id"] for row in pairs if found[row["id"]][1] in ("unknown", "bad spec")]
    return {
        "pairs": len(pairs),
        "equal": sum(row["equal"] for row in pairs),
        "false_accepts": len(wrong),
        "false_rejects": len(lost),
        "unknown": len(unknown),
        "golds": len({row["gold"] for row in pairs}),
        "unread": len(unread),
        "seconds": round(sum(result[2] for result in found.values()), 3),
        "slowest": round(max(result[2] for result in found.values()), 3),
        "accepted_wrongly": wrong,
        "rejected_wrongly": lost,
    }


def rate(run: Callable[[list[Row]], Results], seconds: float) -> tuple[float, dict[str, Any]]:
    """Ordinary pairs a second on one core, for about so many seconds."""
    count = 400
    while True:
        pairs = ordinary(count)
        found = run(pairs)
        took = sum(result[2] for result in found.values())
        if took >= seconds or count >= 100_000:
            return count / took, score(pairs, found)
        count = min(100_000, max(count * 2, int(count * seconds / max(took, 1e-3))))


def report(figures: dict[str, Any]) -> None:
    counts = f"{'pairs':>7}{'false accepts':>15}{'false rejects':>15}{'unknown':>9}{'unread':>8}"
    print(f"{'':28}{counts}{'seconds':>9}{'slowest':>9}")
    for name, part in figures["hard"].items():
        for who, of in part.items():
            print(
                f"{name + ', ' + who:28}{of['pairs']:>7}{of['false_accepts']:>15}{of['false_rejects']:>15}"
                f"{of['unknown']:>9}{of['unread']:>8}{of['seconds']:>9}{of['slowest']:>9}"
            )
    print()
    for who, of in figures["ordinary"].items():
        print(f"ordinary, {who:18}{of['per_second']:>9,.0f} a second, {of['false_accepts']} false accepts, "
              f"{of['false_rejects']} false rejects")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assay"
    parser.add_argument("--venv", type=Path, default=cache / "math-verify")
    parser.add_argument("--seconds", type=float, default=8.0, help="for each measurement of speed")
    parser.add_argument("--service", action="store_true", help="through the checker, too")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    python = environment(options.venv)
    figures: dict[str, Any] = {
        "machine": {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version()},
        "hard": {},
        "ordinary": {},
    }
    for name in ("ours", "others", "golds"):
        pairs = rows(name)
        plain = [row for row in pairs if "spec" not in row]
        figures["hard"][name] = {
            "assay": score(plain, by_ours(plain)),
            "math-verify": score(plain, by_other(python, plain)),
            "assay, with specs": score(pairs, by_ours(pairs)),
        }
    for who, run in (("assay", by_ours), ("math-verify", lambda pairs: by_other(python, pairs))):
        per_second, found = rate(run, options.seconds)
        figures["ordinary"][who] = {"per_second": per_second, **found}
    if options.service:
        pairs = ordinary(20_000)
        results, took = through_service(pairs)
        figures["ordinary"]["assay, service"] = {"per_second": len(pairs) / took, **score(pairs, results)}
    report(figures)
    write_run(figures, options.json)


if __name__ == "__main__":
    main()
