"""The core: sole owner of a data folder and of its ledger, without a model and without a network.

Invariants: between `__enter__` and `__exit__` no other process writes here (a lock that the kernel releases with the
process), the ledger has one writer, at most one cycle is unfinished, and at most two workers run: one with a model, one
for the solvers of jobs. Torch, transformers and sympy are never imported here: child processes use them. Killed at any
moment, the next core resumes. The core only connects the services; each has one subject.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Self

from appliance import __version__
from appliance.audit.kept_heads import KeptHeads, head_files
from appliance.audit.log import log_file
from appliance.audit.machine_keys import load_or_make
from appliance.client.retention import Prune, Pruned
from appliance.config.configuration import Settings
from appliance.daemon.contract import BrokenError, EventLog
from appliance.daemon.governance.approvals import Governance
from appliance.daemon.governance.trust import Trust
from appliance.daemon.governance.validations import Validations
from appliance.daemon.nights.notices import Notices, night_notice
from appliance.daemon.nights.runner import Nights
from appliance.daemon.processes.child_log import ChildLog
from appliance.daemon.processes.wake_thread import LOST_SECONDS
from appliance.daemon.processes.worker_process import WorkerProcess
from appliance.daemon.service.collected import CollectedWork
from appliance.daemon.service.cycles import Cycles
from appliance.daemon.service.gateway_tokens import GatewayDesk
from appliance.daemon.service.job_queue import JobQueue
from appliance.daemon.service.own_work import OwnWork
from appliance.daemon.service.readiness import Readiness
from appliance.daemon.service.resource_watch import GpuReader, ResourceLimits, ResourceWatch, free_resources
from appliance.daemon.service.supervisor import RetryPolicy, WorkerSupervisor, work_of_cycle
from appliance.daemon.views.ledger_views import Rollouts
from appliance.errors import explain
from appliance.jobs.lifecycle import JobFiles
from appliance.learning import folders
from appliance.ledger.adoption import put_right, require_log
from appliance.ledger.audited import AuditedLedger
from appliance.ledger.lock import data_lock
from appliance.ledger.sqlite import SqliteLedger
from appliance.nights.machine import MachineEyes, MachineSnapshot
from appliance.readiness.model import ConfiguredModel
from appliance.records.jobs import Job, work_of
from appliance.records.nights import Night
from appliance.system.clock import utc_now
from policies.policy import Policy
from runtime.errors import RefusedError

MOST_CYCLES = 100_000


class Retention:
    """Drops the tokens of old training and validation rollouts from the ledger; thread-safe. `nights` is the configured
    number of cycles to keep; None keeps everything."""

    def __init__(self, ledger: SqliteLedger, trust: Trust, events: EventLog, nights: int | None) -> None:
        self._ledger, self._trust, self._events, self._nights = ledger, trust, events, nights
        self._done: set[str] = set()

    def apply(self) -> None:
        """Drops rollout tokens of cycles older than the configured retention, if any."""
        if self._nights is not None:
            self.prune(Prune(nights=self._nights))

    def prune(self, wanted: Prune) -> Pruned:
        """Drops the tokens of training and validation rollouts in all but the newest cycles, or with `dry_run` only
        counts them. Raises LedgerError and AuditError; cycles already dropped stay dropped."""
        ended = [cycle.id for cycle in self._ledger.cycles(limit=MOST_CYCLES) if cycle.state.ended]
        old = [name for name in ended[wanted.nights :] if name not in self._done]
        found = self._ledger.drop_tokens(old, dry_run=True)
        if found.rollouts and not wanted.dry_run:
            self._trust.log("ledger.pruned", cycles=str(len(old)), rollouts=str(found.rollouts), oldest=old[-1])
            found = self._ledger.drop_tokens(old)
            mib = found.bytes / 2**20
            self._events.add(
                "retention", f"the tokens of {found.rollouts} training rollouts were dropped: {mib:.1f} MiB freed"
            )
        if not wanted.dry_run:
            self._done.update(old)
        return Pruned(cycles=tuple(old), rollouts=found.rollouts, bytes=found.bytes, dry_run=wanted.dry_run)


class Core:
    """The daemon's services on one data folder: a context manager that opens and connects them. Their methods are
    thread-safe; `cycles.run` and `supervisor.run_jobs` block.

    `now` gives UTC in ISO 8601; `worker` is a program in the worker's place, for tests of its surroundings. `refused`
    says why model code cannot run, while no broker answers; `own_broker` means that a guard of this daemon restarts the
    broker whenever it ends; `machine` replaces measuring the machine's use; `purpose` is written into the folder's
    lock.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        now: Callable[[], str] = utc_now,
        worker: Sequence[str] = (),
        retry: RetryPolicy | None = None,
        refused: RefusedError | None = None,
        own_broker: bool = False,
        machine: Callable[[], MachineSnapshot] | None = None,
        purpose: str = "",
    ) -> None:
        self.settings = settings
        self._purpose = purpose
        self.data = settings.data
        self.now = now
        self._worker = worker
        self._retry = retry or RetryPolicy()
        self._refused = refused
        self._own_broker = own_broker
        rules = settings.schedule
        typed, energy = rules.idle.session is not None, rules.max_energy is not None
        self._machine = machine or MachineEyes(gpu=rules.idle.gpu, typed=typed, energy=energy).look
        self._open = ExitStack()
        self.broker_news = ""

    def __enter__(self) -> Self:
        try:
            with ExitStack() as opening:
                self._enter(opening)
                self._open = opening.pop_all()
        except OSError as error:
            explained = explain(error)
            subject = error.filename or self.data
            raise BrokenError(
                f"the data folder {self.data} cannot be used: {subject}: {error.strerror}", hint=explained.hint
            ) from error
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.trust.policy

    def _enter(self, opening: ExitStack) -> None:
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        opening.enter_context(data_lock(self.data, self._purpose))
        # Under the lock: leftovers of interrupted writes belong to ended processes.
        for parent in ("models", "artifacts", "cycles/*/checkpoints", "cycles/*/*/checkpoints"):
            for folder in self.data.glob(parent):
                folders.sweep(folder)
        key = load_or_make(self.data, "daemon")
        kept = KeptHeads(head_files(self.settings, self.data))
        ledger = opening.enter_context(
            AuditedLedger(self.data / "ledger.sqlite3", log_file(self.data), key, self.now, kept)
        )
        self.ledger: AuditedLedger = ledger
        self.events = EventLog(ledger, self.now)
        require_log(ledger)
        self.trust = Trust(ledger.audit, self.data, self.now)
        self._repair(ledger)
        self.trust.log("daemon.start", version=__version__, policy=self.policy.digest)
        model = ConfiguredModel(
            self.settings.model,
            training=self.settings.recipe.training,
            vllm=self.settings.vllm,
            placement=self.settings.placement,
            clustered=self.settings.cluster.address is not None,
        )
        gpus = GpuReader(os.getpid()).look if self.settings.model.device != "cpu" else tuple
        watch = ResourceWatch(lambda: free_resources(self.data, gpus=gpus), self._limits)
        self.readiness = Readiness(
            self.settings, ledger, lambda: self.policy, self._refused, self._own_broker, model, watch
        )
        log = ChildLog(self.data / "logs" / "worker.log")
        settings = self.settings.model_dump_json()
        self.notices = Notices(self.settings.report, lambda text: self.events.tell("report", text))
        opening.callback(self.notices.close)

        def supervisor() -> WorkerSupervisor:
            process = WorkerProcess(ledger, self.data, settings, lambda: self.policy.digest, log, command=self._worker)
            made = WorkerSupervisor(ledger, process, self.events, self.now, self._retry, self.readiness)
            opening.callback(made.close)
            return made

        self.supervisor, self.solvers = supervisor(), supervisor()
        unended = [work_of(job.id) for job in ledger.unended_jobs()]
        unended += [work_of_cycle(cycle.id) for cycle in ledger.cycles(limit=1_000) if not cycle.state.ended]
        ledger.leases.open(unended)
        self.jobs = JobQueue(ledger, JobFiles(self.data), self.settings, lambda: self.policy, self.now, self.events)
        self.jobs.open()
        self.governance = Governance(ledger, self.trust, self.data, self.now, self.events)
        self.supervisor.on_set_aside = self.governance.job_ended
        self.retention = Retention(ledger, self.trust, self.events, self.settings.retention.training_nights)
        self.cycles = Cycles(
            ledger,
            self.settings,
            self.readiness,
            self.supervisor,
            self.events,
            self.now,
            lambda: self.policy,
            self._cycle_ended,
            lambda: ledger.in_force.certificates,
        )
        self.nights = Nights(ledger, self.settings.schedule, self.cycles, self.events, self.now, self._machine)
        self.nights.ended = self._tell
        self.validations = Validations(ledger, self.trust, self.data, self.now, self.events)
        self.trust.on_revoked = self.validations.revoked
        self.validations.reconcile()
        ledger.on_job_end = self._job_ended
        self.governance.reconcile()
        self.rollouts = Rollouts(ledger)
        self.own_work = OwnWork(ledger, self.trust, self.data, self.now, self.events)
        decided = self.own_work.decided
        self.gateway = GatewayDesk(self.trust, self.data, self.settings.gateway, self.now, decided)
        self.collected = CollectedWork(ledger, self.jobs.files, self.gateway, self.own_work, lambda: self.policy)
        self.started = self.now()

    def note_broker(self, text: str) -> None:
        """Reports a change of the daemon's own sandbox broker, or of its environment, as an event and in the status."""
        self.broker_news = f"{text} ({self.now()[:19]})"
        self.events.tell("broker", text)

    def lose_broker(self) -> None:
        """Shortens the workers' time to end, because the daemon's sandbox broker will not come back."""
        for one in (self.supervisor, self.solvers):
            one.process.close_seconds = LOST_SECONDS

    def _repair(self, ledger: AuditedLedger) -> None:
        """Repairs a ledger that differs from its log; raises BrokenError if it had to."""
        found = put_right(ledger)
        if found:
            for text in found:
                self.events.add("governance", f"the ledger was tampered with and repaired: {text}")
            raise BrokenError(
                f"the ledger differed from the audit log and was repaired: {'; '.join(found[:5])}",
                hint="start it again; `assay audit ls` shows the differences",
            )

    def _limits(self) -> ResourceLimits:
        service = self.settings.service
        return ResourceLimits(
            self.policy.resources.min_free_gib, service.memory_gib, service.gpu_memory_gib, service.gpu_celsius
        )

    def _cycle_ended(self) -> None:
        self.governance.reconcile()
        self.retention.apply()

    def _tell(self, night: Night) -> None:
        """Sends people the notice about an ended night, if configured, without blocking."""
        self.notices.tell(lambda: night_notice(self.ledger, night), lambda: self.nights.book.reported(night.key))

    def _job_ended(self, job: Job) -> None:
        self.validations.ended(job)
        self.governance.job_ended(job)
