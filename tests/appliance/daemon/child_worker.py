"""A worker for tests: speaks to the ledger as the real one does, and ends as its first argument says.

child_worker.py MODE prepare|train <cycle>|jobs --ledger-fd N --data DIR --settings FILE
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

from appliance.jobs.lifecycle import gives_way
from appliance.ledger.remote import RemoteLedger
from appliance.records.cycles import CycleState
from appliance.records.jobs import JobState
from appliance.worker.work_on_jobs import JobWatchdog

mode, work = sys.argv[1], sys.argv[2]
options = dict(zip(sys.argv[-6::2], sys.argv[-5::2], strict=True))
data = Path(options["--data"])
ledger = RemoteLedger(Connection(int(options["--ledger-fd"])))
if work == "prepare":
    cycle = ledger.cycle(sys.argv[3])
    ledger.put_sealed_set("0" * 64, {"items": 0})
    fixed = {"again": None, "tasksets": cycle.plan["recipe"]["tasksets"], "left_out": {}, "sealed": "0" * 64}
    start = {"start": champion} if (champion := ledger.alias("champion")) else {}
    ledger.put_cycle(cycle.model_copy(update={"plan": {**cycle.plan, **fixed, **start}}))
    raise SystemExit(0)
attempt = len(list(data.glob("attempt-*")))
(data / f"attempt-{attempt}").write_text(str(os.getpid()))
assert Path(options["--settings"]).read_text().startswith("{")


def finish() -> None:
    if work == "train":
        cycle = ledger.cycle(sys.argv[3])
        ledger.put_cycle(cycle.model_copy(update={"state": CycleState.DONE, "phase": "done"}))
        return
    while (job := ledger.claim_job()) is not None:
        ledger.put_job(job.model_copy(update={"state": JobState.UNSOLVED, "reason": "tried"}))


def advance(phase: str) -> None:
    cycle = ledger.cycle(sys.argv[3])
    ledger.put_cycle(cycle.model_copy(update={"phase": phase}))


match mode:
    case "finish":
        finish()
    case "crash-twice":
        if attempt < 2:
            raise SystemExit("out of luck")
        finish()
    case "progress":
        advance(f"phase-{attempt}")
        if attempt < 6:
            os.kill(os.getpid(), signal.SIGKILL)
        finish()
    case "crash":
        sys.stderr.write("first line\nRuntimeError: \x1b[31mno room\n")
        raise SystemExit(5)
    case "misconfigured":
        sys.stderr.write("model.path is there: 3 weights are missing; copy it again\n")
        raise SystemExit(4)
    case "loses-its-model":
        # The folder that it would begin from is taken away while it works, once.
        if attempt == 0:
            (data / "model").rename(data / "elsewhere")
            raise SystemExit(5)
        finish()
    case "hopeless":
        raise SystemExit(2)
    case "nothing":
        pass
    case "poisoned":
        # The oldest job kills its worker; the others are done.
        job = ledger.claim_job()
        ledger.put_job(job.model_copy(update={"state": JobState.RUNNING}))
        if "poison" in job.question:
            os.kill(os.getpid(), signal.SIGSEGV)
        finish()
    case "noisy":
        for number in range(20_000):
            sys.stderr.write(f"line {number} {'x' * 200}\n")
        finish()
    case "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        grandchild = subprocess.Popen(["/bin/sleep", "1000"])
        (data / "grandchild").write_text(str(grandchild.pid))
        time.sleep(1000)
    case "attentive" | "deaf" | "polite":
        # At a job until it is told to stop; the deaf one does not listen, the polite one stops for an urgent job.
        while (job := ledger.claim_job()) is not None:
            with JobWatchdog(
                job,
                ledger,
                now=lambda: datetime.now(UTC).isoformat(),
                clock=time.monotonic,
                leave=lambda: os._exit(3),
                urgent=lambda job=job: mode == "polite" and gives_way(job, ledger.next_job()),
                stops_for_urgent=True,
                poll_seconds=0.05,
                grace_seconds=0.2 if mode == "deaf" else 600.0,
            ) as watchdog:
                watchdog.report("attempt 2 of 16", 1)
                while mode == "deaf" or not (watchdog.stop_reason() or (mode == "polite" and job.priority == 9)):
                    time.sleep(0.02)
                state = JobState.QUEUED if watchdog.again else JobState.UNSOLVED
                update = {"state": state, "reason": watchdog.stop_reason()}
            ledger.put_job(job.model_copy(update=update))
    case "descriptors":
        seen = {"pid": os.getpid(), "group": os.getpgrp(), "parent": os.getppid()}
        with os.scandir("/proc/self/fd") as listed:  # itself one of them
            seen["descriptors"] = len(list(listed)) - 1
        (data / f"seen-{attempt}").write_text(json.dumps(seen))
        finish()
    case "starved-second":
        if attempt == 1:
            print(len(bytes(range(256)) * (1 << 20)))
        finish()
    case "server-stopped-once":
        if attempt == 0:
            os.kill(os.getppid(), signal.SIGSTOP)
            time.sleep(1000)
        finish()
    case "stopped-once":
        if attempt == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        finish()
    case "held-once":
        # At a job, and hearing of nothing, until somebody ends it.
        job = ledger.claim_job()
        if job is not None and attempt == 0:
            ledger.put_job(job.model_copy(update={"state": JobState.RUNNING}))
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1000)
        finish()
    case "orphan-once":
        if attempt == 0:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(1000)
        (data / "parent").write_text(str(os.getppid()))
        finish()
    case "beside":
        # A cycle that runs until it is told to go on.
        if work == "train":
            (data / "cycle-runs").touch()
            while not (data / "go-on").exists():
                time.sleep(0.02)
        finish()
    case "late":
        # Stopped at its first try, until its lease is over.
        if attempt == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
            advance("late")
        finish()
    case "hang-once":
        if attempt == 0:
            time.sleep(1000)
        finish()
    case "hang":
        time.sleep(1000)
