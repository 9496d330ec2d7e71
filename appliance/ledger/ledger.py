"""Protocol of the ledger: every record that the rest of the product may read or write.

Exactly one process writes: the holder of the data folder's lock. A worker process gets the same protocol through a
socket (`appliance.ledger.remote`). Every call returns only when the record is on disk. Writing an identical record
again changes nothing; a different one under the same key raises LedgerError, unless the method says "updates".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from appliance.records.cycles import Checkpoint, Cycle, Event
from appliance.records.evaluations import Approval, Evaluation
from appliance.records.jobs import Artifact, Job, JobPart, JobStep
from appliance.records.nights import Canary
from appliance.records.training import ANY_ROLLOUT, Judged, RolloutFilter, StepRecord
from common.errors import HintedError
from policies.contract.decision import Decision

RENEW_SECONDS = 10.0
"""Interval at which a worker renews its leases, in seconds."""


class LedgerError(HintedError):
    """The ledger cannot be used, or refused a call; the message says why, `hint` what to do."""


class Ledger(Protocol):
    # cycles
    def put_cycle(self, cycle: Cycle) -> None:
        """Inserts or updates a cycle in the ledger; one that has ended never changes."""

    def cycle(self, cycle: str) -> Cycle | None: ...

    def cycles(self, limit: int = 20) -> list[Cycle]:
        """Returns the recorded cycles, newest first."""

    # training steps
    def commit_step(self, record: StepRecord) -> None:
        """Writes tasks, rollouts, verdicts and groups of one training step in a single transaction.

        A step that is already recorded stays unchanged: its rollouts are never counted twice.
        """

    def recorded_steps(self, cycle: str) -> list[int]:
        """Returns the numbers of a cycle's recorded training steps, ascending."""

    def step(self, cycle: str, step: int) -> StepRecord | None: ...

    def step_tasks(self, cycle: str) -> list[dict[str, Any]]:
        """Returns the tasks of all training steps of a cycle, in step order."""

    def step_metrics(self, cycle: str) -> list[dict[str, float]]:
        """Returns the metrics of a cycle's training steps, in step order, each with a `step` entry."""

    # other rollouts (evaluation, validation, jobs)
    def put_rollouts(self, judged: Sequence[Judged]) -> None:
        """Writes rollouts into the ledger in one transaction; a recorded id stays unchanged."""

    def rollout(self, rollout: str) -> Judged | None: ...

    def rollouts(self, where: RolloutFilter = ANY_ROLLOUT, *, limit: int = 50) -> list[Judged]:
        """Returns the rollouts that match a filter, newest first."""

    def rollout_counts(self, cycle: str) -> dict[str, int]:
        """Counts a cycle's rollouts by purpose."""

    # sealed sets
    def put_sealed_set(self, digest: str, description: dict[str, str | int | float]) -> None: ...

    def sealed_sets(self) -> dict[str, dict[str, str | int | float]]: ...

    # checkpoints, evaluations, decisions
    def put_checkpoint(self, checkpoint: Checkpoint) -> None: ...

    def is_attested(self, manifest: str) -> bool:
        """True if the trainer's attestation of the checkpoint is present; a worker's checkpoint is recorded only
        then."""

    def checkpoint(self, manifest: str) -> Checkpoint | None:
        """Returns a checkpoint by digest or unique prefix of six or more digits. Raises LedgerError if ambiguous."""

    def checkpoints(self, *, cycle: str | None = None, limit: int = 100) -> list[Checkpoint]:
        """Returns the recorded checkpoints, of one cycle or all, newest first."""

    def put_evaluation(self, evaluation: Evaluation) -> None: ...

    def evaluation(self, evaluation: str) -> Evaluation | None: ...

    def evaluations(self, *, candidate: str | None = None, limit: int = 20) -> list[Evaluation]: ...

    def put_decision(self, decision: Decision) -> None: ...

    def decisions(self, *, candidate: str | None = None, limit: int = 20) -> list[Decision]:
        """Returns the recorded promotion decisions, on one candidate or all, newest first."""

    def put_approval(self, approval: Approval) -> None: ...

    def approvals(self, *, candidate: str | None = None) -> list[Approval]: ...

    # what is in service
    def alias(self, name: str) -> str | None:
        """Returns the digest of the checkpoint behind an alias such as `champion`, `candidate` or `previous`."""

    def set_aliases(self, aliases: dict[str, str | None], reason: str, at: str) -> None:
        """Moves several model aliases in one transaction and records the move in the history."""

    def alias_history(self, limit: int = 20) -> list[dict[str, str | None]]: ...

    def put_canary(self, canary: Canary) -> None:
        """Inserts or updates the record of a canary, a model on trial beside the champion."""

    def canaries(self, limit: int = 20) -> list[Canary]:
        """Returns the records of models on trial beside the champion, newest first. Only the first may be running."""

    # jobs and artifacts
    def put_job(self, job: Job) -> Job:
        """Inserts a job, or updates only its progress. Returns the stored job.

        A job that has ended never changes; the returned job shows this to a late worker.
        """

    def job(self, job: str) -> Job | None: ...

    def jobs(self, limit: int = 50) -> list[Job]:
        """Returns the recorded jobs, newest first."""

    def job_steps(self, kind: str, limit: int) -> list[tuple[JobStep, ...]]:
        """Returns how attempts were chosen at the newest ended jobs with that kind of check, newest first, without
        retries and replays of earlier jobs."""

    def next_job(self, *, part: JobPart = "any") -> Job | None:
        """Returns the oldest queued or running job of the highest priority; replays of earlier jobs come last.

        `part` "solvers" considers only jobs that the solvers have not tried, "model" only jobs that they have.
        """

    def claim_job(self, *, part: JobPart = "any", seconds: float = 0.0) -> Job | None:
        """Leases the next job to the calling worker, ending its earlier lease; waits up to `seconds` for one.

        Returns None if none arrived, or if the worker must end because other work comes first.
        """

    def renew_leases(self) -> None:
        """Extends the calling worker's leases. Raises LedgerError if one is lost."""

    def unended_jobs(self) -> list[Job]:
        """Returns queued, running and parked jobs, oldest first."""

    def job_counts(self) -> dict[str, int]:
        """Returns the number of jobs in each state."""

    def put_artifact(self, artifact: Artifact) -> None: ...

    def artifact(self, artifact: str) -> Artifact | None: ...

    def artifacts(self, limit: int = 50) -> list[Artifact]: ...

    # progress
    def put_event(self, event: Event) -> None: ...

    def events(self, *, after: int = 0, limit: int = 200) -> list[tuple[int, Event]]:
        """Returns (sequence number, event) pairs after the given number, ascending."""

    def newest_event(self) -> int:
        """Returns the sequence number of the newest event; 0 if there is none."""
