"""Drops what nobody needs any more of old rollouts: the tokens of their conversations, and the words of their calls.

What always holds: only rollouts of training and validation, of cycles that have ended, lose anything. Who tried what,
in how many turns, with how many calls of which tool and how each ended, and with which verdict, stays; and so does all
that an evaluation, a decision, an approval or a bundle rests on. What is dropped is named by the caller, and goes in
small transactions, between which others write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, text

from appliance.ledger.database import Database
from appliance.records.rollouts import Purpose

PURPOSES = (Purpose.TRAIN.value, Purpose.VALIDATION.value)
AT_ONCE = 200
"""Rollouts in one transaction."""
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
    """Counts the bytes of a text; SQLite's `length` counts its characters."""
    return f"length(CAST({text} AS BLOB))"


def drop_tokens(database: Database, cycles: Sequence[str], *, dry_run: bool = False) -> Dropped:
    """Empties the conversations of those cycles' rollouts; what that is, or with `dry_run` would be."""
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
