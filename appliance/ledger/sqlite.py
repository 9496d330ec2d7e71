"""The ledger on SQLite: the protocol of `appliance.ledger.ledger`, method by method.

What always holds: a record that was written can be read again and is equal to what was given (a figure that JSON cannot
hold, such as NaN, is refused); one call is one transaction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pydantic import BaseModel
from sqlalchemy import Connection, delete, insert, select
from sqlalchemy import func as sql
from sqlalchemy.dialects.sqlite import insert as insert_or

from appliance.ledger.database import Database
from appliance.ledger.ledger import LedgerError
from appliance.ledger.rows import differs, payload_of, put_row, stored_in
from appliance.ledger.sqlite_jobs import JobRows, put_job_row
from appliance.ledger.tables import (
    ALIAS_MOVES,
    ALIASES,
    APPROVALS,
    AUDIT_HEAD,
    CANARIES,
    CHECKPOINTS,
    CYCLES,
    DECISIONS,
    EVALUATIONS,
    EVENTS,
    ROLLOUTS,
    SEALED_SETS,
    STEPS,
)
from appliance.records import (
    Approval,
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

R = TypeVar("R", bound=BaseModel)

_PREFIX = re.compile(r"[0-9a-f]{6,64}")


class SqliteLedger(JobRows):
    """Opens the file at `path`, or makes it. One process at a time may hold it; its threads may share it.

    Raises LedgerError when the file is damaged, is something else, or was written by a newer version.
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Everything is on disk before; closing only tidies up. Every later call raises LedgerError."""
        self._database.close()

    # cycles
    def put_cycle(self, cycle: Cycle) -> None:
        with self._database.writing() as connection:
            put_row(connection, CYCLES, {"key": cycle.id, "payload": payload_of(cycle)})

    def cycle(self, cycle: str) -> Cycle | None:
        return self._one(Cycle, CYCLES, cycle)

    def cycles(self, limit: int = 20) -> list[Cycle]:
        return self._newest(Cycle, CYCLES, limit)

    # training steps
    def commit_step(self, record: StepRecord) -> None:
        step = {
            "cycle": record.cycle,
            "step": record.step,
            "metrics": json.dumps(record.metrics),
            "payload": payload_of(record.model_copy(update={"judged": ()})),
        }
        rows = [_rollout_row(judged) for judged in record.judged]
        with self._database.writing() as connection:
            place = (STEPS.c.cycle == record.cycle) & (STEPS.c.step == record.step)
            if connection.execute(select(STEPS.c.sequence).where(place)).first() is not None:
                return
            _refuse_counted(connection, [row["key"] for row in rows])
            sequence = connection.execute(insert(STEPS).returning(STEPS.c.sequence), step).scalar_one()
            for row in rows:
                row["step_sequence"] = sequence
            if rows:
                connection.execute(insert(ROLLOUTS), rows)

    def recorded_steps(self, cycle: str) -> list[int]:
        query = select(STEPS.c.step).where(STEPS.c.cycle == cycle).order_by(STEPS.c.step)
        with self._database.reading() as connection:
            return list(connection.execute(query).scalars())

    def step(self, cycle: str, step: int) -> StepRecord | None:
        found = select(STEPS.c.sequence, STEPS.c.payload).where((STEPS.c.cycle == cycle) & (STEPS.c.step == step))
        with self._database.reading() as connection:
            row = connection.execute(found).first()
            if row is None:
                return None
            rollouts = select(ROLLOUTS.c.payload).where(ROLLOUTS.c.step_sequence == row.sequence)
            payloads = list(connection.execute(rollouts.order_by(ROLLOUTS.c.sequence)).scalars())
        record = self._read(StepRecord, row.payload)
        return record.model_copy(update={"judged": tuple(self._read(Judged, payload) for payload in payloads)})

    def step_tasks(self, cycle: str) -> list[dict[str, Any]]:
        query = select(STEPS.c.payload).where(STEPS.c.cycle == cycle).order_by(STEPS.c.step)
        with self._database.reading() as connection:
            payloads = list(connection.execute(query).scalars())
        return [task for payload in payloads for task in self._read(StepRecord, payload).tasks]

    def step_metrics(self, cycle: str) -> list[dict[str, float]]:
        query = select(STEPS.c.step, STEPS.c.metrics).where(STEPS.c.cycle == cycle).order_by(STEPS.c.step)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [{**json.loads(row.metrics), "step": row.step} for row in rows]

    # other rollouts
    def put_rollouts(self, judged: Sequence[Judged]) -> None:
        rows = [_rollout_row(one) for one in judged]
        if not rows:
            return
        with self._database.writing() as connection:
            connection.execute(insert_or(ROLLOUTS).on_conflict_do_nothing(index_elements=["key"]), rows)

    def rollouts(
        self,
        *,
        cycle: str | None = None,
        job: str | None = None,
        purpose: Purpose | None = None,
        step: int | None = None,
        limit: int = 50,
    ) -> list[Judged]:
        query = select(ROLLOUTS.c.payload)
        if cycle is not None:
            query = query.where(ROLLOUTS.c.cycle == cycle)
        if job is not None:
            query = query.where((ROLLOUTS.c.cycle == job) & (ROLLOUTS.c.purpose == Purpose.JOB.value))
        if purpose is not None:
            query = query.where(ROLLOUTS.c.purpose == purpose.value)
        if step is not None:
            query = query.where(ROLLOUTS.c.step == step)
        return self._records(Judged, query.order_by(ROLLOUTS.c.sequence.desc()).limit(limit))

    def rollout_counts(self, cycle: str) -> dict[str, int]:
        query = select(ROLLOUTS.c.purpose, sql.count()).where(ROLLOUTS.c.cycle == cycle).group_by(ROLLOUTS.c.purpose)
        with self._database.reading() as connection:
            return {str(purpose): int(count) for purpose, count in connection.execute(query)}

    # sealed sets
    def put_sealed_set(self, digest: str, description: dict[str, str | int | float]) -> None:
        payload = json.dumps(description, sort_keys=True)
        with self._database.writing() as connection:
            stored = stored_in(connection, SEALED_SETS, digest)
            if stored is None:
                connection.execute(insert(SEALED_SETS), {"key": digest, "payload": payload})
            elif json.loads(stored) != description:
                raise differs(SEALED_SETS, digest)

    def sealed_sets(self) -> dict[str, dict[str, str | int | float]]:
        query = select(SEALED_SETS.c.key, SEALED_SETS.c.payload).order_by(SEALED_SETS.c.sequence)
        with self._database.reading() as connection:
            return {row.key: json.loads(row.payload) for row in connection.execute(query)}

    # checkpoints, evaluations, decisions
    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        self._put_once(CHECKPOINTS, checkpoint.manifest, checkpoint, cycle=checkpoint.cycle)

    def checkpoint(self, manifest: str) -> Checkpoint | None:
        exact = self._one(Checkpoint, CHECKPOINTS, manifest)
        prefix = manifest.lower()
        if exact is not None or _PREFIX.fullmatch(prefix) is None:
            return exact
        query = select(CHECKPOINTS.c.payload).where(CHECKPOINTS.c.key.startswith(prefix)).limit(2)
        found = self._records(Checkpoint, query)
        if len(found) > 1:
            raise LedgerError(f"more than one checkpoint begins with {prefix}", hint="give more digits of the digest")
        return found[0] if found else None

    def checkpoints(self, *, cycle: str | None = None, limit: int = 100) -> list[Checkpoint]:
        return self._newest(Checkpoint, CHECKPOINTS, limit, cycle=cycle)

    def put_evaluation(self, evaluation: Evaluation) -> None:
        self._put_once(EVALUATIONS, evaluation.id, evaluation, candidate=evaluation.candidate.weights)

    def evaluation(self, evaluation: str) -> Evaluation | None:
        return self._one(Evaluation, EVALUATIONS, evaluation)

    def evaluations(self, *, candidate: str | None = None, limit: int = 20) -> list[Evaluation]:
        return self._newest(Evaluation, EVALUATIONS, limit, candidate=candidate)

    def put_decision(self, decision: Decision) -> None:
        self._put_once(DECISIONS, decision.id, decision, candidate=decision.candidate)

    def decision(self, decision: str) -> Decision | None:
        return self._one(Decision, DECISIONS, decision)

    def decisions(self, *, candidate: str | None = None, limit: int = 20) -> list[Decision]:
        return self._newest(Decision, DECISIONS, limit, candidate=candidate)

    def put_approval(self, approval: Approval) -> None:
        self._put_once(APPROVALS, approval.digest(), approval, candidate=approval.candidate)

    def approvals(self, *, candidate: str | None = None) -> list[Approval]:
        """Newest first."""
        return self._newest(Approval, APPROVALS, None, candidate=candidate)

    # what is in service
    def alias(self, name: str) -> str | None:
        with self._database.reading() as connection:
            found: str | None = connection.execute(select(ALIASES.c.manifest).where(ALIASES.c.name == name)).scalar()
            return found

    def set_aliases(self, aliases: dict[str, str | None], reason: str, at: str) -> None:
        """Raises LedgerError for a digest that no checkpoint of this ledger has."""
        move = {"aliases": aliases, "reason": reason, "at": at}
        with self._database.writing() as connection:
            for name, manifest in aliases.items():
                if manifest is not None and stored_in(connection, CHECKPOINTS, manifest) is None:
                    raise LedgerError(
                        f"{name} cannot stand for {manifest[:12]}: the ledger holds no such checkpoint",
                        hint="see `assay model ls` for those that there are",
                    )
                row = insert_or(ALIASES).values(name=name, manifest=manifest)
                connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"manifest": manifest}))
            connection.execute(insert(ALIAS_MOVES), {"payload": json.dumps(move)})

    def alias_history(self, limit: int = 20) -> list[dict[str, str | None]]:
        """Newest first; each move has its `reason`, `at`, and the names that it set."""
        query = select(ALIAS_MOVES.c.payload).order_by(ALIAS_MOVES.c.sequence.desc()).limit(limit)
        with self._database.reading() as connection:
            moves = [json.loads(payload) for payload in connection.execute(query).scalars()]
        return [{**move["aliases"], "reason": move["reason"], "at": move["at"]} for move in moves]

    def put_canary(self, canary: Canary) -> None:
        with self._database.writing() as connection:
            put_row(connection, CANARIES, {"key": canary.id, "payload": payload_of(canary)})

    def canaries(self, limit: int = 20) -> list[Canary]:
        return self._newest(Canary, CANARIES, limit)

    # progress
    def put_event(self, event: Event) -> None:
        with self._database.writing() as connection:
            connection.execute(insert(EVENTS), {"payload": payload_of(event)})

    def events(self, *, after: int = 0, limit: int = 200) -> list[tuple[int, Event]]:
        query = select(EVENTS.c.sequence, EVENTS.c.payload).where(EVENTS.c.sequence > after)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(EVENTS.c.sequence).limit(limit)).all()
        return [(row.sequence, self._read(Event, row.payload)) for row in rows]

    # the audit log's newest line: not in the protocol, so that no worker can ask for it
    def audit_head(self) -> bytes | None:
        with self._database.reading() as connection:
            line: str | None = connection.execute(select(AUDIT_HEAD.c.line)).scalar()
            return None if line is None else line.encode("ascii")

    def put_audit_head(self, line: bytes | None) -> None:
        with self._database.writing() as connection:
            _put_head(connection, line)

    def _put_job_and_head(self, job: Job, line: bytes | None) -> None:
        """Both in one transaction; the job as it is given."""
        with self._database.writing() as connection:
            put_job_row(connection, job)
            _put_head(connection, line)


def _put_head(connection: Connection, line: bytes | None) -> None:
    connection.execute(delete(AUDIT_HEAD))
    if line is not None:
        connection.execute(insert(AUDIT_HEAD), {"only": 1, "line": line.decode("ascii")})


def _rollout_row(judged: Judged) -> dict[str, Any]:
    rollout = judged.rollout
    return {
        "key": rollout.id,
        "cycle": rollout.cycle,
        "purpose": rollout.purpose.value,
        "step": rollout.step,
        "step_sequence": None,
        "payload": payload_of(judged),
    }


def _refuse_counted(connection: Connection, keys: Sequence[str]) -> None:
    if len(set(keys)) != len(keys):
        raise LedgerError("a step holds the same rollout twice", hint="report this: its material cannot be trusted")
    for start in range(0, len(keys), 500):
        found = connection.execute(select(ROLLOUTS.c.key).where(ROLLOUTS.c.key.in_(keys[start : start + 500]))).first()
        if found is not None:
            raise LedgerError(
                f"rollout {found.key} is in the ledger already, outside this step",
                hint="report this: the step would count it twice, so nothing of it was written",
            )
