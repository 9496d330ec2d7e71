"""A night in which only some tasks get whole groups, and the same night after a kill."""

from __future__ import annotations

from typing import Any

import pytest
from short_nights import SHORT, train_night

from appliance.ledger.sqlite import SqliteLedger
from appliance.records.training import StepRecord
from appliance.worker.setup.context import WorkContext

FIRST, WHOLE, TASKS = 2, 8, 4
TRAINING = SHORT.training.model_copy(update={"steps": 2, "screening": FIRST, "refills": 1})


class Cut(Exception):
    """Stands for the plug being pulled."""


class CutsStep:
    """A ledger in whose last moment a step is about to be recorded."""

    def __init__(self, ledger: SqliteLedger, step: int) -> None:
        self._ledger, self._step = ledger, step
        self.lost: StepRecord | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def commit_step(self, record: StepRecord) -> None:
        if record.step == self._step:
            self.lost = record
            raise Cut
        self._ledger.commit_step(record)


def made(record: StepRecord) -> list[tuple[str, bool]]:
    return [(one.rollout.id, one.verdict.passed) for one in record.judged]


def test_some_tasks_of_a_night_get_whole_groups_and_a_killed_night_chooses_the_same(
    context: WorkContext, ledger: SqliteLedger
) -> None:
    recipe = SHORT.model_copy(update={"training": TRAINING})
    context.ledger = cut = CutsStep(ledger, 1)  # type: ignore[assignment]
    with pytest.raises(Cut):
        train_night(context, "n", recipe=recipe)
    context.ledger = ledger
    train_night(context, "n", recipe=recipe)
    assert cut.lost is not None
    records = [record for step in range(2) if (record := ledger.step("n", step)) is not None]
    assert len(records) == 2
    assert made(records[1]) == made(cut.lost)
    sizes = []
    for record in records:
        by_task = {task["id"]: 0 for task in record.tasks}
        for one in record.judged:
            assert one.rollout.sample == by_task[one.rollout.task], "the seeds are those of a whole group"
            by_task[one.rollout.task] += 1
        sizes += by_task.values()
        assert len(record.judged) <= 2 * TASKS * WHOLE, "as many as with one refill"
        assert {len(group.rewards) for group in record.groups} <= {FIRST, WHOLE}
    assert set(sizes) == {FIRST, WHOLE}
