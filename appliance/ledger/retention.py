"""Drops the bulk of old rollouts: the tokens of their conversations and the texts of their calls.

Invariants: only training and validation rollouts of ended cycles lose anything. Task, turns, calls per tool with their
status, and verdict stay, and so does everything that an evaluation, decision, approval or bundle rests on. The caller
names the cycles; small transactions let other writers in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, text

from appliance.ledger.database import Database
from appliance.records.rollouts import Purpose

PURPOSES = (Purpose.TRAIN.value, Purpose.VALIDATION.value)
AT_ONCE = 200
"""Rollouts per transaction."""
_WITH_TOKENS = """
    FROM rollouts WHERE cycle = :cycle AND purpose IN :purposes
    AND json_array_length(payload, '$.rollout.nodes[0].ids') > 0
"""
_EMPTIED = """
    json_set(payload, '$.rollout.nodes', (
        SELECT json_group_array(json(emptied)) FROM (
            SELECT json_remove(json_replace(value, '$.ids', json('[]')), '$.logprobs', '$.call.code',
                               '$.call.arguments', '$.call.output', '$.call.error') AS emptied
            FROM json_each(payload, '$.rollout.nodes') ORDER BY key
        )
    ))
"""


class Dropped(NamedTuple):
    rollouts: int
    bytes: int


def _bytes(text: str) -> str:
    """Returns the SQL expression for the byte length of a text; SQLite's `length` counts characters."""
    return f"length(CAST({text} AS BLOB))"


def drop_tokens(database: Database, cycles: Sequence[str], *, dry_run: bool = False) -> Dropped:
    """Drops tokens and call texts of these cycles' training and validation rollouts. Returns the amount dropped (or,
    with `dry_run`, droppable)."""
    rollouts = size = 0
    found = text(f"SELECT sequence, {_bytes('payload')} - {_bytes(_EMPTIED)} AS size" + _WITH_TOKENS)
    found = found.bindparams(bindparam("purposes", PURPOSES, expanding=True))
    emptied = text(f"UPDATE rollouts SET payload = {_EMPTIED} WHERE sequence IN :rows")  # noqa: S608 - of ours
    emptied = emptied.bindparams(bindparam("rows", expanding=True))
    for cycle in cycles:
        with database.reading() as connection:
            rows = connection.execute(found, {"cycle": cycle}).all()
        rollouts += len(rows)
        size += sum(row.size for row in rows)
        if dry_run:
            continue
        for start in range(0, len(rows), AT_ONCE):
            batch = [row.sequence for row in rows[start : start + AT_ONCE]]
            with database.writing() as connection:
                connection.execute(emptied, {"rows": batch})
    return Dropped(rollouts, size)
