"""The daemon's ledger, in which the audit log decides which records count, with which text and in which order.

Invariants: a record that decides about a model (`KINDS`), a training step, the rollouts of an evaluation, the end of a
job and every alias move are logged before they are stored, in one transaction with the log's newest line; if the entry
cannot be written, nothing is. Reads follow the log: aliases and lists of records are the log's, and each text is
compared with its digest. A forged row is therefore invisible, and a changed or removed one is refused by name
(`TamperedError`), for workers too. Writing an identical record again changes and logs nothing.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel, JsonValue
from sqlalchemy import Connection, Select, Table, delete, insert, select

from appliance.audit.kept_heads import KeptHeads
from appliance.audit.log import AuditError, AuditLog
from appliance.audit.machine_keys import BACK, attested
from appliance.ledger import tables
from appliance.ledger.comparison import KINDS, bound_row, chained, digest_in, mismatches, steps_digest, texts_of
from appliance.ledger.ledger import LedgerError
from appliance.ledger.rows import differs, is_prefix, only_one, payload_of, put_row
from appliance.ledger.sqlite import SqliteLedger, put_aliases, put_head, put_step, rollout_row, step_rows
from appliance.ledger.sqlite_jobs import moved_on, put_job_row
from appliance.records.cycles import Checkpoint
from appliance.records.jobs import Artifact, Job, JobState, Validation, solved_by_then
from appliance.records.rollouts import Purpose
from appliance.records.training import ANY_ROLLOUT, Judged, RolloutFilter, StepRecord
from policies.in_force import InForce

R = TypeVar("R", bound=BaseModel)
MANY = 500
"""Rows per statement."""


class TamperedError(LedgerError):
    """The ledger differs from the audit log; nothing is done with it."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"the ledger is not what the audit log says: {found}",
            hint="nothing is decided or put into service with it; restart the daemon: it repairs what the log carries, "
            "and says what to do about the rest",
        )


