"""Collects what tasksets generated and models learned from until a cycle, for the door of its sealed questions.

What always holds: the cycle's own training is among it, which was drawn clear of its sealed questions, so they come out
the same before it and after it. Later cycles are not, so a set can be made again. Tasks of steps are in the ledger,
those of demonstrations in files of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from appliance.curriculum.kept_files import kept_lessons
from appliance.ledger.ledger import Ledger
from curriculum.contract.task import Task
from curriculum.separation.trained import TrainedQuestions

MOST_CYCLES = 100_000


def trained_until(ledger: Ledger, data: Path, cycle: str) -> TrainedQuestions:
    """Reads that cycle and all before it; all there are where the cycle is in no record. Raises LedgerError."""
    known = [one.id for one in ledger.cycles(MOST_CYCLES)]
    names = known[known.index(cycle) :] if cycle in known else known
    return TrainedQuestions(chain.from_iterable(_tasks_of(ledger, data, name) for name in names))


def _tasks_of(ledger: Ledger, data: Path, cycle: str) -> Iterator[Task]:
    yield from map(Task.model_validate, ledger.step_tasks(cycle))
    yield from (one.task for one in kept_lessons(data, cycle))
