"""Remembers what was proposed, so that nothing counts twice.

What always holds: the memory is a function of the proposed tasks that were recorded, in any order, so it is made again
from the ledger after a restart and is the same as before. Exact keys say what a task asks whatever the names; beside
them, near-duplicates are found among what stands in fenced blocks (programs, puzzles, statements).
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
    """What was proposed so far. Not thread-safe."""

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
        """Remembers a proposed task; others are left out."""
        if is_proposed(task) and task.key not in self._keys:
            self._keys.add(task.key)
            self._near.add(task.key, substance(task))

    def require_new(self, made: ProvenTask) -> float:
        """The similarity to what is nearest, below the threshold. Raises RefusedProposal for what is known."""
        if made.task.key in self._keys:
            raise RefusedProposal(Reason.KNOWN, "it was proposed before")
        similarity = self._near.similarity(substance(made.task))
        if similarity >= self._near.threshold:
            raise RefusedProposal(Reason.NEAR, f"{similarity:.2f} alike to one before")
        return similarity


def substance(task: Task) -> str:
    """What a task is about, without the words of its question: the content of its fenced blocks."""
    return "\n".join(_BLOCK.findall(task.question))
