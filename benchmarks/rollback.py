"""How long a rollback interrupts the service: from the command to the first job that the previous model answered.

    python benchmarks/rollback.py [--rounds 5] [--json FILE] [--model FOLDER]

A real daemon on a data folder of its own, with the embedded model as the previous champion, and as the champion a copy
of it whose weights were emptied: a bad promotion. There are always jobs that wait; when the bad champion has answered
one, `assay model rollback` is run as a person runs it. Each round is made twice: while short jobs come and
go, and while the bad champion is in the middle of a long one, which has to go back into the queue.

Measured: the interruption, from the moment at which the bad champion is out of service to the first answer by the
previous model; and from the start of the command, which is a program that has to start, to its end and to that answer.
Checked: the evaluation, the decision, the one that keeps the model out, its answers and its folder are all there, and
the audit log holds. Bar: an interruption under 5 s in every round.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from safetensors.numpy import load_file, save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.cli.audit.read import verified
from appliance.client import ApiClient, DaemonNotRunning, Job, SubmitJob
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.learning.checkpoints import publish
from appliance.learning.folders import verify
from appliance.ledger.history import history_of
from appliance.ledger.ledger import Ledger
from appliance.promotion.evidence import CHAMPION, PREVIOUS, decision_on
from appliance.records.cycles import Checkpoint
from appliance.records.evaluations import Evaluation, ItemResult, ModelResults
from appliance.system.clock import utc_now
from benchmarks.kills import NO_NIGHTS
from benchmarks.record import write_run
from curriculum.sealed import SealedSet, sealed_set
from verifiers.answers.spec import AnswerSpec

FIXTURE = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "seedling"
ASSAY = (sys.executable, "-m", "appliance.cli.main")
BAR_SECONDS = 5.0
LOOK_SECONDS = 0.1
NEWEST = 16
"""Jobs that are looked at: a look must not be what keeps the daemon busy."""
WAITING = 3
"""Jobs that wait, at least."""
SHORT, LONG = 4, 1024
"""Attempts of a job; the long one takes a model without an answer tens of seconds."""


def emptied(model: Path, folder: Path) -> Path:
    """A copy that knows nothing: every output is as likely as every other."""
    shutil.copytree(model, folder)
    (folder / "manifest.json").unlink(missing_ok=True)
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    save_file({name: tensor * 0 for name, tensor in tensors.items()}, weights, metadata={"format": "pt"})
    return folder


def put_models(data: Path, model: Path) -> tuple[str, str]:
    """Good and bad model on record, with an evaluation and a decision about the bad one; their digests."""
    bad_folder = emptied(model, data.parent / "emptied")
    with Core(Settings(data=data)) as core:
        good, bad = (publish(folder, data / "models") for folder in (model, bad_folder))
        for digest, parent in ((good, None), (bad, good)):
            core.ledger.put_checkpoint(
                Checkpoint(
                    manifest=digest,
                    parent=parent,
                    cycle="rollback",
                    stage="training",
                    step=1,
                    recipe="r",
                    metrics={},
                    folder=f"models/{digest}",
                    created=utc_now(),
                )
            )
        put_decision(core, good, bad, sealed_set(64, seed=4))
    return good, bad


def put_decision(core: Core, good: str, bad: str, sealed: SealedSet) -> None:
    def results(weights: str) -> ModelResults:
        items = tuple(
            ItemResult(task=task.id, family=task.taskset, passed=True, calls=1, failed_calls=0) for task in sealed.tasks
        )
        return ModelResults(weights=weights, temperature=1.0, items=items, tokens=1, seconds=1.0)

    evaluation = Evaluation(
        id="rollback-evaluation",
        cycle="rollback",
        sealed_set=sealed.digest,
        candidate=results(bad),
        champion=results(good),
        candidate_greedy=results(bad),
        champion_greedy=results(good),
        created=utc_now(),
        policy=core.policy.digest,
    )
    core.ledger.put_evaluation(evaluation)
    decision = decision_on(
        evaluation,
        core.policy,
        in_service=good,
        history=history_of(evaluation, core.ledger),
        id="rollback-decision",
        made_at=utc_now(),
    )
    core.ledger.put_decision(decision)


class Daemon:
    """Context manager: `assay serve`, answered."""

    def __init__(self, data: Path) -> None:
        self.data = data
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "XDG_C", "XDG_D"))}
        self.environ = kept | {"ASSAY_DATA": str(data), "XDG_CONFIG_HOME": str(data.parent / "config")} | NO_NIGHTS

    def __enter__(self) -> ApiClient:
        self._process = subprocess.Popen(
            [*ASSAY, "serve"], env=self.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._api = ApiClient(self.data / "run" / "assay.sock", timeout_seconds=30.0)
        deadline = time.monotonic() + 300
        while True:
            try:
                self._api.status()
            except DaemonNotRunning:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return self._api

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout=120)


def ask(api: ApiClient, number: int, *, long: bool = False) -> Job:
    """A question whose answer no solver can know."""
    low = 6 + number % 5
    return api.submit(
        SubmitJob(
            question=f"gcd of {low} and {2 * low}?",
            spec=AnswerSpec(notation="digits", expected=str(low)),
            attempts=LONG if long else SHORT,
            priority=9 if long else 5,
        )
    )


def keep_asked(api: ApiClient, number: int) -> int:
    """A stream that never runs dry and does not pile up; the number of the next question."""
    if api.status().jobs.get("queued", 0) < WAITING:
        ask(api, number)
        number += 1
    return number


def answered_by(api: ApiClient, weights: str) -> list[Job]:
    return [
        job for job in api.jobs(limit=NEWEST) if job.weights == weights and job.state.value in ("solved", "unsolved")
    ]


def rollback_once(data: Path, good: str, bad: str, *, busy: bool) -> dict[str, object]:
    """One rollback of a running service. Raises TimeoutError where the previous model never answers."""
    with Core(Settings(data=data)) as core:
        core.ledger.set_aliases({CHAMPION: bad, PREVIOUS: good}, "a bad promotion", utc_now())
    daemon, number = Daemon(data), 0
    with daemon as api:
        before = {job.id for job in answered_by(api, bad)}
        earlier = {job.id for job in answered_by(api, good)}
        while not {job.id for job in answered_by(api, bad)} - before:
            number = keep_asked(api, number)
            time.sleep(LOOK_SECONDS)
        running = ""
        if busy:
            running = ask(api, number, long=True).id
            until(lambda: api.job(running).job.state.value == "running" and api.job(running).job.weights == bad)
            time.sleep(1.0)
        started = time.monotonic()
        command = subprocess.Popen(
            [*ASSAY, "model", "rollback", "--reason", "benchmark", "--json", "--confirm", bad[:8]],
            env=daemon.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        ended, answered = 0.0, 0.0
        while not answered:
            if time.monotonic() - started > 120:
                raise TimeoutError("the previous model did not answer in two minutes")
            if not ended and command.poll() is not None:
                ended = time.monotonic() - started
            number = keep_asked(api, number)
            if {job.id for job in answered_by(api, good)} - earlier:
                answered = time.monotonic() - started
            time.sleep(LOOK_SECONDS)
        if command.wait() != 0:
            raise RuntimeError(f"the command failed: {command.communicate()[1].decode()[:500]}")
        ended = ended or time.monotonic() - started
        again = ""
        if busy:
            until(lambda: api.job(running).job.state.value in ("solved", "unsolved"))
            again = api.job(running).job.weights
    return {
        "busy": busy,
        "interruption_seconds": interruption(data, good),
        "command_seconds": round(ended, 2),
        "answered_seconds": round(answered, 2),
        "long_job_answered_by_the_previous": again == good if busy else None,
        "evidence_kept": evidence_kept(data, bad),
    }


def interruption(data: Path, good: str) -> float:
    """Seconds from the move of the aliases to the first job that ended with these weights, by the daemon's clock."""
    with Core(Settings(data=data)) as core:
        out = datetime.fromisoformat(str(core.ledger.alias_history(limit=1)[0]["at"]))
        done = [job for job in core.ledger.jobs(limit=1000) if job.state.value in ("solved", "unsolved")]
        ends = [datetime.fromisoformat(job.updated) for job in done if job.weights == good]
    return round((min(end for end in ends if end >= out) - out).total_seconds(), 2)


