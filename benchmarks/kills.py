"""kill -9 of everything at random moments of a short night: the next start goes on, and nothing is lost or left.

    python benchmarks/kills.py [--kills 30] [--seed 0] [--json FILE] [--model FOLDER]

A short demonstration (a few training steps, a small sealed set, one job) runs in a process tree of its own. At a random
moment the core, its worker and whatever they started are killed with SIGKILL; then it is started again, and killed
again, until it ends. When it has ended, its ledger is counted and the next one begins, until `--kills` kills were made.

Checked after each kill: no process of the tree is left. Checked at each end: every step was recorded once with as many
rollouts as the recipe says, no rollout is there twice, evaluations and the decision are there once, every artifact of
the ledger is on disk and verifies, and no process, mount, cgroup or unfinished folder is left.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.jobs.check import check_bundle
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import Cycle, CycleState
from appliance.records.rollouts import Purpose
from appliance.records.training import RolloutFilter
from benchmarks.record import write_run
from runtime.backends.lease import state_mark

FIXTURE = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "seedling"


@dataclass(frozen=True)
class Size:
    """How much is done in one night."""

    steps: int = 6
    tasks: int = 8
    rollouts: int = 8
    sealed: int = 48
    unsolvable: int = 8
    watched: int = 16


USUAL = Size()
SMALL = Size(steps=4, tasks=4, rollouts=4, sealed=8, unsolvable=2, watched=4)
"""Every phase is there, for tests."""


@dataclass
class Tally:
    kills: int = 0
    starts: int = 0
    nights: int = 0
    phases: Counter[str] = field(default_factory=Counter)
    """Where the kills fell."""
    faults: list[str] = field(default_factory=list)


NO_NIGHTS = {"ASSAY_SCHEDULE__ENABLED": "false"}
"""For a daemon that is measured at any hour: none begins by the clock."""


def environment(data: Path, model: Path, size: Size = USUAL) -> dict[str, str]:
    """A short night, on a data folder of its own."""
    short = {
        "ASSAY_DATA": data,
        "ASSAY_MODEL__PATH": model,
        "ASSAY_RECIPE__TRAINING__STEPS": size.steps,
        "ASSAY_RECIPE__TRAINING__TASKS_PER_STEP": size.tasks,
        "ASSAY_RECIPE__TRAINING__ROLLOUTS_PER_TASK": size.rollouts,
        "ASSAY_RECIPE__TRAINING__KEEP": size.rollouts // 2,
        "ASSAY_RECIPE__TRAINING__REFILLS": 0,
        "ASSAY_RECIPE__TRAINING__WATCH_EVERY": 2,
        "ASSAY_RECIPE__TRAINING__WATCH_ITEMS": size.watched,
        "ASSAY_RECIPE__TRAINING__WATCH_DROP": 1,
        "ASSAY_RECIPE__TRAINING__CHECKPOINT_EVERY": 2,
        "ASSAY_RECIPE__EVALUATION__SEALED_ITEMS": size.sealed,
        "ASSAY_RECIPE__EVALUATION__UNSOLVABLE_ITEMS": size.unsolvable,
        "ASSAY_JOBS__ATTEMPTS": 64,
    }
    return {**os.environ, **NO_NIGHTS, **{name: str(value) for name, value in short.items()}}


def start(data: Path, model: Path, seed: int, size: Size = USUAL) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "appliance.cli.main", "demo", "--seed", str(seed), "--json", f"{data}.json"]
    return subprocess.Popen(
        command,
        env=environment(data, model, size),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def kill_tree(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """SIGKILL to the core first, then to all that is left of its tree; returns what the tree was."""
    try:
        root = psutil.Process(process.pid)
        tree = root.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    process.kill()
    for one in tree:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()
    return tree


def survivors(tree: list[psutil.Process], data: Path, seconds: float = 60.0) -> list[str]:
    """What of the tree, or with the data folder in its command line, is alive after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        alive = [line for one in tree if _lives(one) and (line := _said_of(one))]
        alive += [f"{one.pid} {' '.join(line)[:80]}" for one, line in _command_lines() if str(data) in " ".join(line)]
        if not alive or time.monotonic() > deadline:
            return alive
        time.sleep(0.05)


def _said_of(one: psutil.Process) -> str:
    """Number and command of a process; nothing of one that has ended since."""
    try:
        return f"{one.pid} {' '.join(one.cmdline())[:80]}"
    except psutil.NoSuchProcess:
        return ""


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _command_lines() -> list[tuple[psutil.Process, list[str]]]:
    return [
        (one, one.info["cmdline"])
        for one in psutil.process_iter(["cmdline"])
        if one.pid != os.getpid() and one.info["cmdline"]
    ]


def left_on_host(data: Path) -> list[str]:
    """Mounts, cgroups and unfinished folders that a finished night should not leave."""
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if str(data) in line]
    state = data / "run" / "boxes"
    mark = state_mark(state)
    groups = sorted(str(Path(at, name)) for at, below, _ in os.walk("/sys/fs/cgroup") for name in below if mark in name)
    unfinished = [str(path) for path in data.rglob(".unfinished-*")]
    boxes = [str(path) for path in state.iterdir()] if state.exists() else []
    return mounts + groups + unfinished + boxes


