"""The ledger on SQLite: the protocol of `appliance.ledger.ledger`, method by method.

What always holds: a record that was written can be read again and is equal to what was given (a figure that JSON cannot
hold, such as NaN, is refused); one call is one transaction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError
from sqlalchemy import Connection, Select, Table, delete, insert, select, true, update
from sqlalchemy import func as sql
from sqlalchemy.dialects.sqlite import insert as insert_or

from appliance.ledger.database import Database
from appliance.ledger.ledger import LedgerError
from appliance.ledger.tables import (
    ALIAS_MOVES,
    ALIASES,
    APPROVALS,
    ARTIFACTS,
    AUDIT_HEAD,
    CANARIES,
    CHECKPOINTS,
    CYCLES,
    DECISIONS,
    EVALUATIONS,
    EVENTS,
    JOBS,
    ROLLOUTS,
    SEALED_SETS,
    STEPS,
)
from appliance.records import (
    Approval,
    Artifact,
    Canary,
    Checkpoint,
    Cycle,
    Evaluation,
    Event,
    Job,
    JobState,
    Judged,
    Meaning,
    Purpose,
    StepRecord,
)
from policies.decision import Decision

R = TypeVar("R", bound=BaseModel)

OF_THE_WORK = (
    "state",
    "step",
    "weights",
    "tries_done",
    "solvers_done",
    "reason",
    "tried",
    "artifact",
    "solved_by",
    "updated",
)
"""The fields of a job that change while it is worked on."""
USUAL_PRIORITY = 5
"""Of jobs from before there were priorities."""

_PREFIX = re.compile(r"[0-9a-f]{6,64}")


class SqliteLedger:
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
            _put(connection, CYCLES, {"key": cycle.id, "payload": _payload(cycle)})

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
            "payload": _payload(record.model_copy(update={"judged": ()})),
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
            stored = _stored(connection, SEALED_SETS, digest)
            if stored is None:
                connection.execute(insert(SEALED_SETS), {"key": digest, "payload": payload})
            elif json.loads(stored) != description:
                raise _differs(SEALED_SETS, digest)

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
                if manifest is not None and _stored(connection, CHECKPOINTS, manifest) is None:
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
            _put(connection, CANARIES, {"key": canary.id, "payload": _payload(canary)})

    def canaries(self, limit: int = 20) -> list[Canary]:
        return self._newest(Canary, CANARIES, limit)

    # jobs and artifacts
    def put_job(self, job: Job) -> Job:
        with self._database.writing() as connection:
            stored = _stored(connection, JOBS, job.id)
            kept = job if stored is None else moved_on(self._read(Job, stored), job)
            _put_job(connection, kept)
        return kept

    def put_meaning(self, job: str, meaning: Meaning | None) -> Job:
        """A person's word on what was asked, also after the job has ended; None takes it off again. Not in the
        protocol: no worker has one.

        Raises LedgerError where there is no such job."""
        with self._database.writing() as connection:
            stored = _stored(connection, JOBS, job)
            if stored is None:
                raise LedgerError(f"there is no job {job!r}", hint="`assay jobs ls` lists them")
            kept = self._read(Job, stored).model_copy(update={"meaning": meaning})
            _put_job(connection, kept)
        return kept

    def job(self, job: str) -> Job | None:
        return self._one(Job, JOBS, job)

    def jobs(self, limit: int = 50) -> list[Job]:
        return self._newest(Job, JOBS, limit)

    def next_job(self, *, with_model: bool = True) -> Job | None:
        query = select(JOBS.c.payload).where(JOBS.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value]))
        if not with_model:
            query = query.where(sql.coalesce(sql.json_extract(JOBS.c.payload, "$.solvers_done"), 0) == 0)
        urgent = sql.coalesce(sql.json_extract(JOBS.c.payload, "$.priority"), USUAL_PRIORITY)
        found = self._records(Job, query.order_by(urgent.desc(), JOBS.c.sequence).limit(1))
        return found[0] if found else None

    def job_counts(self) -> dict[str, int]:
        query = select(JOBS.c.state, sql.count()).group_by(JOBS.c.state)
        with self._database.reading() as connection:
            return {str(state): int(count) for state, count in connection.execute(query)}

    def unended_jobs(self) -> list[Job]:
        """Those that wait or are worked on, oldest first."""
        waiting = JOBS.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value])
        return self._records(Job, select(JOBS.c.payload).where(waiting).order_by(JOBS.c.sequence))

    def job_files(self) -> set[str]:
        """Digests of all files that belong to a job."""
        each = sql.json_each(JOBS.c.payload, "$.files").table_valued("value")
        query = select(sql.json_extract(each.c.value, "$.sha256")).select_from(JOBS).join(each, true())
        with self._database.reading() as connection:
            return set(connection.execute(query).scalars())

    def put_artifact(self, artifact: Artifact) -> None:
        self._put_once(ARTIFACTS, artifact.id, artifact)

    def artifact(self, artifact: str) -> Artifact | None:
        return self._one(Artifact, ARTIFACTS, artifact)

    def artifacts(self, limit: int = 50) -> list[Artifact]:
        """Newest first."""
        return self._newest(Artifact, ARTIFACTS, limit)

    # progress
    def put_event(self, event: Event) -> None:
        with self._database.writing() as connection:
            connection.execute(insert(EVENTS), {"payload": _payload(event)})

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
            _put_job(connection, job)
            _put_head(connection, line)

    def _put_once(self, table: Table, key: str, record: BaseModel, **columns: str) -> None:
        payload = _payload(record)
        with self._database.writing() as connection:
            stored = _stored(connection, table, key)
            if stored is None:
                connection.execute(insert(table), {"key": key, "payload": payload, **columns})
            elif stored != payload and self._read(type(record), stored) != record:
                raise _differs(table, key)

    def _one(self, shape: type[R], table: Table, key: str) -> R | None:
        with self._database.reading() as connection:
            payload = _stored(connection, table, key)
        return None if payload is None else self._read(shape, payload)

    def _newest(self, shape: type[R], table: Table, limit: int | None, **columns: str | None) -> list[R]:
        query = select(table.c.payload)
        for name, value in columns.items():
            if value is not None:
                query = query.where(table.c[name] == value)
        return self._records(shape, query.order_by(table.c.sequence.desc()).limit(limit))

    def _records(self, shape: type[R], query: Select[Any]) -> list[R]:
        with self._database.reading() as connection:
            payloads = list(connection.execute(query).scalars())
        return [self._read(shape, payload) for payload in payloads]

    def _read(self, shape: type[R], payload: str) -> R:
        try:
            return shape.model_validate_json(payload)
        except ValidationError as error:
            raise LedgerError(
                f"a {shape.__name__} in {self._database.path} cannot be read: {error.errors()[0]['msg']}",
                hint="the file was changed by something else; put back a backup of it",
            ) from error


def moved_on(stored: Job, given: Job) -> Job:
    """The stored job, as far as the work on it has come since; one that has ended only learns what it took."""
    spent = max(stored.spent_seconds, given.spent_seconds)
    if stored.state.ended:
        return stored.model_copy(update={"spent_seconds": spent})
    update = {name: getattr(given, name) for name in OF_THE_WORK}
    return stored.model_copy(update={**update, "spent_seconds": spent})


def _put_job(connection: Connection, job: Job) -> None:
    _put(connection, JOBS, {"key": job.id, "state": job.state.value, "payload": _payload(job)})


def _put_head(connection: Connection, line: bytes | None) -> None:
    connection.execute(delete(AUDIT_HEAD))
    if line is not None:
        connection.execute(insert(AUDIT_HEAD), {"only": 1, "line": line.decode("ascii")})


def _payload(record: BaseModel) -> str:
    """The record's JSON. Raises LedgerError for a record that could not be read again, before anything is written."""
    try:
        payload = record.model_dump_json()
        type(record).model_validate_json(payload)
    except (PydanticSerializationError, ValidationError) as error:
        raise LedgerError(
            f"this {type(record).__name__} cannot be kept: JSON cannot hold what is in it ({error})",
            hint="a figure in it is not finite, or a text is not Unicode: correct what made it",
        ) from error
    return payload


def _rollout_row(judged: Judged) -> dict[str, Any]:
    rollout = judged.rollout
    return {
        "key": rollout.id,
        "cycle": rollout.cycle,
        "purpose": rollout.purpose.value,
        "step": rollout.step,
        "step_sequence": None,
        "payload": _payload(judged),
    }


def _stored(connection: Connection, table: Table, key: str) -> str | None:
    payload: str | None = connection.execute(select(table.c.payload).where(table.c.key == key)).scalar()
    return payload


def _put(connection: Connection, table: Table, row: Mapping[str, str]) -> None:
    """Inserts, or updates in place: the order of arrival stays."""
    changed = connection.execute(update(table).where(table.c.key == row["key"]), dict(row))
    if changed.rowcount == 0:
        connection.execute(insert(table), dict(row))


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


def _differs(table: Table, key: str) -> LedgerError:
    return LedgerError(
        f"the ledger holds another record as {key[:20]} in {table.name}: it is never overwritten",
        hint="give the new record an id of its own",
    )
