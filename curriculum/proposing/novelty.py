"""Remembers proposals, so that none counts twice.

Invariants: the memory is a function of the recorded proposed tasks, in any order, so it is rebuilt from the ledger
after a restart. Exact keys identify a question independent of names; near-duplicates are also searched among the
contents of fenced blocks (programs, puzzles, statements).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from curriculum.contract.task import Task
from curriculum.proposing.labels import ProvenTask, is_proposed
from curriculum.proposing.near_duplicates import NearDuplicates
from curriculum.proposing.refusals import Reason, RefusedProposal

THRESHOLD = 0.8
_BLOCK = re.compile(r"^```[a-z]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class NoveltyMemory:
    """Memory of all proposed tasks so far. Not thread-safe."""

    def __init__(self, tasks: Iterable[Task] = (), threshold: float = THRESHOLD) -> None:
        self._keys: set[str] = set()
        self._near = NearDuplicates(threshold)
        for task in tasks:
            self.add(task)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def add(self, task: Task) -> None:
        """Remembers a proposed task; ignores tasks that no model proposed."""
        if is_proposed(task) and task.key not in self._keys:
            self._keys.add(task.key)
            self._near.add(task.key, substance(task))

    def require_new(self, made: ProvenTask) -> float:
        """Returns a proposed task's similarity to the nearest earlier proposal. Raises RefusedProposal if it was
        proposed before or is a near-duplicate."""
        if made.task.key in self._keys:
            raise RefusedProposal(Reason.KNOWN, "it was proposed before")
        similarity = self._near.similarity(substance(made.task))
        if similarity >= self._near.threshold:
            raise RefusedProposal(Reason.NEAR, f"{similarity:.2f} alike to one before")
        return similarity


def substance(task: Task) -> str:
    """Returns the content of the fenced blocks in a task's question, without the wording around them."""
    return "\n".join(_BLOCK.findall(task.question))
