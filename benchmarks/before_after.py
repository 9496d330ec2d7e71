"""The same commands of two installed checkouts, turn by turn, so that a machine that changes its speed changes both.

    python benchmarks/before_after.py OLD NEW [--times 9] [--json FILE] [--heavy]

OLD and NEW are folders with an environment in `.venv` (`./install.sh` makes it). For each command: the processor time
of the process and of its children in milliseconds, median and range, beside a bare interpreter, and the median of the
ratios of neighbouring runs. `status` asks a daemon that each checkout serves on a folder of its own. `--heavy` adds the
warm call and the calls per second of `assay sandbox bench --quick`, which need root.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

COMMANDS: dict[str, tuple[str, ...]] = {
    "help": ("--help",),
    "check --help": ("check", "--help"),
    "status": ("status",),
    "check answer": ("check", "answer", "--gold", "1/2", "--answer", "0.5"),
}
PAIRS = "check 1,000 pairs"


def spent(command: list[str], folder: Path, **environment: str) -> float:
    """Milliseconds of processor time that it and its children took. Raises RuntimeError where it failed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | environment
    ended = subprocess.run(command, cwd=folder, capture_output=True, env=told, timeout=300, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr.decode()[-300:]}")
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@contextmanager
def served(checkout: Path, data: Path) -> Iterator[None]:
    """A daemon of that checkout on that folder."""
    daemon = subprocess.Popen(
        [checkout / ".venv/bin/assay", "serve", "--data", data],
        cwd=checkout,
        env={**os.environ, "ASSAY_SCHEDULE__ENABLED": "false"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(240):
            command = [checkout / ".venv/bin/assay", "status", "--data", data]
            asked = subprocess.run(command, capture_output=True, check=False)
            if asked.returncode == 0:
                break
            time.sleep(0.25)
        else:
            raise RuntimeError(f"the daemon of {checkout} did not answer within a minute")
        yield
    finally:
        daemon.terminate()
        daemon.wait(timeout=60)


def pairs_file(folder: Path) -> Path:
    """1,000 ordinary pairs, every fifth of them wrong."""
    path = folder / "pairs.jsonl"
    lines = [
        {"id": n, "gold": f"\\frac{{{n + 2}}}{{7}}", "prediction": f"{2 * n + 4}/14" if n % 5 else f"{n + 3}/7"}
        for n in range(1000)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def row(name: str, old: list[float], new: list[float]) -> dict[str, Any]:
    ratios = [after / before for before, after in zip(old, new, strict=True)]
    return {
        "what": name,
        "old": round(median(old), 1),
        "old_range": [round(min(old), 1), round(max(old), 1)],
        "new": round(median(new), 1),
        "new_range": [round(min(new), 1), round(max(new), 1)],
        "ratio": round(median(ratios), 3),
    }


def bench(checkout: Path) -> dict[str, float]:
    """Figures of the sandboxes there."""
    command = [checkout / ".venv/bin/assay", "sandbox", "bench", "--quick", "--json"]
    ended = subprocess.run(command, cwd=checkout, capture_output=True, timeout=600, check=True)
    return {name: value for name, value in json.loads(ended.stdout).items() if isinstance(value, int | float)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--heavy", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    checkouts = {"old": arguments.old.resolve(), "new": arguments.new.resolve()}
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        data = {name: folder / name for name in checkouts}
        pairs = pairs_file(folder)
        with served(checkouts["old"], data["old"]), served(checkouts["new"], data["new"]):
            commands: dict[str, tuple[str, ...]] = {"bare interpreter": (), **COMMANDS, PAIRS: ()}
            for what, words in commands.items():
                found: dict[str, list[float]] = {"old": [], "new": []}
                for turn in range(arguments.times):
                    order = ("old", "new") if turn % 2 else ("new", "old")
                    for name in order:
                        binary = checkouts[name] / ".venv/bin"
                        if what == "bare interpreter":
                            command = [str(binary / "python"), "-c", "pass"]
                        elif what == PAIRS:
                            out = folder / f"{name}-{turn}.out"
                            command = [
                                str(binary / "assay"),
                                "check",
                                "answer",
                                "--pairs",
                                str(pairs),
                                "--out",
                                str(out),
                            ]
                        else:
                            command = [str(binary / "assay"), *words]
                        found[name].append(spent(command, folder, ASSAY_DATA=str(data[name])))
                rows.append(row(what, found["old"], found["new"]))
    benched: dict[str, list[dict[str, float]]] = {"old": [], "new": []}
    if arguments.heavy:
        for turn in range(3):
            for name in ("old", "new") if turn % 2 else ("new", "old"):
                benched[name].append(bench(checkouts[name]))
        for figure in sorted(set(benched["old"][0]) & set(benched["new"][0])):
            old, new = ([one[figure] for one in benched[name]] for name in ("old", "new"))
            if all(old):
                rows.append(row(figure, old, new))
    for line in rows:
        print(
            f"{line['what']:24} {line['old']:9} {line['old_range']!s:20} {line['new']:9} {line['new_range']!s:20} "
            f"{line['ratio']:6}"
        )
    load = os.getloadavg()[0]
    print(f"load {load:.1f}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"load": load, "rows": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