def count(data: Path, size: Size = USUAL) -> list[str]:
    """What is wrong with the ledger and the artifacts of a finished night; nothing, it is hoped."""
    with SqliteLedger(data / "ledger.sqlite3") as ledger:
        cycles = ledger.cycles()
        if [cycle.state for cycle in cycles] != [CycleState.DONE]:
            return [f"cycles are {[cycle.state.value for cycle in cycles]}"]
        wrong = count_cycle(ledger, cycles[0], size)
        for job in ledger.jobs():
            if job.artifact is None:
                continue
            artifact = ledger.artifact(job.artifact)
            if artifact is None or not check_bundle(data / artifact.folder, expect=artifact.manifest).ok:
                wrong.append(f"the artifact of {job.id} is lost")
    return wrong


def count_cycle(ledger: SqliteLedger, cycle: Cycle, size: Size) -> list[str]:
    """What is wrong with the records of a cycle; of one that is under way, with those that are there."""
    wrong: list[str] = []
    name, finished = cycle.id, cycle.state is CycleState.DONE
    steps = ledger.recorded_steps(name)
    # One that asks an earlier night's candidate once more trains nothing.
    trained = 0 if cycle.plan.get("again") else size.steps
    if steps != list(range(trained if finished else len(steps))):
        wrong.append(f"recorded steps are {steps}")
    for step in steps:
        record = ledger.step(name, step)
        ids = [one.rollout.id for one in record.judged] if record else []
        if len(ids) != size.tasks * size.rollouts or len(set(ids)) != len(ids):
            wrong.append(f"step {step} has {len(ids)} rollouts, {len(set(ids))} different")
    counts = ledger.rollout_counts(name)
    looks = trained // 2 + 1 if trained else 0
    evaluations = [one for one in ledger.evaluations(limit=1_000) if one.cycle == name]
    # A champion that nothing was learned from is its own candidate, and is asked once.
    models = {results.weights for one in evaluations for results in (one.champion, one.candidate)}
    examined = 2 * (len(models) if finished else 2) * size.sealed + size.unsolvable
    expected = {
        "train": len(steps) * size.tasks * size.rollouts,
        "validation": looks * size.watched,
        "evaluation": examined,
    }
    found = {purpose: counts.get(purpose, 0) for purpose in expected}
    if found["train"] != expected["train"] or any(found[purpose] > most for purpose, most in expected.items()):
        wrong.append(f"rollouts are {counts}, expected {expected}")
    if not finished:
        return wrong
    decisions = [one for one in ledger.decisions(limit=1_000) if one.evaluation in {each.id for each in evaluations}]
    if found != expected:
        wrong.append(f"rollouts are {counts}, expected {expected}")
    if len(evaluations) != 1 or len(decisions) != 1:
        wrong.append(f"{len(evaluations)} evaluations, {len(decisions)} decisions")
    if len(ledger.rollouts(RolloutFilter(cycle=name, purpose=Purpose.EVALUATION), limit=10_000)) != examined:
        wrong.append("evaluation rollouts are missing")
    return wrong


def trial(kills: int, seed: int, model: Path, folder: Path, longest: float = 14.0) -> Tally:
    """Kills until `kills` were made and the night under way has ended."""
    rng = Random(seed)
    tally = Tally()
    while tally.kills < kills:
        data = folder / f"night-{tally.nights}"
        while True:
            process = start(data, model, tally.nights)
            tally.starts += 1
            kill_now = tally.kills < kills
            try:
                _, complaint = process.communicate(timeout=rng.uniform(0.2, longest) if kill_now else 300)
            except subprocess.TimeoutExpired:
                tally.phases[_phase(data)] += 1
                tree = kill_tree(process)
                tally.kills += 1
                tally.faults += [f"survived kill {tally.kills}: {one}" for one in survivors(tree, data)]
                continue
            if process.returncode not in (0, 1):
                tally.faults.append(
                    f"night {tally.nights} ended with {process.returncode}: {complaint.decode()[-300:]}"
                )
            break
        tally.faults += [f"night {tally.nights}: {fault}" for fault in count(data)]
        tally.faults += [f"night {tally.nights} left {one}" for one in left_on_host(data)]
        tally.nights += 1
        print(
            f"night {tally.nights}: {tally.kills} kills, {tally.starts} starts, {len(tally.faults)} faults", flush=True
        )
    return tally


def _phase(data: Path) -> str:
    """Where the night was when it was killed; the ledger is read by nobody else then."""
    path = data / "ledger.sqlite3"
    if not path.exists():
        return "before the ledger"
    import sqlite3

    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            rows = connection.execute("select payload from cycles order by rowid desc limit 1").fetchall()
    except sqlite3.Error:
        return "opening the ledger"
    return str(json.loads(rows[0][0])["phase"]) if rows else "before the cycle"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=Path, default=FIXTURE)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-kills-") as folder:
        tally = trial(arguments.kills, arguments.seed, arguments.model, Path(folder))
    summary = {
        "kills": tally.kills,
        "starts": tally.starts,
        "nights": tally.nights,
        "kills_by_phase": dict(tally.phases),
        "faults": tally.faults,
    }
    print(json.dumps(summary, indent=1))
    write_run(summary, arguments.json)
    sys.exit(1 if tally.faults else 0)


if __name__ == "__main__":
    main()