def until(holds: object, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise TimeoutError("it never came to hold")
        time.sleep(0.05)


def evidence_kept(data: Path, bad: str) -> bool:
    with Core(Settings(data=data)) as core:
        ledger: Ledger = core.ledger
        names = [decision.id for decision in ledger.decisions(candidate=bad, limit=100)]
        kept = (
            ledger.evaluation("rollback-evaluation") is not None
            and "rollback-decision" in names
            and any(name.startswith("rollback-") and name != "rollback-decision" for name in names)
            and any(job.weights == bad for job in ledger.jobs(limit=1000))
            and verify(data / "models" / bad) == bad
        )
    return kept and verified(data, None, None, []).found.holds


def main() -> int:
    """1 when the bar is missed or evidence is gone."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", type=Path, default=FIXTURE)
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="assay-rb-"))
    rows: list[dict[str, object]] = []
    try:
        data = folder / "data"
        good, bad = put_models(data, asked.model)
        for number in range(asked.rounds):
            for busy in (False, True):
                rows.append(rollback_once(data, good, bad, busy=busy))
                print(f"round {number + 1}: {rows[-1]}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    met = all(
        float(str(row["interruption_seconds"])) < BAR_SECONDS
        and row["evidence_kept"]
        and row["long_job_answered_by_the_previous"] is not False
        for row in rows
    )
    for busy in (False, True):
        where = "in the middle of a long job" if busy else "between short jobs"
        for name in ("interruption_seconds", "answered_seconds"):
            some = [float(str(row[name])) for row in rows if row["busy"] is busy]
            print(f"{where}: {name}: median {statistics.median(some):.2f}, at most {max(some):.2f}")
    write_run({"rounds": rows, "met": met}, asked.json)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
