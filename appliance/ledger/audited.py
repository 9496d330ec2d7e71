"""In the core's ledger, what decides about a model is in the audit log before it is in the ledger.

What always holds: a decision, a person's statement and every move of an alias get here only after their entry was
logged, whoever asks, a worker too; where the entry cannot be written, nothing is. Writing again what is there changes
nothing and logs nothing. A job ends together with its entry, so that each has exactly one, also when the daemon is
killed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.audit.log import AuditLog
from appliance.ledger.sqlite import SqliteLedger
from appliance.ledger.sqlite_jobs import moved_on
from appliance.records.evaluations import Approval
from appliance.records.jobs import Job, Validation
from policies.contract.decision import Decision


class AuditedLedger(SqliteLedger):
    """Writes to the log `audit` first, and closes it with the ledger. Raises what both raise."""

    def __init__(self, path: Path, log: Path, key: Ed25519PrivateKey, now: Callable[[], str]) -> None:
        super().__init__(path)
        self._jobs = threading.Lock()
        self.on_job_end: Callable[[Job], object] = lambda job: None
        try:
            self.audit = AuditLog(log, key, self, now)
        except BaseException:
            super().close()
            raise

    def close(self) -> None:
        self.audit.close()
        super().close()

    def put_decision(self, decision: Decision) -> None:
        if self.decision(decision.id) is None:
            self.audit.append("decision", digest=decision.digest(), decision=decision.model_dump(mode="json"))
        super().put_decision(decision)

    def put_approval(self, approval: Approval) -> None:
        if approval not in self.approvals(candidate=approval.candidate):
            self.audit.append("word", word=approval.model_dump(mode="json"))
        super().put_approval(approval)

    def put_job(self, job: Job) -> Job:
        updated, ended = self._put_job(job)
        if ended:
            self.on_job_end(updated)
        return updated

    def _put_job(self, job: Job) -> tuple[Job, bool]:
        """Returns the job as it is now, and whether it ended with this."""
        with self._jobs:
            stored = self.job(job.id)
            if stored is None or stored.state.ended:
                return super().put_job(job), False
            updated = moved_on(stored, job)
            if not updated.state.ended:
                return super().put_job(job), False
            artifact = self.artifact(updated.artifact) if updated.artifact else None
            self.audit.append_with(
                partial(self._put_job_and_head, updated),
                partial(self._put_job_and_head, stored),
                "job.ended",
                job=updated.id,
                state=updated.state.value,
                reason=updated.reason,
                priority=updated.priority,
                solved_by=updated.solved_by,
                bundle=artifact.manifest if artifact else "",
            )
            return updated, True

    def put_validation(self, job: str, validation: Validation | None) -> Job:
        with self._jobs:
            return super().put_validation(job, validation)

    def set_aliases(self, aliases: dict[str, str | None], reason: str, at: str) -> None:
        self.require_checkpoints(aliases)
        self.audit.append(
            "aliases", before={name: self.alias(name) for name in aliases}, after={**aliases}, reason=reason
        )
        super().set_aliases(aliases, reason, at)
