"""SQLite implementation of the protocol in `appliance.ledger.ledger`.

Invariants: a written record can be read back and equals what was given (a number that JSON cannot represent, such as
NaN, is refused); one call is one transaction.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from sqlalchemy import Connection, Select, delete, insert, select
from sqlalchemy import func as sql
from sqlalchemy.dialects.sqlite import insert as insert_or

from appliance.ledger import tables
from appliance.ledger.database import Database
from appliance.ledger.leases import Leases
from appliance.ledger.ledger import LedgerError
from appliance.ledger.rows import differs, is_cycle_prefix, is_prefix, is_rollout_prefix, payload_of, stored_in
from appliance.ledger.sqlite_jobs import JobRows, NightRows
from appliance.ledger.sqlite_rollouts import Dropped, counting, drop_tokens
from appliance.records.cycles import Checkpoint, Cycle, Event
from appliance.records.evaluations import Approval, Evaluation
from appliance.records.nights import Canary
from appliance.records.rollouts import REFUSAL_RUN, UNSOLVABLE_RUN, Purpose
from appliance.records.training import ANY_ROLLOUT, Judged, PassCount, RolloutFilter, StepRecord
from policies.contract.decision import Decision


class SqliteLedger(JobRows, NightRows):
    """A ledger in the SQLite file `path`, created if missing. One process at a time may use it; its threads may share
    it.

    Raises LedgerError if the file is damaged, is something else, or was written by a newer version.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._database = Database(path)
        self.leases = Leases(self._database)
        self._cycles = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the ledger file; everything is already on disk. Every later call raises LedgerError."""
        self._database.close()

    # cycles
    def put_cycle(self, cycle: Cycle) -> None:
        with self._cycles:
            stored = self.cycle(cycle.id)
            if stored is None or not stored.state.ended:
                self._put(tables.CYCLES, cycle.id, cycle)
        self.tell_waiting()

    def cycle(self, cycle: str) -> Cycle | None:
        return self._one(Cycle, tables.CYCLES, cycle)

    def find_cycle(self, name: str) -> Cycle | None:
        """Returns a cycle by id or by a unique prefix (kind and first digits). Not part of the protocol.

        Raises AmbiguousPrefixError.
        """
        prefix = name.lower() if is_cycle_prefix(name.lower()) else ""
        return self._begins(self.cycle, tables.CYCLES, name, prefix, "cycle")

    def cycles(self, limit: int = 20) -> list[Cycle]:
        return self._newest(Cycle, tables.CYCLES, limit)

    # training steps
    def commit_step(self, record: StepRecord) -> None:
        step, rows = step_rows(record)
        with self._database.writing() as connection:
            if connection.execute(_step(record.cycle, record.step)).first() is None:
                put_step(connection, step, rows)

    def recorded_steps(self, cycle: str) -> list[int]:
        query = select(tables.STEPS.c.step).where(tables.STEPS.c.cycle == cycle).order_by(tables.STEPS.c.step)
        return [row.step for row in self._rows(query)]

    def step(self, cycle: str, step: int) -> StepRecord | None:
        rollouts = tables.ROLLOUTS.c
        for row in self._rows(_step(cycle, step)):
            query = select(rollouts.payload).where(rollouts.step_sequence == row.sequence).order_by(rollouts.sequence)
            judged = tuple(self._records(Judged, query))
            return self._read(StepRecord, row.payload).model_copy(update={"judged": judged})
        return None

    def step_tasks(self, cycle: str) -> list[dict[str, Any]]:
        query = select(tables.STEPS.c.payload).where(tables.STEPS.c.cycle == cycle).order_by(tables.STEPS.c.step)
        return [task for step in self._records(StepRecord, query) for task in step.tasks]

    def step_metrics(self, cycle: str) -> list[dict[str, float]]:
        steps = tables.STEPS.c
        query = select(steps.step, steps.metrics).where(steps.cycle == cycle).order_by(steps.step)
        return [{**json.loads(row.metrics), "step": row.step} for row in self._rows(query)]

    # other rollouts
    def put_rollouts(self, judged: Sequence[Judged]) -> None:
        rows = [rollout_row(one) for one in judged]
        if not rows:
            return
        with self._database.writing() as connection:
            connection.execute(insert_or(tables.ROLLOUTS).on_conflict_do_nothing(index_elements=["key"]), rows)

    def rollout(self, rollout: str) -> Judged | None:
        return self._one(Judged, tables.ROLLOUTS, rollout)

    def find_rollout(self, name: str) -> Judged | None:
        """Returns a rollout by id or by a unique prefix. Not part of the protocol.

        Raises AmbiguousPrefixError.
        """
        prefix = name.lower() if is_rollout_prefix(name.lower()) else ""
        return self._begins(self.rollout, tables.ROLLOUTS, name, prefix, "rollout")

    def rollouts(self, where: RolloutFilter = ANY_ROLLOUT, *, limit: int = 50) -> list[Judged]:
        columns = tables.ROLLOUTS.c
        asked = {
            columns.cycle: where.cycle if where.job is None else where.job,
            columns.purpose: where.purpose if where.job is None else Purpose.JOB,
            columns.step: where.step,
            columns.family: where.family,
            columns.outcome: where.outcome,
        }
        asked = {column: value for column, value in asked.items() if value is not None}
        # Rows are found by an index alone; the long payloads are read for one page only.
        first = tables.looked_for(asked)
        page = select(columns.sequence).where(
            *((column if column is first else tables.unindexed(column)) == value for column, value in asked.items())
        )
        if not where.probes:
            step, purpose = tables.unindexed(columns.step), tables.unindexed(columns.purpose)
            page = page.where(~((purpose == Purpose.EVALUATION) & step.in_((UNSOLVABLE_RUN, REFUSAL_RUN))))
        if where.before is not None:
            last = select(columns.sequence).where(columns.key == where.before).scalar_subquery()
            page = page.where(columns.sequence < last)
        page = page.order_by(columns.sequence.desc()).limit(limit)
        query = select(columns.payload).where(columns.sequence.in_(page)).order_by(columns.sequence.desc())
        return self._records(Judged, query)

    def rollout_counts(self, cycle: str) -> dict[str, int]:
        rollouts = tables.ROLLOUTS.c
        query = select(rollouts.purpose, sql.count()).where(rollouts.cycle == cycle).group_by(rollouts.purpose)
        return {str(purpose): int(count) for purpose, count in self._rows(query)}

    def pass_counts(self, cycle: str, kept: Mapping[str, int] = MappingProxyType({})) -> list[PassCount]:
        """Counts a cycle's rollouts by purpose, taskset and level; `kept` gives levels of tasks that are in no step.
        Not part of the protocol."""
        return [PassCount.model_validate(row._asdict()) for row in self._rows(counting(cycle, kept))]

    def drop_tokens(self, cycles: Sequence[str], *, dry_run: bool = False) -> Dropped:
        """Drops tokens and call texts of these cycles' training and validation rollouts, or with `dry_run` only counts
        them. Not part of the protocol."""
        return drop_tokens(self._database, cycles, dry_run=dry_run)

    # sealed sets
    def note_refused(self, work: str, call: str, why: str) -> None:
        """Names a worker's refused call where there is an audit log; not part of the protocol."""

    def put_sealed_set(self, digest: str, description: dict[str, str | int | float]) -> None:
        payload = json.dumps(description, sort_keys=True)
        with self._database.writing() as connection:
            stored = stored_in(connection, tables.SEALED_SETS, digest)
            if stored is None:
                connection.execute(insert(tables.SEALED_SETS), {"key": digest, "payload": payload})
            elif json.loads(stored) != description:
                raise differs(tables.SEALED_SETS, digest)

    def sealed_sets(self) -> dict[str, dict[str, str | int | float]]:
        query = select(tables.SEALED_SETS.c.key, tables.SEALED_SETS.c.payload).order_by(tables.SEALED_SETS.c.sequence)
        return {row.key: json.loads(row.payload) for row in self._rows(query)}

    # checkpoints, evaluations, decisions
    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        self._put_once(tables.CHECKPOINTS, checkpoint.manifest, checkpoint, cycle=checkpoint.cycle)

    def is_attested(self, manifest: str) -> bool:
        return True  # no audit log to compare with

    def checkpoint(self, manifest: str) -> Checkpoint | None:
        prefix = manifest.lower() if is_prefix(manifest.lower()) else ""
        get = partial(self._one, Checkpoint, tables.CHECKPOINTS)
        return self._begins(get, tables.CHECKPOINTS, manifest, prefix, "checkpoint")

    def checkpoints(self, *, cycle: str | None = None, limit: int = 100) -> list[Checkpoint]:
        return self._newest(Checkpoint, tables.CHECKPOINTS, limit, cycle=cycle)

    def put_evaluation(self, evaluation: Evaluation) -> None:
        self._put_once(tables.EVALUATIONS, evaluation.id, evaluation, candidate=evaluation.candidate.weights)

    def evaluation(self, evaluation: str) -> Evaluation | None:
        return self._one(Evaluation, tables.EVALUATIONS, evaluation)

    def evaluations(self, *, candidate: str | None = None, limit: int = 20) -> list[Evaluation]:
        return self._newest(Evaluation, tables.EVALUATIONS, limit, candidate=candidate)

    def put_decision(self, decision: Decision) -> None:
        self._put_once(tables.DECISIONS, decision.id, decision, candidate=decision.candidate)

    def decision(self, decision: str) -> Decision | None:
        return self._one(Decision, tables.DECISIONS, decision)

    def decisions(self, *, candidate: str | None = None, limit: int = 20) -> list[Decision]:
        return self._newest(Decision, tables.DECISIONS, limit, candidate=candidate)

    def put_approval(self, approval: Approval) -> None:
        self._put_once(tables.APPROVALS, approval.digest(), approval, candidate=approval.candidate)

    def approvals(self, *, candidate: str | None = None) -> list[Approval]:
        """Returns people's approvals and rejections, of one candidate or all, newest first."""
        return self._newest(Approval, tables.APPROVALS, None, candidate=candidate)

    # what is in service
    def alias(self, name: str) -> str | None:
        found = self._rows(select(tables.ALIASES.c.manifest).where(tables.ALIASES.c.name == name))
        return found[0].manifest if found else None

    def set_aliases(self, aliases: dict[str, str | None], reason: str, at: str) -> None:
        """Moves aliases to other checkpoints in one transaction. Raises what `require_checkpoints` raises."""
        self.require_checkpoints(aliases)
        with self._database.writing() as connection:
            put_aliases(connection, aliases, reason, at)

    def require_checkpoints(self, aliases: dict[str, str | None]) -> None:
        """Raises LedgerError for a digest that no checkpoint of this ledger has."""
        for name, digest in aliases.items():
            if digest is not None and self._one(Checkpoint, tables.CHECKPOINTS, digest) is None:
                raise LedgerError(
                    f"the alias {name} cannot be {digest[:12]}: no such checkpoint in the ledger",
                    hint="`assay model ls` lists checkpoints",
                )

    def alias_history(self, limit: int = 20) -> list[dict[str, str | None]]:
        """Returns the moves of model aliases, newest first, each with `reason`, `at` and the names it set."""
        query = select(tables.ALIAS_MOVES.c.payload).order_by(tables.ALIAS_MOVES.c.sequence.desc()).limit(limit)
        moves = [json.loads(row.payload) for row in self._rows(query)]
        return [{**move["aliases"], "reason": move["reason"], "at": move["at"]} for move in moves]

    def put_canary(self, canary: Canary) -> None:
        self._put(tables.CANARIES, canary.id, canary)

    def canaries(self, limit: int = 20) -> list[Canary]:
        return self._newest(Canary, tables.CANARIES, limit)

    # progress
    def put_event(self, event: Event) -> None:
        with self._database.writing() as connection:
            connection.execute(insert(tables.EVENTS), {"payload": payload_of(event)})

    def events(self, *, after: int = 0, limit: int = 200) -> list[tuple[int, Event]]:
        query = select(tables.EVENTS.c.sequence, tables.EVENTS.c.payload).where(tables.EVENTS.c.sequence > after)
        rows = self._rows(query.order_by(tables.EVENTS.c.sequence).limit(limit))
        return [(row.sequence, self._read(Event, row.payload)) for row in rows]

    def newest_of_kind(self, kind: str, among: int) -> Event | None:
        """Returns the newest event of a kind among the `among` newest events. Not part of the protocol."""
        sequence, payload = tables.EVENTS.c.sequence, tables.EVENTS.c.payload
        own = payload.startswith(f'{{"kind":{json.dumps(kind)},', autoescape=True)  # a record's first field comes first
        newest = select(payload).where(sequence > self.newest_event() - among, own).order_by(sequence.desc()).limit(1)
        return next(iter(self._records(Event, newest)), None)

    def newest_event(self) -> int:
        [newest] = self._rows(select(sql.coalesce(sql.max(tables.EVENTS.c.sequence), 0)))
        return int(newest[0])

    # the audit log's newest line: not in the protocol, so that no worker can ask for it
    def audit_head(self) -> bytes | None:
        found = self._rows(select(tables.AUDIT_HEAD.c.line))
        return found[0].line.encode("ascii") if found else None

    def put_audit_head(self, line: bytes | None) -> None:
        with self._database.writing() as connection:
            put_head(connection, line)


