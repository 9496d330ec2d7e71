"""The families of calculator questions, as tests of their operations need them."""

from __future__ import annotations

from curriculum.contract.task import Task
from curriculum.families.phrased import PhrasedDraft, PhrasedTaskset
from curriculum.registry import CALCULATORS, TASKSETS, draft_of

FAMILIES = {name: found for name in CALCULATORS if isinstance(found := TASKSETS[name], PhrasedTaskset)}
OPERATIONS = {question.operation.name: question.operation for one in FAMILIES.values() for question in one.questions}


def topic_of(task: Task) -> str:
    return draft_of(task).topic


def numbers_of(task: Task) -> tuple[int, ...]:
    draft = draft_of(task)
    assert isinstance(draft, PhrasedDraft)
    return draft.numbers
