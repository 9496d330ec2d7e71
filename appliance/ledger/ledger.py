"""What the rest of the product may ask of the ledger.

Exactly one process writes: the one that holds the data folder's lock. A worker process has the same protocol through a
socket (`appliance.ledger.remote`), and every call returns only when the record is on disk. Writing the same record
again changes nothing; writing a different one under the same key raises LedgerError, except where `put` says "update".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from appliance.records import (
    Approval,
    Artifact,
    Canary,
    Checkpoint,
    Cycle,
    Evaluation,
    Event,
    Job,
    Judged,
    Purpose,
    StepRecord,
)
from policies.decision import Decision


class LedgerError(Exception):
    """The ledger cannot be used; the message says why and `hint` what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Ledger(Protocol):
    # cycles
    def put_cycle(self, cycle: Cycle) -> None:
        """Inserts or updates."""
        ...

    def cycle(self, cycle: str) -> Cycle | None: ...

    def cycles(self, limit: int = 20) -> list[Cycle]:
        """Newest first."""
        ...

    # training steps
    def commit_step(self, record: StepRecord) -> None:
        """One transaction: tasks, rollouts, verdicts and groups of one step, whole or not at all.

        A step that is already there is left as it is: its rollouts are never counted twice."""
        ...

    def recorded_steps(self, cycle: str) -> list[int]:
        """Ascending."""
        ...

    def step(self, cycle: str, step: int) -> StepRecord | None: ...

    def step_tasks(self, cycle: str) -> list[dict[str, Any]]:
        """`StepRecord.tasks` of all steps, in their order."""
        ...

    def step_metrics(self, cycle: str) -> list[dict[str, float]]:
        """`StepRecord.metrics` in the order of steps, with `step` among them."""
        ...

    # other rollouts (evaluation, validation, jobs)
    def put_rollouts(self, judged: Sequence[Judged]) -> None:
        """One transaction; a rollout whose id is there is left as it is."""
        ...

    def rollouts(
        self,
        *,
        cycle: str | None = None,
        job: str | None = None,
        purpose: Purpose | None = None,
        step: int | None = None,
        limit: int = 50,
    ) -> list[Judged]:
        """Newest first. A job's rollouts carry the job's id as their cycle."""
        ...

    def rollout_counts(self, cycle: str) -> dict[str, int]:
        """Rollouts by purpose."""
        ...

    # sealed sets
    def put_sealed_set(self, digest: str, description: dict[str, str | int | float]) -> None: ...

    def sealed_sets(self) -> dict[str, dict[str, str | int | float]]: ...

    # checkpoints, evaluations, decisions
    def put_checkpoint(self, checkpoint: Checkpoint) -> None: ...

    def checkpoint(self, manifest: str) -> Checkpoint | None:
        """By digest, or by a unique prefix of at least six digits. Raises LedgerError when the prefix is ambiguous."""
        ...

    def checkpoints(self, *, cycle: str | None = None, limit: int = 100) -> list[Checkpoint]:
        """Newest first."""
        ...

    def put_evaluation(self, evaluation: Evaluation) -> None: ...

    def evaluation(self, evaluation: str) -> Evaluation | None: ...

    def evaluations(self, *, candidate: str | None = None, limit: int = 20) -> list[Evaluation]: ...

    def put_decision(self, decision: Decision) -> None: ...

    def decisions(self, *, candidate: str | None = None, limit: int = 20) -> list[Decision]:
        """Newest first."""
        ...

    def put_approval(self, approval: Approval) -> None: ...

    def approvals(self, *, candidate: str | None = None) -> list[Approval]: ...

    # what is in service
    def alias(self, name: str) -> str | None:
        """The checkpoint that `champion`, `candidate` or `previous` stands for."""
        ...

    def set_aliases(self, aliases: dict[str, str | None], reason: str, at: str) -> None:
        """Moves several at once, in one transaction, and keeps the history."""
        ...

    def alias_history(self, limit: int = 20) -> list[dict[str, str | None]]: ...

    def put_canary(self, canary: Canary) -> None:
        """Inserts or updates."""
        ...

    def canaries(self, limit: int = 20) -> list[Canary]:
        """Newest first; at most the first has not ended."""
        ...

    # jobs and artifacts
    def put_job(self, job: Job) -> Job:
        """Inserts, or updates how far the work on it is, and nothing else of it. Returns the job as it then is.

        A job that has ended stays as it ended, whatever is written: who comes late is told so by what is returned."""
        ...

    def job(self, job: str) -> Job | None: ...

    def jobs(self, limit: int = 50) -> list[Job]:
        """Newest first."""
        ...

    def next_job(self, *, with_model: bool = True) -> Job | None:
        """The one of the highest priority that has not ended, and the oldest of those; replays of earlier jobs come
        after everybody's own.

        Without a model those are left out that the solvers have tried in vain."""
        ...

    def unended_jobs(self) -> list[Job]:
        """Those that wait or are worked on, oldest first."""
        ...

    def job_counts(self) -> dict[str, int]:
        """Jobs by state."""
        ...

    def put_artifact(self, artifact: Artifact) -> None: ...

    def artifact(self, artifact: str) -> Artifact | None: ...

    def artifacts(self, limit: int = 50) -> list[Artifact]: ...

    # progress
    def put_event(self, event: Event) -> None: ...

    def events(self, *, after: int = 0, limit: int = 200) -> list[tuple[int, Event]]:
        """(sequence number, event), ascending, those after the number given."""
        ...