def put_aliases(connection: Connection, aliases: dict[str, str | None], reason: str, at: str) -> None:
    for name, manifest in aliases.items():
        row = insert_or(tables.ALIASES).values(name=name, manifest=manifest)
        connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"manifest": manifest}))
    move = {"aliases": aliases, "reason": reason, "at": at}
    connection.execute(insert(tables.ALIAS_MOVES), {"payload": json.dumps(move)})


def step_rows(record: StepRecord) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns the database row of a training step, and the rows of its rollouts."""
    step = {
        "cycle": record.cycle,
        "step": record.step,
        "metrics": json.dumps(record.metrics),
        "payload": payload_of(record.model_copy(update={"judged": ()})),
    }
    return step, [rollout_row(judged) for judged in record.judged]


def put_step(connection: Connection, step: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    _refuse_counted(connection, [row["key"] for row in rows])
    sequence = connection.execute(insert(tables.STEPS).returning(tables.STEPS.c.sequence), step).scalar_one()
    for row in rows:
        row["step_sequence"] = sequence
    if rows:
        connection.execute(insert(tables.ROLLOUTS), rows)


def put_head(connection: Connection, line: bytes | None) -> None:
    connection.execute(delete(tables.AUDIT_HEAD))
    if line is not None:
        connection.execute(insert(tables.AUDIT_HEAD), {"only": 1, "line": line.decode("ascii")})


def _step(cycle: str, step: int) -> Select[Any]:
    columns = tables.STEPS.c
    return select(columns.sequence, columns.payload).where((columns.cycle == cycle) & (columns.step == step))


def rollout_row(judged: Judged) -> dict[str, Any]:
    rollout = judged.rollout
    return {
        "key": rollout.id,
        "cycle": rollout.cycle,
        "purpose": rollout.purpose.value,
        "step": rollout.step,
        "step_sequence": None,
        "family": judged.family,
        "outcome": judged.verdict.outcome.value,
        "payload": payload_of(judged),
    }


def _refuse_counted(connection: Connection, keys: Sequence[str]) -> None:
    if len(set(keys)) != len(keys):
        raise LedgerError("a step contains the same rollout twice", hint="report this: its data cannot be trusted")
    for start in range(0, len(keys), 500):
        found = connection.execute(
            select(tables.ROLLOUTS.c.key).where(tables.ROLLOUTS.c.key.in_(keys[start : start + 500]))
        ).first()
        if found is not None:
            raise LedgerError(
                f"rollout {found.key} is in the ledger already, outside this step",
                hint="report this: the step would count it twice, so nothing of it was written",
            )
