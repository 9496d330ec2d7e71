"""What `assay serve` costs while nothing happens: memory of the process and its children, and processor time.

    python benchmarks/idle.py --seconds 60 [--job] --json FILE

A daemon is started on a new data folder, asked for its status once, and then left alone. With `--job` it then gets two
jobs for its solvers, and is measured at once (warm), again when their worker has left it (after some two minutes), and
asked once more. Memory is PSS (shared pages count by their share) of all its processes, and of each; processor time is
of one core. The bar, new and left alone again: at most 250 MB, under 1 % of a core.
"""

from __future__ import annotations

import argparse
import contextlib
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

from appliance.client import ApiClient, DaemonNotRunning, JobState, SubmitJob
from benchmarks.kills import NO_NIGHTS
from benchmarks.record import write_run
from verifiers.predicate.spec import PredicateSpec

MEMORY_BAR_MB = 250.0
PROCESSOR_BAR_PERCENT = 1.0
LEAVES_SECONDS = 400.0
"""In which the worker of the solvers has to have left; it stays for two minutes."""
POLL_SECONDS = 0.03


def measure(seconds: float, *, job: bool) -> dict[str, Any]:
    """One daemon, idle for that long each time."""
    folder = Path(tempfile.mkdtemp(prefix="assay-idle-"))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    started = time.monotonic()
    daemon = subprocess.Popen(
        [sys.executable, "-m", "appliance.cli.main", "serve", "--data", str(folder / "data")],
        env=environ | NO_NIGHTS,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(folder / "data" / "run" / "assay.sock", daemon)
        ready = time.monotonic() - started
        time.sleep(2)
        found = {"ready_seconds": round(ready, 2), "new": left_alone(daemon.pid, seconds)}
        if job:
            api = ApiClient(folder / "data" / "run" / "assay.sock")
            found["first_job_seconds"] = round(ask(api, 0), 2)
            found["second_job_seconds"] = round(ask(api, 1), 2)
            found["warm"] = left_alone(daemon.pid, min(seconds, 20.0))
            wait_until_left(daemon.pid)
            found["again"] = left_alone(daemon.pid, seconds)
            found["next_job_seconds"] = round(ask(api, 2), 2)
        return found
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(timeout=60)
        shutil.rmtree(folder)


def tree(root: int) -> list[psutil.Process]:
    return [psutil.Process(root), *psutil.Process(root).children(recursive=True)]


def left_alone(root: int, seconds: float) -> dict[str, Any]:
    """What these processes hold and use while nobody asks anything."""
    processes = tree(root)
    before, since = processor_seconds(processes), time.monotonic()
    time.sleep(seconds)
    spent, passed = processor_seconds(processes) - before, time.monotonic() - since
    held = {process: process.memory_full_info().pss / 1e6 for process in processes if process.is_running()}
    return {
        "pss_mb": round(sum(held.values()), 1),
        "processor_percent": round(100 * spent / passed, 3),
        "seconds": round(passed, 1),
        "threads": sum(process.num_threads() for process in held),
        "each_mb": [f"{size:.1f} {called(process)}" for process, size in held.items()],
    }


def called(process: psutil.Process) -> str:
    """What tells processes apart: the module or program, without its interpreter."""
    words = [word.partition("\n")[0] for word in process.cmdline()]
    module = words.index("-m") + 1 if "-m" in words[:8] else 0
    return Path(words[module]).name if words else process.name()


def wait_until_left(root: int) -> None:
    """Until the worker of the solvers and its verifiers have ended."""
    end = time.monotonic() + LEAVES_SECONDS
    while any("verifiers.workers" in " ".join(process.cmdline()) for process in tree(root)):
        if time.monotonic() > end:
            sys.exit("the worker of the solvers never left")
        time.sleep(1.0)


def ask(api: ApiClient, number: int) -> float:
    """One job; the seconds until it is solved. Exits where it is not."""
    spec = PredicateSpec(predicate=f"{number + 2}*x + 1 == {(number + 2) * 7 + 1}", domain="integer")
    begun = time.monotonic()
    job = api.submit(SubmitJob(question=f"Find x, number {number}", spec=spec))
    while not (found := api.job(job.id).job).state.rests:
        time.sleep(POLL_SECONDS)
    if found.state is not JobState.SOLVED:
        sys.exit(f"job {number} is {found.state.value}: {found.reason}")
    return time.monotonic() - begun


def wait_for(socket_path: Path, daemon: subprocess.Popen[bytes]) -> None:
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


def processor_seconds(tree: list[psutil.Process]) -> float:
    """Of these processes and of their children that have ended."""
    spent = 0.0
    for process in tree:
        with contextlib.suppress(psutil.NoSuchProcess):
            spent += sum(process.cpu_times()[:4])
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--job", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = measure(arguments.seconds, job=arguments.job)
    found["within_bars"] = all(
        one["pss_mb"] <= MEMORY_BAR_MB and one["processor_percent"] < PROCESSOR_BAR_PERCENT
        for one in (found["new"], found.get("again", found["new"]))
    )
    print(json.dumps(found, indent=2))
    write_run(found, arguments.json)


if __name__ == "__main__":
    main()
