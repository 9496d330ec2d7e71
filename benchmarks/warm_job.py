"""How long a job takes on a daemon that is warm, from its submission to a verified answer by a solver.

    python benchmarks/warm_job.py [--jobs 30] [--json FILE]

A daemon is started on a new data folder. The first job starts the worker of the solvers, and its time is told apart.
Then jobs are asked one at a time, each a condition with another answer, and each is waited for. Told are the wall
seconds, the processor seconds of the whole process tree, which a busy machine does not change much, and what the tree
holds and uses while the warm worker waits. The bar: 300 ms at the median.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.client import ApiClient
from benchmarks.idle import ask, processor_seconds, tree, wait_for
from benchmarks.kills import NO_NIGHTS

BAR_SECONDS = 0.3


def measure(jobs: int, idle_seconds: float) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="assay-warm-"))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    daemon = subprocess.Popen(
        [sys.executable, "-m", "appliance.cli.main", "serve", "--data", str(folder / "data")],
        env=environ | NO_NIGHTS,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    socket = folder / "data" / "run" / "assay.sock"
    try:
        wait_for(socket, daemon)
        api = ApiClient(socket)
        cold = ask(api, 0)
        ask(api, 1)
        before = processor_seconds(tree(daemon.pid))
        seconds = sorted(ask(api, number) for number in range(2, jobs + 2))
        spent = processor_seconds(tree(daemon.pid)) - before
        time.sleep(1.0)
        processes = tree(daemon.pid)
        idle, since = processor_seconds(processes), time.monotonic()
        time.sleep(idle_seconds)
        waiting = 100 * (processor_seconds(processes) - idle) / (time.monotonic() - since)
        return {
            "first_seconds": round(cold, 2),
            "jobs": jobs,
            "median_seconds": round(statistics.median(seconds), 3),
            "p90_seconds": round(seconds[int(0.9 * (jobs - 1))], 3),
            "worst_seconds": round(seconds[-1], 3),
            "processor_seconds_each": round(spent / jobs, 3),
            "warm_pss_mb": round(sum(one.memory_full_info().pss for one in processes if one.is_running()) / 1e6, 1),
            "warm_processor_percent": round(waiting, 2),
            "within_bar": statistics.median(seconds) <= BAR_SECONDS,
        }
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--idle", type=float, default=20.0, help="Seconds for which the warm daemon is left alone.")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = measure(arguments.jobs, arguments.idle)
    print(json.dumps(found, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
