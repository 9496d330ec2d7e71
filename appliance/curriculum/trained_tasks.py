"""Collects generated tasks that models learned from up to a cycle, for the filter of its sealed questions.

Invariants: the cycle's own training is included; it was drawn clear of the sealed questions, so the set is the same
before and after it. Later cycles are excluded, so a set can be regenerated. Tasks of steps are in the ledger, those of
demonstrations in files of their own, a teacher's in its conversation files. Recorded conversations are excluded: no
taskset generated them, and they have a filter of their own (`curriculum.separation.rules`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from appliance.curriculum.kept_files import conversation_tasks, kept_lessons
from appliance.ledger.ledger import Ledger
from appliance.records.cycles import Cycle
from curriculum.contract.task import Task
from curriculum.separation.index import TrainedQuestions

MOST_CYCLES = 100_000
RECORDED = "traces"
"""Taskset name of recorded conversations."""


def trained_until(ledger: Ledger, data: Path, cycle: str) -> TrainedQuestions:
    """Returns the generated tasks that models trained on up to and in this cycle. For a cycle that is not on record,
    all cycles count. Raises LedgerError."""
    known = ledger.cycles(MOST_CYCLES)
    names = [one.id for one in known]
    until = known[names.index(cycle) :] if cycle in names else known
    return TrainedQuestions(chain.from_iterable(_tasks_of(ledger, data, one) for one in until))


def _tasks_of(ledger: Ledger, data: Path, cycle: Cycle) -> Iterator[Task]:
    yield from map(Task.model_validate, ledger.step_tasks(cycle.id))
    yield from (one.task for one in kept_lessons(data, cycle.id))
    stages = (stage for name, stage in cycle.plan.items() if name.startswith("stage_") and isinstance(stage, dict))
    for digest in filter(None, (stage.get("traces") for stage in stages)):
        yield from (task for task in conversation_tasks(data, str(digest)) if task.taskset != RECORDED)
