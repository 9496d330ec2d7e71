"""Counts rollouts in SQL without loading any, and drops the bulk of old ones.

Invariants: a rollout counts once, under the level of its task in the step it was committed with or among the held-out
questions; otherwise it has no level. It ended in an infrastructure error, passed, or failed in one of the ways that
`PassCount` names or with a wrong answer. Branches do not count: they begin where an attempt met something hard.

Only training and validation rollouts of ended cycles lose anything. Task, turns, calls per tool with their status, and
verdict stay, and so does everything that an evaluation, decision, approval or bundle rests on. The caller names the
cycles; small transactions let other writers in between.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import TextClause, bindparam, text

from appliance.ledger.database import Database
from appliance.records.rollouts import Purpose

# A call's status is matched in raw JSON; model text cannot match, as its quotation marks are escaped.
_COUNTING = """
WITH levels AS (
    SELECT steps.sequence AS step, json_extract(task.value, '$.id') AS task,
           max(json_extract(task.value, '$.level')) AS level
    FROM steps, json_each(steps.payload, '$.tasks') AS task
    WHERE steps.cycle = :cycle
    GROUP BY 1, 2
), kept AS MATERIALIZED (
    SELECT key AS task, value AS level FROM json_each(:kept)
), signals AS MATERIALIZED (
    SELECT steps.sequence AS step, json_extract(made.value, '$.task') AS task,
           json_array_length(made.value, '$.kept') > 0 AS signal
    FROM steps, json_each(steps.payload, '$.groups') AS made
    WHERE steps.cycle = :cycle
), read_once AS MATERIALIZED (
    SELECT purpose, step_sequence AS step,
           json_extract(payload, '$.family', '$.verdict.outcome', '$.rollout.task', '$.rollout.ended',
                        '$.rollout.answers', '$.verdict.ground', '$.rollout.branch_of') AS facts,
           json_array_length(payload, '$.rollout.nodes') AS nodes,
           instr(payload, '"status":"parse_error"') > 0 AS malformed,
           instr(replace(payload, '"tool":"python"', ''), '"tool":"') > 0 AS asked
    FROM rollouts
    WHERE cycle = :cycle
), facts AS MATERIALIZED (
    SELECT purpose, step, nodes, malformed, asked, json_extract(facts, '$[0]') AS family,
           json_extract(facts, '$[1]') AS outcome, json_extract(facts, '$[2]') AS task,
           json_extract(facts, '$[3]') AS ended, json_extract(facts, '$[4]') AS answers,
           json_extract(facts, '$[5]') AS ground
    FROM read_once
    WHERE json_extract(facts, '$[6]') IS NULL
), placed AS MATERIALIZED (
    SELECT facts.*, coalesce(levels.level, kept.level) AS level, coalesce(levels.level, kept.level, -1) AS place,
           outcome NOT IN ('pass', 'infra_error') AS missed,
           ended = 'answered' AND (answers <> 1 OR coalesce(ground, '') IN ('unreadable', 'unfinished')) AS formless
    FROM facts LEFT JOIN levels USING (step, task) LEFT JOIN kept USING (task)
), grouped AS MATERIALIZED (
    SELECT purpose, family, place, count(*) AS groups, sum(signal) AS learned
    FROM (SELECT DISTINCT purpose, family, place, step, task FROM placed) JOIN signals USING (step, task)
    GROUP BY 1, 2, 3
), asked_once AS MATERIALIZED (
    SELECT purpose, family, place, count(*) AS questions, sum(x * x) AS passed_squared, sum(x * n) AS "both",
           sum(n * n) AS rollouts_squared
    FROM (
        SELECT purpose, family, place, task, count(*) AS n, count(*) FILTER (WHERE outcome = 'pass') AS x
        FROM placed WHERE outcome <> 'infra_error' GROUP BY purpose, family, place, task
    )
    GROUP BY 1, 2, 3
)
SELECT :cycle AS cycle, purpose, family, level,
       count(*) FILTER (WHERE outcome <> 'infra_error') AS rollouts,
       count(*) FILTER (WHERE outcome = 'pass') AS passed,
       count(*) FILTER (WHERE outcome = 'infra_error') AS broken,
       coalesce(max(grouped.groups), 0) AS "groups", coalesce(max(learned), 0) AS learned,
       count(*) FILTER (WHERE missed AND ended = 'tokens' AND nodes = 1) AS no_room,
       count(*) FILTER (WHERE missed AND ended = 'tokens' AND nodes <> 1) AS cut,
       count(*) FILTER (WHERE missed AND ended = 'turns') AS turns,
       count(*) FILTER (WHERE missed AND formless) AS formless,
       count(*) FILTER (WHERE outcome <> 'infra_error' AND malformed) AS malformed,
       count(*) FILTER (WHERE outcome <> 'infra_error' AND asked) AS asked_world,
       coalesce(max(questions), 0) AS questions, coalesce(max(passed_squared), 0) AS passed_squared,
       coalesce(max("both"), 0) AS "both", coalesce(max(rollouts_squared), 0) AS rollouts_squared
FROM placed LEFT JOIN grouped USING (purpose, family, place) LEFT JOIN asked_once USING (purpose, family, place)
GROUP BY purpose, family, level
ORDER BY purpose, family, level
"""


def counting(cycle: str, kept: Mapping[str, int]) -> TextClause:
    """Returns the SQL query that counts a cycle's rollouts; its rows have the fields of `PassCount`. `kept` gives the
    levels of held-out questions, by task."""
    return text(_COUNTING).bindparams(cycle=cycle, kept=json.dumps(dict(kept)))


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
            SELECT json_remove(json_replace(value, '$.ids', json('[]')), '$.logprobs', '$.routes', '$.call.code',
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
