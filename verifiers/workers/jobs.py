"""What is to be judged: items of jobs, which have turns, and what became of them. Pure but for the event at the end."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from verifiers.registry import identity
from verifiers.spec import Spec
from verifiers.verdict import Ground, Outcome, Verdict

Pair = tuple[Spec, str]
BAD_SPEC = "bad_spec"
"""The evidence under this name is what is wrong with a spec that cannot be used."""


@dataclass(eq=False)
class Item:
    job: Job
    place: int
    attempts: int = 0
    """How often it was lost by itself."""
    passed_on: int = 0
    """How often it was lost with another."""
    spent: float = 0.0

    @property
    def pair(self) -> Pair:
        return self.job.pairs[self.place]

    @property
    def judged(self) -> bool:
        return self.place in self.job.verdicts


@dataclass(eq=False)
class Job:
    pairs: Sequence[Pair]
    seconds: float
    """Wall clock of one item."""
    way: str = ""
    """Not a verdict is asked for but proposals, found this way; the submission is then the question."""
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    waiting: deque[Item] = field(default_factory=deque)
    done: threading.Event = field(default_factory=threading.Event)

    def settle(self, item: Item, verdict: Verdict) -> None:
        """The first verdict of an item counts; they are all the same."""
        self.verdicts.setdefault(item.place, verdict)
        if len(self.verdicts) == len(self.pairs):
            self.done.set()


class Waiting:
    """Jobs have turns, so that a large one holds up nobody."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __len__(self) -> int:
        return sum(len(job.waiting) for job in self._jobs)

    def add(self, job: Job) -> None:
        self._jobs.append(job)

    def back(self, items: Sequence[Item]) -> None:
        """To the front: they were begun, or nearly."""
        for item in reversed(items):
            if not item.judged:
                if item.job not in self._jobs:
                    self._jobs.appendleft(item.job)
                item.job.waiting.appendleft(item)

    def take(self, most: int, most_chars: int, held_up: Collection[Job] = ()) -> list[Item]:
        """The next items of one job, of none that is held up."""
        job = next((job for job in self._jobs if job not in held_up), None)
        found: list[Item] = []
        if job is None:
            return found
        self._jobs.remove(job)
        chars = 0
        while job.waiting and len(found) < most and (not found or chars < most_chars):
            item = job.waiting.popleft()
            chars += len(item.pair[1])
            found.append(item)
        if job.waiting:
            self._jobs.append(job)
        return found

    def empty(self) -> list[Item]:
        """Takes all."""
        found = [item for job in self._jobs for item in job.waiting]
        for job in self._jobs:
            job.waiting.clear()
        self._jobs.clear()
        return found


def failed(item: Item, ground: Ground, reason: str, seconds: float) -> Verdict:
    """Of a submission that was no answer, or took too much to decide."""
    return _without_decision(item, Outcome.FAIL, ground, reason, seconds)


def broken(item: Item, reason: str, seconds: float = 0.0) -> Verdict:
    """Nothing is known of it."""
    return _without_decision(item, Outcome.INFRA_ERROR, Ground.BROKEN, reason, seconds)


def unusable(item: Item, problem: str, hint: str) -> Verdict:
    """Its spec cannot be used."""
    found = broken(item, f"the spec cannot be used: {problem}"[:1000])
    return found.model_copy(update={"evidence": {BAD_SPEC: problem[:1000], "hint": hint[:1000]}})


def _without_decision(item: Item, outcome: Outcome, ground: Ground, reason: str, seconds: float) -> Verdict:
    name, version = identity(item.pair[0])
    return Verdict(
        outcome=outcome, score=0.0, reason=reason, ground=ground, verifier=name, version=version, seconds=seconds
    )
