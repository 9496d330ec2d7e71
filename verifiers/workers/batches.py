"""Batches of items to decide: batches take turns, each item gets one result. Pure except for the completion event."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from verifiers.contract.protocols import ProposalReply
from verifiers.contract.verdict import Ground, Outcome, SpecProblem, Verdict
from verifiers.contract.verdict import broken as broken_verdict
from verifiers.registry import identity
from verifiers.registry.spec import Spec

Pair = tuple[Spec, str]
ItemResult = Verdict | SpecProblem | ProposalReply


@dataclass(eq=False)
class WorkItem:
    batch: WorkBatch
    place: int
    attempts: int = 0
    """Times that the item was lost while being decided."""
    requeued: int = 0
    """Times that the item was lost together with another one."""
    spent: float = 0.0

    @property
    def pair(self) -> Pair:
        return self.batch.pairs[self.place]

    @property
    def settled(self) -> bool:
        return self.place in self.batch.results


@dataclass(eq=False)
class WorkBatch:
    pairs: Sequence[Pair]
    seconds: float
    """Time limit per item, in seconds of CPU time."""
    way: str = ""
    """Way of proposing; the batch then asks for proposals, not verdicts, and submissions are questions."""
    results: dict[int, ItemResult] = field(default_factory=dict)
    waiting: deque[WorkItem] = field(default_factory=deque)
    done: threading.Event = field(default_factory=threading.Event)

    def settle(self, item: WorkItem, result: ItemResult) -> None:
        """Records the result of a batch's item. The first result counts; results are deterministic."""
        self.results.setdefault(item.place, result)
        if len(self.results) == len(self.pairs):
            self.done.set()


class WaitingBatches:
    """Queue of batches of submissions that take turns, so that a large batch delays no other."""

    def __init__(self) -> None:
        self._batches: deque[WorkBatch] = deque()

    def __bool__(self) -> bool:
        return bool(self._batches)

    def __len__(self) -> int:
        return sum(len(batch.waiting) for batch in self._batches)

    def add(self, batch: WorkBatch) -> None:
        self._batches.append(batch)

    def put_back(self, items: Sequence[WorkItem]) -> None:
        """Returns unsettled items to the front of the queue: they were started, or nearly."""
        for item in reversed(items):
            if not item.settled:
                if item.batch not in self._batches:
                    self._batches.appendleft(item.batch)
                item.batch.waiting.appendleft(item)

    def take(self, most: int, most_chars: int, held_up: Collection[WorkBatch] = ()) -> list[WorkItem]:
        """Takes the next items of one batch that is not held up, at most `most`, with about `most_chars` characters."""
        batch = next((batch for batch in self._batches if batch not in held_up), None)
        found: list[WorkItem] = []
        if batch is None:
            return found
        self._batches.remove(batch)
        chars = 0
        while batch.waiting and len(found) < most and (not found or chars < most_chars):
            item = batch.waiting.popleft()
            chars += len(item.pair[1])
            found.append(item)
        if batch.waiting:
            self._batches.append(batch)
        return found

    def drain(self) -> list[WorkItem]:
        """Removes all waiting items from the queue and returns them."""
        found = [item for batch in self._batches for item in batch.waiting]
        for batch in self._batches:
            batch.waiting.clear()
        self._batches.clear()
        return found


def failed(item: WorkItem, ground: Ground, reason: str, seconds: float) -> Verdict:
    """Returns the `fail` verdict of a submission that was unreadable or too expensive to decide."""
    verdict = broken(item, reason, seconds)
    return verdict.model_copy(update={"outcome": Outcome.FAIL, "ground": ground})


def broken(item: WorkItem, reason: str, seconds: float = 0.0) -> Verdict:
    """Returns the `infra_error` verdict of an undecided submission."""
    return broken_verdict(*identity(item.pair[0]), reason, seconds)
