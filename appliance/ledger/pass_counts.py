"""Counts a cycle's rollouts by purpose, taskset and level. SQLite adds them up: however many there are, none is loaded.

What always holds: a rollout counts once, under the level that its task has in the step that it was committed with; one
whose task the ledger does not keep has no level.
"""

from __future__ import annotations

from sqlalchemy import TextClause, text

_COUNTING = """
WITH levels AS (
    SELECT steps.sequence AS step, json_extract(task.value, '$.id') AS task,
           max(json_extract(task.value, '$.level')) AS level
    FROM steps, json_each(steps.payload, '$.tasks') AS task
    WHERE steps.cycle = :cycle
    GROUP BY 1, 2
), read_once AS MATERIALIZED (
    SELECT purpose, step_sequence AS step,
           json_extract(payload, '$.family', '$.verdict.outcome', '$.rollout.task') AS facts
    FROM rollouts
    WHERE cycle = :cycle
), facts AS MATERIALIZED (
    SELECT purpose, step, json_extract(facts, '$[0]') AS family, json_extract(facts, '$[1]') AS outcome,
           json_extract(facts, '$[2]') AS task
    FROM read_once
)
SELECT :cycle AS cycle, purpose, family, level,
       count(*) FILTER (WHERE outcome <> 'infra_error') AS rollouts,
       count(*) FILTER (WHERE outcome = 'pass') AS passed,
       count(*) FILTER (WHERE outcome = 'infra_error') AS broken
FROM facts LEFT JOIN levels USING (step, task)
GROUP BY purpose, family, level
ORDER BY purpose, family, level
"""


def counting(cycle: str) -> TextClause:
    """Its rows have the fields of `PassCount`."""
    return text(_COUNTING).bindparams(cycle=cycle)
