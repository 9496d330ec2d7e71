"""kill -9 of single processes at random moments of a loop that runs: it goes on alone, nothing is lost or doubled.

    python benchmarks/chaos.py [--kills 1000] [--seed 0] [--jobs-only] [--in-turn] [--kinds KIND,...] [--stopped S]

A daemon works on jobs that solvers decide, which keep coming, each with an answer that is known; beside them the
embedded model is trained in short cycles, one after the other. At a random moment one process of its tree is killed
with SIGKILL: the daemon, the broker's guard, the broker, its keeper, what forks workers, the worker of jobs, what forks
learners, its spare, the learner, a sandbox or the verifier in it; each kind that is there is as likely as any other.
Where the daemon has ended, it is started again, as a service manager would do it. What was set aside because it met
three kills in a row is resumed, as a person would do it, and counted. With `--stopped SECONDS` the process is not
killed: it gets SIGSTOP, and SIGCONT after that time (600 is ten minutes).

Checked after each kill (with `--in-turn`, the short form, after each round of the kinds): work goes on within 10 s
(`--within`; on a busy machine more). That is the next job that ended, and after the kill of a learner the next rollouts
or steps on record. Checked at the end: every question that was asked has one job, ended as it has to, once in the audit
log, which holds; no job is there that nobody asked for; each solved one has one bundle, of which every byte is looked
at and some are verified anew; every cycle's steps are on record once and without a gap, with as many different rollouts
as the recipe says; the ledger is whole; no process, mount, control group or unfinished folder is left.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.client import ApiClient, DaemonNotRunning
from appliance.client.failures import ApiError, DaemonSilent
from appliance.client.messages import StartCycle
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import CycleState
from appliance.records.jobs import JobState
from benchmarks.job_kills import count, ended, question, start
from benchmarks.kills import FIXTURE, SMALL, count_cycle, environment, kill_tree, left_on_host, survivors
from benchmarks.record import write_run

AHEAD = 3
"""Jobs that wait at any moment."""
LONGEST_SECONDS = 2.0
"""Between that work went on and the next kill."""
SHORT_SECONDS = 0.3
"""After one came up, where the kinds take turns."""
GIVES_UP_SECONDS = 300.0
LOOK_SECONDS = 5.0
"""Between two looks for what was set aside, while work is waited for."""
LEARNS = ("learner", "learner's forkserver", "spare forkserver")
TRIED = "json_extract(payload, '$.kind') = 'selftest'"
"""An evaluation says how far it is with trying the verifiers, where nothing else is put on record."""
IN_TURN = ("daemon", "guard", "broker", "keeper", "forkserver", "worker", "sandbox", "verifier")
"""In the order in which they start: one start of the daemon passes through all of them."""


@dataclass
class Tally:
    kills: int = 0
    starts: int = 0
    jobs: int = 0
    cycles: int = 0
    steps: int = 0
    resumed: int = 0
    """Jobs and cycles that were set aside."""
    killed: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """From each kill of that kind until work went on."""
    late: int = 0
    """Of them, more than was allowed."""
    states: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def all_seconds(self) -> list[float]:
        return sorted(one for kind in self.seconds.values() for one in kind)


class Loop:
    """A daemon, what is asked of it, and how each job has to end."""

    def __init__(self, data: Path, seed: int, tally: Tally, *, learns: bool = True) -> None:
        self.data, self.tally, self.learns = data, tally, learns
        self.rng = Random(seed)
        self.asked: dict[str, JobState] = {}
        """By the question, which has a number in it."""
        self.told: set[str] = set()
        """Names of the jobs whose submission was answered; another one's answer was lost with the daemon."""
        self._api = ApiClient(data / "run" / "assay.sock", timeout_seconds=20.0)
        self._process: subprocess.Popen[bytes] | None = None
        self._looked = 0.0

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The daemon; another one where it has ended."""
        if self._process is None or self._process.poll() is not None:
            if self._process is not None:
                self._process.communicate()
            trains = environment(self.data, FIXTURE, SMALL) if self.learns else {}
            more = {name: value for name, value in trains.items() if name.startswith(("ASSAY_MODEL", "ASSAY_RECIPE"))}
            self._process = start(self.data, **more)
            self.tally.starts += 1
        return self._process

    def feed(self) -> None:
        """Keeps some jobs waiting and a cycle under way; what was set aside is resumed."""
        with contextlib.suppress(DaemonNotRunning, DaemonSilent, ApiError):
            for _ in range(AHEAD - (len(self.told) - ended(self.data))):
                # Those without an answer are left to the model: they would wait for one to be in service.
                asked, end = question(5 * len(self.asked), self.rng)
                self.asked[asked.question] = end
                try:
                    self.told.add(self._api.submit(asked).id)
                except DaemonNotRunning:
                    del self.asked[asked.question]
                    raise
            self._look_after()

    def finish(self) -> None:
        """Waits until all jobs that are on record have ended; nothing more is asked."""
        begun, self.learns = time.monotonic(), False
        while ended(self.data) < self.rows("jobs") and time.monotonic() - begun < GIVES_UP_SECONDS:
            assert self.process
            with contextlib.suppress(DaemonNotRunning, DaemonSilent, ApiError):
                self._look_after()
            time.sleep(0.05)

    def _look_after(self) -> None:
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        for job in self._api.jobs(limit=2 * AHEAD + 20):
            if job.state is JobState.SET_ASIDE:
                self._api.resume(job.id)
                self.tally.resumed += 1
        if self.learns:
            newest = self._api.cycles(limit=1)
            if newest and newest[0].state is CycleState.SET_ASIDE:
                self._api.resume_cycle(newest[0].id)
                self.tally.resumed += 1
            elif not newest or newest[0].state.ended:
                self._api.start_cycle(StartCycle(anew=True))

    def works_again(self, kind: str = "") -> float:
        """Seconds until work of that kind has gone on, from now."""
        begun, known = time.monotonic(), self._done(kind)
        while time.monotonic() - begun < GIVES_UP_SECONDS:
            assert self.process
            self.feed()
            if self._done(kind) > known:
                return time.monotonic() - begun
            time.sleep(0.02)
        self.tally.faults.append(
            f"no work went on within {GIVES_UP_SECONDS:g} s after kill {self.tally.kills} ({kind})"
        )
        return GIVES_UP_SECONDS

    def comes_up(self, kind: str) -> bool:
        """Waits for a process of that kind."""
        begun = time.monotonic()
        while time.monotonic() - begun < GIVES_UP_SECONDS:
            assert self.process
            self.feed()
            if kind in self.there():
                return True
            time.sleep(0.1)
        self.tally.faults.append(f"no {kind} came up within {GIVES_UP_SECONDS:g} s after kill {self.tally.kills}")
        return False

    def _done(self, kind: str) -> int:
        if kind in LEARNS:
            return sum(map(self.rows, ("rollouts", "steps", "decisions"))) + self.rows("events", TRIED)
        return ended(self.data)

    def rows(self, table: str, of: str = "true") -> int:
        """How many of that sort the table of the ledger has; it is only read."""
        with contextlib.suppress(sqlite3.Error):
            reading = sqlite3.connect(f"file:{self.data / 'ledger.sqlite3'}?mode=ro", uri=True, timeout=5.0)
            with contextlib.closing(reading):
                return int(reading.execute(f"select count(*) from {table} where {of}").fetchone()[0])
        return 0

    def there(self) -> dict[str, list[psutil.Process]]:
        """The processes of the daemon's tree, by their kinds."""
        found: dict[str, list[psutil.Process]] = {}
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(self.process.pid)
            for pid in tree_of(root.pid):
                with contextlib.suppress(psutil.NoSuchProcess):
                    one = psutil.Process(pid)
                    found.setdefault(kind_of(one, root), []).append(one)
        return found

    def kill_one(self, kinds: tuple[str, ...] = (), stopped: float = 0.0) -> str:
        """Which kind it was: each that is there, of those named, is as likely as any other. Empty when none is.

        With `stopped` it is stopped for so many seconds instead, and then goes on."""
        there = self.there()
        if not (names := sorted(name for name in there if not kinds or name in kinds)):
            return ""
        kind = self.rng.choice(names)
        with contextlib.suppress(psutil.NoSuchProcess):
            one = self.rng.choice(there[kind])
            if not stopped:
                one.kill()
            else:
                one.suspend()
                time.sleep(stopped)
                one.resume()
        return kind


