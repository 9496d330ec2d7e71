"""The core: the one owner of a data folder and of its ledger, without a model and without a network.

What always holds: between `__enter__` and `__exit__` no other process writes here (a lock that the kernel drops with
the process), the ledger has one writer, at most one cycle is unfinished, and at most one worker runs. Torch,
transformers and sympy are never imported here: child processes do what needs them. Killed at any moment, the next core
goes on.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from appliance import __version__
from appliance.audit.log import log_file
from appliance.audit.machine_keys import load_or_make
from appliance.client.messages import Approved, BudgetView, Comparison, PolicyInForce, Status, SubmitJob
from appliance.config import ConfigError, Settings
from appliance.daemon import hindsight, views
from appliance.daemon.child_log import ChildLog
from appliance.daemon.crew import Crew, Patience
from appliance.daemon.desk import WAITS, JobDesk
from appliance.daemon.errors import BrokenError, NoRoomError, NotThereError
from appliance.daemon.governance import Governance
from appliance.daemon.meanings import Meanings
from appliance.daemon.readiness import (
    BrokerAwayError,
    is_served,
    require_champion,
    require_isolation,
    require_model,
    require_room,
)
from appliance.daemon.trust import Trust
from appliance.daemon.worker_process import WORKER, WorkerProcess
from appliance.errors import explain
from appliance.jobs.solvers import solvers_for
from appliance.learning import folders
from appliance.ledger.audited import AuditedLedger
from appliance.ledger.ledger import Ledger
from appliance.lock import DataLock
from appliance.records import Cycle, CycleState, Event, Job, JobState
from policies.policy import Policy
from policies.register import KnownKey
from runtime.errors import RefusedError, SandboxError
from verifiers.spec import Spec


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Hindrance(NamedTuple):
    """Why no worker could begin."""

    reason: str
    """With what to do."""
    passes: bool
    """Whether it may be gone without anybody's word to this daemon."""


