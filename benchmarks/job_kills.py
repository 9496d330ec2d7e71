"""kill -9 of the daemon at random moments while jobs of all priorities wait: each is done once, in order, none is lost.

    python benchmarks/job_kills.py [--jobs 200] [--kills 20] [--seed 0] [--json FILE]

The jobs are questions that solvers decide, some of which have no answer, so that no model is needed and the whole life
of a job is there: queue, worker, sandboxed solvers, verifier, bundle, ledger, audit log. All are queued before the
first start. Then the daemon is started, and at a random moment it, its worker, its broker and whatever they started are
killed with SIGKILL: at a random number of jobs done and up to a second later, or within the first seconds of a start.
After the last kill it works to the end.

Checked: no process survives a kill; every job has ended as its question asks; the audit log holds, and has one
`job.ended` for each job, in the order of priority and then of age; each solved job has one artifact, whose bundle is
whole (some are verified again, in full), and no other job has one; no mount, cgroup or unfinished folder is left.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.audit.log import log_file
from appliance.audit.machine_keys import load_key
from appliance.client.messages import SubmitJob
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.jobs.check import check_bundle
from appliance.jobs.reading import read_bundle
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.jobs import Job, JobState
from benchmarks.kills import NO_NIGHTS, kill_tree, left_on_host, survivors
from benchmarks.record import write_run
from policies import audit
from policies.audit import AuditEntry
from verifiers.checker import Checker
from verifiers.predicate.spec import PredicateSpec

MARK = b'"kind":"job.ended"'
VERIFIED = 5
"""Bundles that are verified again in full; of all others every byte is looked at."""


@dataclass
class Tally:
    jobs: int = 0
    kills: int = 0
    starts: int = 0
    seconds: float = 0.0
    killed_at: list[int] = field(default_factory=list)
    """How many jobs had ended at each kill."""
    running: int = 0
    """Kills that met a job under way."""
    states: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def question(number: int, rng: Random) -> tuple[SubmitJob, JobState]:
    """A job, and how it has to end."""
    factor, known, more = rng.randint(2, 9), rng.randint(2, 99), rng.randint(1, 9)
    if number % 5 == 4:
        text, ends = f"{factor}*x*x == {-known}", JobState.UNSOLVED
    else:
        text, ends = f"{factor}*x + {more} == {factor * known + more}", JobState.SOLVED
    spec = PredicateSpec(predicate=text, domain="integer")
    asked = SubmitJob(question=f"Find x, number {number}: {text}", spec=spec, priority=rng.randint(0, 9))
    return asked, ends


def queue(data: Path, jobs: int, rng: Random) -> dict[str, JobState]:
    """All of them, before anything works on any; how each has to end, by its name."""
    ends: dict[str, JobState] = {}
    settings = Settings.load({"data": str(data)}, environ={"HOME": str(data.parent)}, etc_dir=data.parent)
    with Core(settings) as core:
        for number in range(jobs):
            asked, end = question(number, rng)
            ends[core.jobs.submit(asked).id] = end
    return ends


def start(data: Path, **more: str) -> subprocess.Popen[bytes]:
    """A daemon; `more` is added to its environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "XDG_C", "XDG_D"))}
    return subprocess.Popen(
        [sys.executable, "-m", "appliance.cli.main", "serve"],
        env=kept | {"ASSAY_DATA": str(data), "XDG_CONFIG_HOME": str(data.parent / "config")} | NO_NIGHTS | more,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def ended(data: Path) -> int:
    """Jobs that the audit log says have ended."""
    path = log_file(data)
    return path.read_bytes().count(MARK) if path.exists() else 0


def until(
    process: subprocess.Popen[bytes], condition: Callable[[], bool], seconds: float, *, every: float = 0.02
) -> bool:
    """Whether it came to hold while the process lived."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        if condition():
            return True
        time.sleep(every)
    return condition()


def trial(jobs: int, kills: int, seed: int, folder: Path, prepare: Callable[[Path], None] = lambda data: None) -> Tally:
    """`prepare` is called with the data folder before the first start."""
    rng = Random(seed)
    tally = Tally(jobs=jobs)
    data = folder / "data"
    prepare(data)
    ends = queue(data, jobs, rng)
    begun = time.monotonic()
    moments = sorted(rng.randint(0, jobs - 1) for _ in range(kills))
    for moment in moments:
        process = start(data)
        tally.starts += 1
        if ended(data) > moment or rng.random() < 0.2:
            until(process, lambda: False, rng.uniform(0.1, 4.0))
        elif not until(process, lambda moment=moment: ended(data) >= moment, 600.0):  # type: ignore[misc]
            tally.faults.append(f"only {ended(data)} of {moment} jobs ended within ten minutes")
        time.sleep(rng.uniform(0.0, 1.0))
        tree = kill_tree(process)
        _drain(process)
        tally.kills += 1
        tally.killed_at.append(ended(data))
        tally.running += _under_way(data)
        tally.faults += [f"survived kill {tally.kills}: {one}" for one in survivors(tree, data)]
    process = start(data)
    tally.starts += 1
    if not until(process, lambda: ended(data) >= jobs, 60.0 + 10.0 * jobs):
        tally.faults.append(f"only {ended(data)} of {jobs} jobs ended in the end")
    process.send_signal(signal.SIGTERM)
    _drain(process)
    tally.seconds = round(time.monotonic() - begun, 1)
    tally.faults += count(data, ends, tally.states)
    tally.faults += [f"left {one}" for one in left_on_host(data)]
    return tally


def _drain(process: subprocess.Popen[bytes]) -> None:
    process.communicate(timeout=120)


def _under_way(data: Path) -> bool:
    with SqliteLedger(data / "ledger.sqlite3") as ledger:
        return any(job.state is JobState.RUNNING for job in ledger.unended_jobs())


def count(data: Path, ends: dict[str, JobState], states: Counter[str], *, ordered: bool = True) -> list[str]:
    """What is wrong with the ledger, the audit log and the artifacts; nothing, it is hoped. `ordered`: all jobs were
    there before the first was begun, so that they had to end in their order."""
    wrong: list[str] = []
    entries = _ends_on_record(data, wrong)
    logged = [str(entry.what["job"]) for entry in entries]
    with SqliteLedger(data / "ledger.sqlite3") as ledger:
        jobs = {job.id: job for job in ledger.jobs(limit=100_000)}
        artifacts = {artifact.id: artifact for artifact in ledger.artifacts(limit=100_000)}
    states.update(job.state.value for job in jobs.values())
    wrong += [f"{name} is lost" for name in ends if name not in jobs]
    wrong += [f"{name} was never asked for" for name in jobs if name not in ends]
    for name, end in ends.items():
        job = jobs.get(name)
        if job is not None and job.state is not end:
            wrong.append(f"{name} is {job.state.value} and not {end.value}: {job.reason}")
    wrong += [f"{name} has {times} ends in the log" for name, times in Counter(logged).items() if times != 1]
    wrong += [f"{name} has no end in the log" for name in set(ends) - set(logged)]
    if ordered and logged != in_order(jobs):
        wrong.append("the jobs did not end in the order of priority and age")
    solved = {job.artifact for job in jobs.values() if job.state is JobState.SOLVED}
    if solved != set(artifacts) or {path.name for path in (data / "artifacts").iterdir()} != set(artifacts):
        wrong.append(f"{len(solved)} jobs are solved, {len(artifacts)} artifacts are on record, folders differ")
    with Checker() as checker:
        for place, artifact in enumerate(artifacts.values()):
            folder = data / artifact.folder
            again = place % max(1, len(artifacts) // VERIFIED) == 0
            if again and not check_bundle(folder, expect=artifact.manifest, checker=checker).ok:
                wrong.append(f"the bundle of {artifact.job} does not verify")
            elif not again and not ((read := read_bundle(folder)).intact and read.digest == artifact.manifest):
                wrong.append(f"the bundle of {artifact.job} is not whole: {'; '.join(read.wrong)}")
            if entries and artifact.manifest not in {entry.what["bundle"] for entry in entries}:
                wrong.append(f"the log knows another bundle of {artifact.job}")
    return wrong


def in_order(jobs: dict[str, Job]) -> list[str]:
    """Names as they have to end: the ledger lists the newest first."""
    oldest_first = list(reversed(jobs.values()))
    return [job.id for job in sorted(oldest_first, key=lambda job: -job.priority)]


def _ends_on_record(data: Path, wrong: list[str]) -> list[AuditEntry]:
    lines = log_file(data).read_bytes().splitlines(keepends=True)
    key = load_key(data, "daemon").public_key()
    found = audit.check(iter(lines), key)
    if not found.holds:
        wrong.append(f"the audit log does not hold: {found.problem}")
    return [entry for entry in map(audit.read, lines) if entry.kind == "job.ended"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-jobs-") as folder:
        tally = trial(arguments.jobs, arguments.kills, arguments.seed, Path(folder))
    summary = {**tally.__dict__, "states": dict(tally.states), "date": datetime.now(UTC).date().isoformat()}
    print(json.dumps(summary, indent=1))
    write_run(summary, arguments.json)
    sys.exit(1 if tally.faults else 0)


if __name__ == "__main__":
    main()
