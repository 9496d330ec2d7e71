"""Tasks for tests of the agent: what is asked, and nothing behind it."""

from __future__ import annotations

from typing import Any

from curriculum.contract.task import Split, Task, asked
from verifiers.exact.spec import ExactSpec


def task_of(question: str, **fields: Any) -> Task:
    return Task(
        **{
            "taskset": "test",
            "level": 0,
            "seed": 0,
            "split": Split.JOB,
            "messages": asked(question),
            "spec": ExactSpec(expected="6"),
            **fields,
        }
    )
