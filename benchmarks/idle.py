"""What `assay serve` costs while nothing happens: memory of the process and its children, and processor time.

    python benchmarks/idle.py --seconds 60 --json FILE

A daemon is started on a new data folder, asked for its status once, and then left alone. Memory is PSS (shared pages
count by their share) and RSS; processor time is of one core. The bar: at most 250 MB, under 1 % of a core.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.client import ApiClient, DaemonNotRunning

MEMORY_BAR_MB = 250.0
PROCESSOR_BAR_PERCENT = 1.0


def measure(seconds: float) -> dict[str, Any]:
    """One daemon, idle for that long."""
    folder = Path(tempfile.mkdtemp(prefix="assay-idle-"))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    started = time.monotonic()
    daemon = subprocess.Popen(
        [sys.executable, "-m", "appliance.cli.main", "serve", "--data", str(folder / "data")],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(folder / "data" / "run" / "assay.sock", daemon)
        ready = time.monotonic() - started
        time.sleep(2)
        tree = [psutil.Process(daemon.pid), *psutil.Process(daemon.pid).children(recursive=True)]
        before, since = _processor_seconds(tree), time.monotonic()
        time.sleep(seconds)
        spent, passed = _processor_seconds(tree) - before, time.monotonic() - since
        memory = [process.memory_full_info() for process in tree]
        return {
            "processes": len(tree),
            "threads": sum(process.num_threads() for process in tree),
            "ready_seconds": round(ready, 2),
            "rss_mb": round(sum(one.rss for one in memory) / 1e6, 1),
            "pss_mb": round(sum(one.pss for one in memory) / 1e6, 1),
            "processor_percent": round(100 * spent / passed, 3),
            "seconds": round(passed, 1),
        }
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(timeout=60)
        shutil.rmtree(folder)


def _wait_for(socket_path: Path, daemon: subprocess.Popen[bytes]) -> None:
    api = ApiClient(socket_path)
    while True:
        try:
            api.status()
        except DaemonNotRunning:
            if daemon.poll() is not None:
                sys.exit("the daemon did not start")
            time.sleep(0.02)
        else:
            return


def _processor_seconds(tree: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in tree)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = measure(arguments.seconds)
    found["within_bars"] = found["rss_mb"] <= MEMORY_BAR_MB and found["processor_percent"] < PROCESSOR_BAR_PERCENT
    print(json.dumps(found, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
