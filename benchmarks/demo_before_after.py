"""The demonstration of two installed checkouts to its end, in pairs: a machine of changing speed changes both.

    python benchmarks/demo_before_after.py OLD NEW [--seeds 1 0] [--alone] [--json FILE]

OLD and NEW are folders with an environment in `.venv` (`./install.sh` makes it); the same folder twice shows the
noise. One pair for each seed, both at the same time, or with `--alone` one after the other; who begins changes from
pair to pair. For each: seconds by the clock, of the warm start and of training, processor time of the process and of
those that it waited for, points gained, tokens sampled a second. The last `ratio` is the geometric mean of the pairs'.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import geometric_mean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run

COMPARED = ("wall", "warm start", "training", "processor")


def demonstration(checkout: Path, seed: int, folder: Path) -> dict[str, Any]:
    """One demonstration in that folder, to its end. Raises RuntimeError where it failed."""
    folder.mkdir()
    result = folder / "result.json"
    command = [checkout / ".venv/bin/assay", "demo", "--fresh", "--seed", str(seed), "--json", result]
    homes = {"HOME": folder / "home", "XDG_STATE_HOME": folder / "state", "ASSAY_DATA": folder / "data"}
    began = time.monotonic()
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=checkout,
            env={**os.environ, **{name: str(path) for name, path in homes.items()}},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{checkout}: ended with {process.returncode}: {(folder / 'output').read_text()[-500:]}")
    found = json.loads(result.read_bytes())
    return {
        "wall": wall,
        "warm start": found["seconds_by_phase"]["warm_start"],
        "training": found["seconds_by_phase"]["training"],
        "in training": found["seconds_in_training"],
        "processor": usage.ru_utime + usage.ru_stime,
        "points": [round(found[name], 1) for name in ("gain", "gain_low", "gain_high")],
        "tokens a second": found["tokens_per_second"],
    }


def pair(old: Path, new: Path, seed: int, folder: Path, *, new_first: bool, alone: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def one(name: str, checkout: Path) -> None:
        try:
            found[name] = demonstration(checkout, seed, folder / name)
        except RuntimeError as failed:
            found[name] = failed

    folder.mkdir()
    arms = [("old", old), ("new", new)]
    threads = [threading.Thread(target=one, args=arm) for arm in (reversed(arms) if new_first else arms)]
    for thread in threads:
        thread.start()
        if alone:
            thread.join()
    for thread in threads:
        thread.join()
    for outcome in found.values():
        if isinstance(outcome, RuntimeError):
            raise outcome
    return {"seed": seed, **found, "ratio": {name: found["new"][name] / found["old"][name] for name in COMPARED}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 0])
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    pairs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for turn, seed in enumerate(arguments.seeds):
            load = os.getloadavg()[0]
            checkouts = (arguments.old.resolve(), arguments.new.resolve())
            folder, new_first = Path(scratch) / str(turn), turn % 2 == 1
            found = pair(*checkouts, seed, folder, new_first=new_first, alone=arguments.alone)
            pairs.append({"load": load, **found})
            print(json.dumps(pairs[-1]), flush=True)
    ratio = {name: round(geometric_mean([found["ratio"][name] for found in pairs]), 3) for name in COMPARED}
    print(json.dumps({"ratio": ratio}))
    write_run({"pairs": pairs, "ratio": ratio}, arguments.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