def tree_of(pid: int) -> Iterator[int]:
    """Process ids of a process and of all below it; no other process of the machine is looked at."""
    yield pid
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                for child in (thread / "children").read_text().split():
                    yield from tree_of(int(child))


def kind_of(one: psutil.Process, root: psutil.Process) -> str:
    """What that process of a daemon's tree is for. Raises psutil.NoSuchProcess."""
    line = " ".join(one.cmdline())
    if one.pid == root.pid:
        return "daemon"
    for word, kind in (("broker_guard", "guard"), ("runtime.broker", "broker"), ("zygote", "verifier")):
        if word in line:
            return kind
    if one.name() == "assay-spare":
        return "spare forkserver"
    if "forkserver" in line:
        learns = False
        with contextlib.suppress(OSError):
            learns = "libtorch" in Path(f"/proc/{one.pid}/maps").read_text()
        forked = "forkserver" in " ".join(one.parent().cmdline())
        return ("learner" if learns else "worker") if forked else ("learner's forkserver" if learns else "forkserver")
    return "keeper" if line.startswith("/bin/sh") else "sandbox"


def trial(
    kills: int,
    seed: int,
    folder: Path,
    within: float,
    prepare: Callable[[Path], None] = lambda data: None,
    *,
    learns: bool = True,
    in_turn: bool = False,
    kinds: tuple[str, ...] = (),
    stopped: float = 0.0,
    stopped_first: float = 0.0,
) -> Tally:
    """`prepare` is called with the data folder before the first start. `kinds` are drawn from, all by
    default, and `stopped` is for how long one is stopped instead of killed. `in_turn`: the kinds take turns, each as
    soon as it is there, and after each round, not after each kill, work has to go on. `stopped_first`: in a round
    before the first kill each kind is stopped for so many seconds, and the daemon may not end for it."""
    tally, data = Tally(), folder / "data"
    prepare(data)
    loop = Loop(data, seed, tally, learns=learns)
    loop.works_again()
    if stopped_first:
        for kind in IN_TURN:
            while loop.comes_up(kind) and not loop.kill_one((kind,), stopped_first):
                """It had ended between the looks."""
            loop.works_again(kind)
        tally.faults += [f"started {tally.starts} times although nothing was killed"] * (tally.starts > 1)
    while tally.kills < kills:
        next_kinds = (IN_TURN[tally.kills % len(IN_TURN)],) if in_turn else kinds
        if in_turn and not loop.comes_up(next_kinds[0]):
            break
        time.sleep(loop.rng.uniform(0.0, SHORT_SECONDS if in_turn else LONGEST_SECONDS))
        loop.feed()
        if not (kind := loop.kill_one(next_kinds, stopped)):
            continue
        tally.killed[kind] += 1
        tally.kills += 1
        if not in_turn or tally.kills % len(IN_TURN) == 0:
            tally.seconds.setdefault(kind, []).append(round(loop.works_again(kind), 2))
            tally.late += tally.seconds[kind][-1] > within
        if tally.kills % 10 == 0 or kills < 10:
            said = f"{tally.kills} kills, {tally.starts} starts, {len(loop.asked)} jobs, load {os.getloadavg()[0]:.0f}"
            print(said, file=sys.stderr, flush=True)
    loop.finish()
    tally.faults += stop(loop.process, data)
    tally.faults += _counted(loop) + [f"left {one}" for one in left_on_host(data)]
    return tally


