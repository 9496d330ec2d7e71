"""The protocol says what the rest of the product may ask of the ledger.

Exactly one process writes: the one that holds the data folder's lock. A worker process has the same protocol through a
socket (`appliance.ledger.remote`), and every call returns only when the record is on disk. Writing the same record
again changes nothing; writing a different one under the same key raises LedgerError, except where `put` says "update".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from appliance.records.artifacts import Artifact
from appliance.records.checkpoints import Checkpoint
from appliance.records.cycles import Cycle
from appliance.records.evaluations import Approval, Evaluation
from appliance.records.events import Event
from appliance.records.jobs import Job, JobPart
from appliance.records.service import Canary
from appliance.records.training import ANY_ROLLOUT, Judged, RolloutFilter, StepRecord
from policies.contract.decision import Decision
from runtime.errors import HintedError

RENEW_SECONDS = 10.0
"""Between two renewals of its leases by a worker."""


class LedgerError(HintedError):
    """Says that the ledger cannot be used; the message says why and `hint` what to do."""


class Ledger(Protocol):
    # cycles
    def put_cycle(self, cycle: Cycle) -> None:
        """Inserts or updates; a cycle that has ended stays as it ended, whatever is written."""

    def cycle(self, cycle: str) -> Cycle | None: ...

    def cycles(self, limit: int = 20) -> list[Cycle]:
        """Lists them, newest first."""

    # training steps
    def commit_step(self, record: StepRecord) -> None:
        """Writes tasks, rollouts, verdicts and groups of one step in one transaction, whole or not at all.

        A step that is already there is left as it is: its rollouts are never counted twice."""

    def recorded_steps(self, cycle: str) -> list[int]:
        """Lists them, ascending."""

    def step(self, cycle: str, step: int) -> StepRecord | None: ...

    def step_tasks(self, cycle: str) -> list[dict[str, Any]]:
        """Lists `StepRecord.tasks` of all steps, in their order."""

    def step_metrics(self, cycle: str) -> list[dict[str, float]]:
        """Lists `StepRecord.metrics` in the order of steps, with `step` among them."""

    # other rollouts (evaluation, validation, jobs)
    def put_rollouts(self, judged: Sequence[Judged]) -> None:
        """Writes them in one transaction; a rollout whose id is there is left as it is."""

    def rollout(self, rollout: str) -> Judged | None: ...

    def rollouts(self, where: RolloutFilter = ANY_ROLLOUT, *, limit: int = 50) -> list[Judged]:
        """Lists them, newest first."""

    def rollout_counts(self, cycle: str) -> dict[str, int]:
        """Counts rollouts by purpose."""

    # sealed sets
    def put_sealed_set(self, digest: str, description: dict[str, str | int | float]) -> None: ...

    def sealed_sets(self) -> dict[str, dict[str, str | int | float]]: ...

    # checkpoints, evaluations, decisions
    def put_checkpoint(self, checkpoint: Checkpoint) -> None: ...

    def is_attested(self, manifest: str) -> bool:
        """Says whether the trainer's attestation of that checkpoint is there; a worker's comes on record only then."""

    def checkpoint(self, manifest: str) -> Checkpoint | None:
        """Finds it by digest, or by a unique prefix of six digits or more. Raises LedgerError for an ambiguous one."""

    def checkpoints(self, *, cycle: str | None = None, limit: int = 100) -> list[Checkpoint]:
        """Lists them, newest first."""

    def put_evaluation(self, evaluation: Evaluation) -> None: ...

    def evaluation(self, evaluation: str) -> Evaluation | None: ...

    def evaluations(self, *, candidate: str | None = None, limit: int = 20) -> list[Evaluation]: ...

    def put_decision(self, decision: Decision) -> None: ...

    def decisions(self, *, candidate: str | None = None, limit: int = 20) -> list[Decision]:
        """Lists them, newest first."""

    def put_approval(self, approval: Approval) -> None: ...

    def approvals(self, *, candidate: str | None = None) -> list[Approval]: ...

    # what is in service
    def alias(self, name: str) -> str | None:
        """Returns the checkpoint that `champion`, `candidate` or `previous` stands for."""

    def set_aliases(self, aliases: dict[str, str | None], reason: str, at: str) -> None:
        """Moves several at once, in one transaction, and keeps the history."""

    def alias_history(self, limit: int = 20) -> list[dict[str, str | None]]: ...

    def put_canary(self, canary: Canary) -> None:
        """Inserts or updates."""

    def canaries(self, limit: int = 20) -> list[Canary]:
        """Lists them, newest first; at most the first has not ended."""

    # jobs and artifacts
    def put_job(self, job: Job) -> Job:
        """Inserts, or updates how far the work on it is, and nothing else of it. Returns the job as it then is.

        A job that has ended stays as it ended, whatever is written; what is returned shows it to whoever is late."""

    def job(self, job: str) -> Job | None: ...

    def jobs(self, limit: int = 50) -> list[Job]:
        """Lists them, newest first."""

    def next_job(self, *, part: JobPart = "any") -> Job | None:
        """Returns the one of the highest priority that waits or is worked on, and the oldest of those; replays of
        earlier jobs come after everybody's own.

        Of the solvers' part only those that they have not tried, of the model's only those that they have."""

    def claim_job(self, *, part: JobPart = "any", seconds: float = 0.0) -> Job | None:
        """Leases the next job to the worker that asks, and ends the lease that it had; waits for one so long.

        Returns None where none came, or the worker is to end because something else is to be done first."""

    def renew_leases(self) -> None:
        """Gives the leases of the worker that asks a new deadline. Raises LedgerError where one is lost."""

    def unended_jobs(self) -> list[Job]:
        """Lists those that wait, are worked on or were set aside, oldest first."""

    def job_counts(self) -> dict[str, int]:
        """Counts jobs by state."""

    def put_artifact(self, artifact: Artifact) -> None: ...

    def artifact(self, artifact: str) -> Artifact | None: ...

    def artifacts(self, limit: int = 50) -> list[Artifact]: ...

    # progress
    def put_event(self, event: Event) -> None: ...

    def events(self, *, after: int = 0, limit: int = 200) -> list[tuple[int, Event]]:
        """Lists (sequence number, event), ascending, those after the number given."""

    def newest_event(self) -> int:
        """Returns the number of the newest event; 0 when there is none."""