class Core:
    """Context manager. Every method may be called from any thread; `run_cycle_worker` and `run_jobs_worker` block.

    `now` gives UTC in ISO 8601; `worker` is the command line of the worker, for tests of what is around it. `refused`
    says why model code cannot be run here, as long as no broker answers; `own_broker`, that a guard of ours starts the
    broker again whenever it ends.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        now: Callable[[], str] = utc_now,
        worker: Sequence[str] = WORKER,
        patience: Patience | None = None,
        refused: RefusedError | None = None,
        own_broker: bool = False,
    ) -> None:
        self.settings = settings
        self.data = settings.data
        self._now = now
        self._worker = worker
        self._patience = patience or Patience()
        self._refused = refused
        self._own_broker = own_broker
        self._open = ExitStack()
        self._starting = threading.Lock()
        self._newest_event = 0

    def __enter__(self) -> Self:
        try:
            self._enter()
        except OSError as error:
            explained = explain(error)
            subject = error.filename or self.data
            raise BrokenError(
                f"the data folder {self.data} cannot be used: {subject}: {error.strerror}", hint=explained.hint
            ) from error
        return self

    def _enter(self) -> None:
        with ExitStack() as opening:
            self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
            opening.enter_context(DataLock(self.data))
            # Under the lock: whatever is there was left by a process that is gone.
            _drop_unfinished(self.data)
            key = load_or_make(self.data, "daemon")
            ledger = opening.enter_context(
                AuditedLedger(self.data / "ledger.sqlite3", log_file(self.data), key, self._now)
            )
            self.ledger: Ledger = ledger
            self.trust = Trust(ledger.audit, self.data, self._now)
            self.trust.log("daemon.start", version=__version__, policy=self.policy.digest)
            process = WorkerProcess(
                self.ledger,
                self.data,
                self._write_settings(),
                ChildLog(self.data / "logs" / "worker.log"),
                command=self._worker,
            )
            self.crew = Crew(self.ledger, process, self._now, self._patience, self._in_the_way)
            opening.callback(self.crew.close)
            self.desk = JobDesk(
                ledger, self.data, self.settings, lambda: self.policy, self._now, self.say, _is_for_solvers
            )
            self.desk.open()
            self.governance = Governance(self.ledger, self.trust, self.data, self._now)
            self.meanings = Meanings(ledger, self.trust, self.data)
            self.meanings.settle(self._now())
            ledger.on_job_end = self._job_ended
            self.governance.settle()
            self.questions = views.Questions(self.ledger)
            self.started = self._now()
            self._open = opening.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def policy(self) -> Policy:
        """The one in force."""
        return self.trust.policy

    # cycles
    def unfinished_cycle(self) -> Cycle | None:
        return views.unfinished_cycle(self.ledger)

    def start_cycle(
        self, kind: Literal["demo", "night"], seed: int | None = None, plan: Mapping[str, Any] | None = None
    ) -> Cycle:
        """A new cycle, on record and not yet run; the unfinished one when there is one. Seed None takes the next.

        Raises what `require` raises.
        """
        with self._starting:
            unfinished = self.unfinished_cycle()
            if unfinished is not None:
                return unfinished
            self.require()
            now = self._now()
            cycle = Cycle(
                id=f"{kind}-{now[:19].replace(':', '').replace('-', '')}-{secrets.token_hex(2)}".lower(),
                kind=kind,
                seed=self._next_seed() if seed is None else seed,
                plan=dict(plan) if plan is not None else self.default_plan(),
                phase="prepare",
                state=CycleState.RUNNING,
                created=now,
                updated=now,
            )
            self.ledger.put_cycle(cycle)
        self.say("cycle", f"{cycle.id} begins with seed {cycle.seed}")
        return cycle

    def run_cycle_worker(self, cycle: str) -> Cycle:
        """Runs workers until the cycle is done or has failed, or waits; see `appliance.daemon.crew`."""
        if self.ledger.cycle(cycle) is None:
            raise NotThereError(f"there is no cycle {cycle!r}", hint="`assay cycle ls` lists them")
        hindrance = self._hindrance()
        if hindrance is not None and not hindrance.passes:
            return self.crew.give_up_cycle(cycle, hindrance.reason)
        ended = self.crew.run_cycle(cycle)
        self.governance.settle()
        return ended

    def start_due_cycle(self) -> None:
        """What the clock does: a new cycle, unless the last one is still unfinished."""
        unfinished = self.unfinished_cycle()
        if unfinished is not None:
            self.say("schedule", f"a cycle is due and {unfinished.id} is not finished: none is started")
            return
        try:
            self.start_cycle("night")
        except (SandboxError, ConfigError, BrokenError) as error:
            self.say("schedule", f"a cycle is due and cannot start: {error}; {error.hint}")

    def require(self) -> None:
        """What every worker needs. Raises RefusedError without isolation, ConfigError without the configured model,
        BrokenError without the one in service, NoRoomError without the room on disk that the policy asks for."""
        self.require_isolation()
        require_room(self.data, self.policy.resources.min_free_gib)
        digest = self.ledger.alias("champion")
        champion = self.ledger.checkpoint(digest) if digest else None
        if champion is not None:
            require_champion(self.data / champion.folder)
        elif self.settings.model.path is not None:
            require_model(self.settings.model.path)

    def require_isolation(self) -> None:
        """Raises RefusedError where model code cannot be run."""
        broker = self.settings.sandbox.broker
        if self._refused is not None and not (broker is not None and is_served(broker)):
            kind = BrokerAwayError if self._own_broker else RefusedError
            raise kind(str(self._refused), hint=self._refused.hint)
        require_isolation(self.settings)

    def default_plan(self) -> dict[str, Any]:
        """The settings in force that make a model, to be kept with a cycle."""
        return {"recipe": self.settings.recipe.model_dump(mode="json")}

    # jobs
    def submit_job(
        self,
        question: str,
        spec: Spec | None,
        *,
        attempts: int | None = None,
        seed: int = 0,
        name: str | None = None,
        solvers: bool = True,
    ) -> Job:
        """Queues a plain question; see `JobDesk.submit`."""
        asked = SubmitJob(question=question, spec=spec, attempts=attempts, seed=seed)
        return self.desk.submit(asked, name=name, solvers=solvers)

    def has_job(self) -> bool:
        """Whether a worker would find a job to work on."""
        return self.crew.next_job() is not None

    def run_jobs_worker(self) -> None:
        """Runs workers until no job is queued, or all wait for something that passes; where no worker could begin and
        nothing is going to change that, the jobs fail with the reason."""
        hindrance = self._hindrance()
        if hindrance is not None and not hindrance.passes:
            self.crew.give_up_jobs(hindrance.reason)
        else:
            self.crew.run_jobs()

    def listed_jobs(self, limit: int) -> list[Job]:
        """All jobs, newest first, as they stand."""
        return [self.as_it_stands(job) for job in self.meanings.listed(limit)]

    def as_it_stands(self, job: Job) -> Job:
        """A queued one says what all work waits for, unless it waits for the first model anyway."""
        waits_for = self.crew.waits_for
        if not waits_for or job.state is not JobState.QUEUED or job.reason == WAITS:
            return job
        return job.model_copy(update={"reason": f"waits: {waits_for}"})

    # governance
    def approve(self, candidate: str, envelope: bytes) -> Approved:
        return self.governance.judge(candidate, "approve", envelope)

    def reject(self, candidate: str, envelope: bytes) -> Approved:
        return self.governance.judge(candidate, "reject", envelope)

    def change_key(self, envelope: bytes) -> KnownKey:
        """Admits a key or revokes one, whose words on jobs then count no more."""
        changed = self.trust.change_key(envelope)
        if not changed.valid:
            self.meanings.revoked(changed, self._now())
        return changed

    def give_meaning(self, job: str, envelope: bytes) -> Job:
        """A person's signed word on whether the job's check says what was meant."""
        return self.meanings.judge(job, envelope, self._now())

    def change_policy(self, content: bytes, envelope: bytes) -> PolicyInForce:
        """Puts a signed policy into force. Which isolation runs what is read by the broker when it starts."""
        policy = self.trust.change_policy(content, envelope)
        self.say("governance", f"the policy {policy.digest[:12]} is in force")
        return self.trust.policy_in_force()

    def budget(self) -> BudgetView:
        """How this quarter's budget stands under the policy in force."""
        return hindsight.budget(self.ledger, self.policy, self._now())

    def rollback(self, person: str, reason: str = "") -> dict[str, str | None]:
        return self.governance.rollback(person, reason)

    def compare(self, a: str, b: str) -> Comparison:
        return self.governance.compare(a, b)

    def tend(self) -> None:
        """Looks after the model that is tried beside the champion."""
        self.governance.tend()

    def _job_ended(self, job: Job) -> None:
        self.meanings.ended(job)
        self.governance.job_ended(job)

    # what people see
    def status(self, next_cycle: str | None = None) -> Status:
        cycle = self.unfinished_cycle() or next(iter(self.ledger.cycles(limit=1)), None)
        names = views.aliases(self.ledger)
        decisions = self.ledger.decisions(candidate=names["candidate"], limit=1)
        metrics = self.ledger.step_metrics(cycle.id) if cycle is not None else []
        return Status(
            version=__version__,
            pid=os.getpid(),
            data=str(self.data),
            started=self.started,
            uptime_seconds=_seconds_between(self.started, self._now()),
            worker=self.crew.status,
            cycle=cycle,
            step_metrics=metrics[-1] if metrics else {},
            aliases=names,
            canary=self.governance.canary(),
            decision=decisions[0] if decisions else None,
            jobs=self.ledger.job_counts(),
            next_cycle=next_cycle,
            policy=self.policy.digest,
            last_event=self._last_event(),
        )

    def say(self, kind: str, text: str, **figures: float) -> None:
        """Puts a line of progress on record."""
        self.ledger.put_event(Event(kind=kind, text=text, figures=figures, created=self._now()))

    def _hindrance(self) -> Hindrance | None:
        """None when a worker can begin."""
        try:
            self.require()
        except BrokerAwayError as error:
            if self._own_broker:
                return Hindrance(f"{error}; our own broker starts again by itself", passes=True)
            return Hindrance(f"{error}; {error.hint}", passes=False)
        except (SandboxError, ConfigError, BrokenError) as error:
            return Hindrance(f"{error}; {error.hint}", passes=isinstance(error, NoRoomError))
        return None

    def _in_the_way(self) -> str:
        """What keeps a worker from beginning and passes; see `Crew`."""
        hindrance = self._hindrance()
        return hindrance.reason if hindrance is not None and hindrance.passes else ""

    def _last_event(self) -> int:
        with self._starting:
            self._newest_event = views.newest_event(self.ledger, self._newest_event)
            return self._newest_event

    def _next_seed(self) -> int:
        """One more than any cycle had."""
        return max((cycle.seed for cycle in self.ledger.cycles(limit=10_000)), default=-1) + 1

    def _write_settings(self) -> Path:
        """The settings in force, for the worker to read."""
        path = self.data / "run" / "worker.json"
        try:
            path.write_text(self.settings.model_dump_json(indent=1))
        except OSError as error:
            raise BrokenError(
                f"{path} cannot be written: {error.strerror}", hint="free some space on the disk that holds it"
            ) from error
        return path


def _is_for_solvers(job: Job) -> bool:
    """Whether any solver has something to try."""
    return bool(solvers_for(job))


def _drop_unfinished(data: Path) -> None:
    """What an interrupted write left behind: whole folders are renamed into place, so these are never needed."""
    folders.sweep(data / "models")
    folders.sweep(data / "artifacts")
    cycles = data / "cycles"
    if cycles.is_dir():
        for cycle in sorted(cycles.iterdir()):
            folders.sweep(cycle / "checkpoints")


def _seconds_between(start: str, end: str) -> float:
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())