def stop(process: subprocess.Popen[bytes], data: Path) -> list[str]:
    """Ends the daemon in order; what of it did not end."""
    tree = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    wrong = []
    try:
        process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        wrong.append("it did not stop within 60 s")
        kill_tree(process)
    return wrong + [f"survived the end: {one}" for one in survivors(tree, data)]


def _counted(loop: Loop) -> list[str]:
    tally, wrong = loop.tally, []
    with SqliteLedger(loop.data / "ledger.sqlite3") as ledger:  # looks at each of its pages first
        jobs = ledger.jobs(limit=1_000_000)
        for cycle in ledger.cycles(limit=1_000_000):
            wrong += [f"cycle {cycle.id}: {one}" for one in count_cycle(ledger, cycle, SMALL)]
            if cycle.state is CycleState.FAILED:
                wrong.append(f"cycle {cycle.id} failed: {cycle.failure}")
            tally.cycles += 1
            tally.steps += len(ledger.recorded_steps(cycle.id))
    tally.jobs = len(jobs)
    wrong += [f"{name} is lost" for name in loop.told - {job.id for job in jobs}]
    wrong += [
        f"{times} jobs ask {text!r}" for text, times in Counter(job.question for job in jobs).items() if times > 1
    ]
    wrong += [f"{job.id} was never asked for" for job in jobs if job.question not in loop.asked]
    ends = {job.id: loop.asked[job.question] for job in jobs if job.question in loop.asked}
    return wrong + count(loop.data, ends, tally.states, ordered=False)


def summary(tally: Tally) -> dict[str, Any]:
    """What is told, for people and for the page of figures."""
    ordered = tally.all_seconds or [0.0]
    return {
        "kills": tally.kills,
        "starts": tally.starts,
        "jobs": tally.jobs,
        "cycles": tally.cycles,
        "steps": tally.steps,
        "resumed": tally.resumed,
        "states": dict(tally.states),
        "seconds_until_work_went_on": {
            "median": median(ordered),
            "p95": ordered[int(0.95 * (len(ordered) - 1))],
            "worst": ordered[-1],
        },
        "by_kind": {
            kind: {"kills": times, "median": median(took), "worst": max(took)}
            for kind, times in sorted(tally.killed.items())
            if (took := tally.seconds.get(kind, [0.0]))
        },
        "late": tally.late,
        "load": round(os.getloadavg()[2], 1),
        "faults": tally.faults,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--within", type=float, default=10.0, help="Seconds until work has gone on.")
    parser.add_argument("--in-turn", action="store_true", help="The kinds in turn, each as soon as it is there.")
    parser.add_argument("--jobs-only", action="store_true", help="No cycles beside the jobs.")
    parser.add_argument("--kinds", default="", help="Only these, with commas between; all by default.")
    parser.add_argument("--stopped", type=float, default=0.0, help="Stop for so many seconds instead of killing.")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    kinds = tuple(filter(None, arguments.kinds.split(",")))
    with tempfile.TemporaryDirectory(prefix="assay-chaos-") as folder:
        tally = trial(
            arguments.kills,
            arguments.seed,
            Path(folder),
            arguments.within,
            learns=not (arguments.jobs_only or arguments.in_turn),
            in_turn=arguments.in_turn,
            kinds=kinds,
            stopped=arguments.stopped,
        )
    figures = summary(tally)
    print(json.dumps(figures, indent=1))
    write_run(figures, arguments.json)
    sys.exit(1 if tally.faults or tally.late else 0)


if __name__ == "__main__":
    main()