class AuditedLedger(SqliteLedger):
    """A ledger that writes each record to the audit log `log` first, and closes it too. Raises what ledger and log
    raise."""

    def __init__(
        self,
        path: Path,
        log: Path,
        key: Ed25519PrivateKey,
        now: Callable[[], str],
        kept: KeptHeads | None = None,
        *,
        accept: bool = False,
    ) -> None:
        super().__init__(path)
        self.data = path.parent
        """The folder that it lies in."""
        self._jobs = threading.Lock()
        self._said: set[str] = set()
        self.on_job_end: Callable[[Job], object] = lambda job: None
        self.in_force = InForce()
        try:
            self.audit = AuditLog(log, key, self, now, self.in_force, kept, accept=accept)
        except BaseException:
            super().close()
            raise

    def close(self) -> None:
        self.audit.close()
        super().close()

    def rows(self, query: Select[Any]) -> Sequence[Any]:
        """Returns the rows of a database query on the ledger, unchecked against the audit log."""
        return self._rows(query)

    def query(self, statement: str, *values: str) -> Sequence[Any]:
        """Returns the rows of an SQL statement on the ledger, unchecked against the audit log."""
        with self._database.reading() as connection:
            return connection.exec_driver_sql(statement, values).all()

    def writing(self) -> AbstractContextManager[Connection]:
        """Opens a transaction on the ledger that bypasses the audit log; only for reconciling the two."""
        return self._database.writing()

    # comparison with the log
    def mismatches(self, texts: int | None = 0) -> list[str]:
        """Returns each difference of the ledger from its audit log as a sentence. `texts` is how many of the newest
        records of each kind are compared with their digests, all of them if None."""
        found = list(self._mismatches(texts))
        if found:
            with self.audit.lock:  # a write in progress is in the ledger before the log
                found = list(self._mismatches(texts))
        return found

    def require_whole(self) -> None:
        """Raises TamperedError if another program changed the ledger or the audit log."""
        found = self.mismatches()
        if found:
            self._refuse("; ".join(found[:5]))

    def _mismatches(self, texts: int | None) -> Iterator[str]:
        if changed := self.audit.changed():
            yield f"the audit log: {changed}"
        if self.audit_head() != self.audit.newest:
            yield "the newest line of the audit log is another one here"
        yield from mismatches(self.query, self.in_force, texts)

    def _refuse(self, found: str) -> None:
        """Logs a difference between ledger and audit log, once, and raises TamperedError."""
        if found not in self._said:
            self._said.add(found)
            with suppress(AuditError, LedgerError):
                self.audit.append("ledger.refused", found=found)
        raise TamperedError(found)

    def note_refused(self, work: str, call: str, why: str) -> None:
        """Names in the audit log a worker's call that its grant does not cover."""
        self.audit.append("grant.refused", work=work, call=call, message=why)

    # reading
    def _one(self, shape: type[R], table: Table, key: str) -> R | None:
        if table.name not in KINDS:
            return super()._one(shape, table, key)
        return self._vouched(shape, table, [key])[0] if self.in_force.bound(table.name, key) is not None else None

    def _newest(self, shape: type[R], table: Table, limit: int | None, **columns: str | None) -> list[R]:
        if table.name not in KINDS:
            return super()._newest(shape, table, limit, **columns)
        return self._vouched(shape, table, self.in_force.keys(table.name, *columns.values())[:limit])

    def _vouched(self, shape: type[R], table: Table, keys: Sequence[str]) -> list[R]:
        """Returns the records with these keys, each compared with its digest in the audit log. Raises TamperedError."""
        found = self._read_vouched(shape, table, keys)
        if isinstance(found, str):
            with self.audit.lock:  # it may have been written just now
                found = self._read_vouched(shape, table, keys)
        if isinstance(found, str):
            self._refuse(f"{table.name}: {found}")
        return found  # type: ignore[return-value]

    def _read_vouched(self, shape: type[R], table: Table, keys: Sequence[str]) -> list[R] | str:
        records = []
        for key, bound, payload in texts_of(self.query, self.in_force, table.name, keys):
            if payload is None:
                return f"{key[:40]!r} is gone"
            if digest_in(table.name, payload) != bound.sha256:
                return f"{key[:40]!r} was changed"
            records.append(self._read(shape, payload))
        return records

    def checkpoint(self, manifest: str) -> Checkpoint | None:
        prefix = manifest.lower()
        found = None
        if is_prefix(prefix) and self.in_force.bound("checkpoints", manifest) is None:
            keys = [key for key in self.in_force.keys("checkpoints") if key.startswith(prefix)]
            found = only_one("checkpoint", prefix, keys)
        return self._one(Checkpoint, tables.CHECKPOINTS, found or manifest)

    def alias(self, name: str) -> str | None:
        return self.in_force.aliases.get(name)

    def is_attested(self, manifest: str) -> bool:
        return bool(attested(self.data, manifest))

    def require_attested(self, manifest: str) -> None:
        """Raises AuditError unless the checkpoint's attestation is the recorded one, complete and signed by the
        trainer."""
        said = self.in_force.attestations.get(manifest, "")
        if attested(self.data, manifest) != said:
            raise AuditError(f"the attestation of {manifest[:12]} is gone, or is another one", hint=BACK)

    def alias_history(self, limit: int = 20) -> list[dict[str, str | None]]:
        return self.in_force.moves[: -limit - 1 : -1]

    def ended_jobs(
        self, *, weights: str | None = None, after: int = -1, before: int | None = None, limit: int | None = None
    ) -> list[Job]:
        """Returns ended jobs as the audit log has them, newest first, optionally of these weights. `after` and `before`
        are log entry numbers (exclusive, inclusive). Not part of the protocol."""
        known = self.in_force.records.get("jobs", {})
        keys = [key for key in self.in_force.keys("jobs", weights) if after < known[key].number]
        if before is not None:
            keys = [key for key in keys if known[key].number <= before]
        return self._vouched(Job, tables.JOBS, keys[:limit])

    def step_tasks(self, cycle: str) -> list[dict[str, Any]]:
        bound = self.in_force.bound("steps", cycle)
        if bound is not None and steps_digest(self.query, cycle) != bound.sha256:
            with self.audit.lock:
                bound = self.in_force.bound("steps", cycle)
                if bound is not None and steps_digest(self.query, cycle) != bound.sha256:
                    self._refuse(f"the steps of {cycle} were changed")
        return super().step_tasks(cycle)

    def rollouts(self, where: RolloutFilter = ANY_ROLLOUT, *, limit: int = 50) -> list[Judged]:
        found = super().rollouts(where, limit=limit)
        if where.step is not None and where == RolloutFilter(
            cycle=where.cycle, purpose=Purpose.EVALUATION, step=where.step
        ):
            bound = self.in_force.bound("rollouts", f"{where.cycle}/{where.step}")
            if bound is None:
                return []  # only logged answers of an evaluation count
            if _digest_of_all(map(payload_of, found)) != bound.sha256:
                self._refuse(f"the answers of evaluation {where.cycle}, run {where.step}, were changed")
        return found

    # writing
    def _put_once(self, table: Table, key: str, record: BaseModel, **columns: str) -> None:
        if table.name not in KINDS:
            super()._put_once(table, key, record, **columns)
            return
        with self.audit.lock:
            stored = self._one(type(record), table, key)
            if stored is None:
                self._put_bound(table, key, record, next(iter(columns.values()), ""), columns)
            elif stored != record:
                raise differs(table, key)

    def _put(self, table: Table, key: str, record: BaseModel) -> None:
        with self.audit.lock:
            bound = self.in_force.bound(table.name, key)
            if bound is not None and bound.sha256 == digest_in(table.name, payload_of(record)):
                super()._put(table, key, record)
            else:
                self._put_bound(table, key, record, "", {})

    def _put_bound(self, table: Table, key: str, record: BaseModel, group: str, columns: dict[str, str]) -> None:
        kind, whole = KINDS[table.name]
        payload = payload_of(record)
        what: dict[str, JsonValue] = {whole: record.model_dump(mode="json")} if whole else {}
        if table is tables.DECISIONS:
            what["digest"] = record.digest()  # type: ignore[attr-defined]
        query = select(table).where(table.c.key == key)
        before = [dict(row._mapping) for row in self._rows(query)]

        def restore(connection: Connection) -> None:
            connection.execute(delete(table).where(table.c.key == key))
            if before:
                connection.execute(insert(table), before)

        row = {"key": key, "payload": payload, **columns}
        more = {"attestation": attested(self.data, key)} if table is tables.CHECKPOINTS else {}
        bound = bound_row(table.name, key, digest_in(table.name, payload), group, **more)
        self._logged(lambda connection: put_row(connection, table, row), restore, kind, row=bound, **what)

    def _logged(
        self,
        write: Callable[[Connection], object],
        restore: Callable[[Connection], object],
        kind: str,
        **what: JsonValue,
    ) -> None:
        """Changes the ledger and logs that, atomically: a kill leaves both or neither. `restore` undoes the change if
        the entry cannot be written."""

        def put(change: Callable[[Connection], object], line: bytes | None) -> None:
            with self._database.writing() as connection:
                change(connection)
                put_head(connection, line)

        self.audit.append_with(partial(put, write), partial(put, restore), kind, **what)

    def commit_step(self, record: StepRecord) -> None:
        with self.audit.lock:
            if self.step(record.cycle, record.step) is not None:
                return
            self._commit_bound(record)

    def _commit_bound(self, record: StepRecord) -> None:
        step, rows = step_rows(record)
        chain = chained(steps_digest(self.query, record.cycle), step["payload"])
        steps, rollouts = tables.STEPS.c, tables.ROLLOUTS.c

        def restore(connection: Connection) -> None:
            at = select(steps.sequence).where((steps.cycle == record.cycle) & (steps.step == record.step))
            connection.execute(delete(tables.ROLLOUTS).where(rollouts.step_sequence.in_(at)))
            connection.execute(delete(tables.STEPS).where((steps.cycle == record.cycle) & (steps.step == record.step)))

        self._logged(
            lambda connection: put_step(connection, step, rows),
            restore,
            "step",
            row=bound_row("steps", record.cycle, chain, ""),
            step=record.step,
        )

    def put_rollouts(self, judged: Sequence[Judged]) -> None:
        of = {(one.rollout.purpose, one.rollout.cycle, one.rollout.step) for one in judged}
        if Purpose.EVALUATION not in {purpose for purpose, _, _ in of}:
            super().put_rollouts(judged)
            return
        if len(of) > 1:
            raise LedgerError("the answers of an evaluation must be written one run at a time", hint="report this")
        [(_, cycle, step)] = of
        rows = [rollout_row(one) for one in judged]
        keys = [row["key"] for row in rows]

        def remove(connection: Connection) -> None:
            for start in range(0, len(keys), MANY):
                connection.execute(delete(tables.ROLLOUTS).where(tables.ROLLOUTS.c.key.in_(keys[start : start + MANY])))

        def write(connection: Connection) -> None:
            remove(connection)  # unlogged rows under these names
            connection.execute(insert(tables.ROLLOUTS), rows)

        with self.audit.lock:
            if self.in_force.bound("rollouts", f"{cycle}/{step}") is None:
                digest = _digest_of_all(row["payload"] for row in reversed(rows))
                bound = bound_row("rollouts", f"{cycle}/{step}", digest, cycle)
                self._logged(write, remove, "answers", row=bound, answers=len(rows))

    def put_job(self, job: Job) -> Job:
        updated, ended = self._put_job(job)
        self.tell_waiting()
        if ended:
            with self.leases.acting(None):  # consequences are the core's own writes
                self.on_job_end(updated)
        return updated

    def _put_job(self, job: Job) -> tuple[Job, bool]:
        """Stores a job, and logs its end. Returns the stored job, and True if this call ended it."""
        with self._jobs:
            stored = self.job(job.id)
            updated = job if stored is None else moved_on(stored, job)
            if not updated.state.ended or (stored is not None and stored.state.ended):
                return super().put_job(job), False
            if updated.state is not JobState.SOLVED and (made := self.artifact(job.id)) is not None:
                updated = solved_by_then(updated, made)

            def restore(connection: Connection) -> None:
                connection.execute(delete(tables.JOBS).where(tables.JOBS.c.key == job.id))
                if stored is not None:
                    put_job_row(connection, stored)

            artifact = self.artifact(updated.artifact) if updated.artifact else None
            self._logged(
                lambda connection: put_job_row(connection, updated),
                restore,
                "job.ended",
                row=bound_row("jobs", updated.id, digest_in("jobs", payload_of(updated)), updated.weights),
                job=updated.id,
                state=updated.state.value,
                reason=updated.reason,
                priority=updated.priority,
                solved_by=updated.solved_by,
                bundle=artifact.manifest if artifact else "",
            )
            return updated, True

    def put_artifact(self, artifact: Artifact) -> None:
        """Stores the record of a job's bundle. Raises LedgerError if the job has already ended without one."""
        with self._jobs:
            job = self.job(artifact.job)
            if job is not None and job.state.ended and self.artifact(artifact.id) is None:
                raise LedgerError(f"{job.id} has ended already: {job.state.value}", hint="the result is discarded")
            super().put_artifact(artifact)

    def put_validation(self, job: str, validation: Validation | None) -> Job:
        with self._jobs:
            return super().put_validation(job, validation)

    def set_aliases(self, aliases: dict[str, str | None], reason: str, at: str) -> None:
        with self.audit.lock:
            self.require_whole()
            self.require_checkpoints(aliases)
            before = {name: self.alias(name) for name in aliases}
            self._logged(
                lambda connection: put_aliases(connection, aliases, reason, at),
                lambda connection: put_aliases(connection, before, "it could not be logged", at),
                "aliases",
                before={**before},
                after={**aliases},
                reason=reason,
            )


def _digest_of_all(payloads: Iterable[str]) -> str:
    """Returns one SHA-256 over these records' texts, which are given newest first."""
    return hashlib.sha256("\n".join(payloads).encode()).hexdigest()
