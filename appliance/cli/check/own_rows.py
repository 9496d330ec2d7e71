"""Checks rows before they become tasks: the check is decisive, rejects wrong answers and accepts the right one.

Invariants: a row is accepted only after its check has rejected wrong answers and, with a reference, accepted that. A
row that could not be checked here is refused with the reason, never counted as wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Protocol

from curriculum.certification.certify import scored_elsewhere
from curriculum.environments.terminal.environment import CONTAINER, TERMINAL
from curriculum.own.harbor import untouched
from curriculum.own.rows import OwnRow
from verifiers.contract.verdict import Outcome, SpecProblem, Verdict
from verifiers.registry import kind_of
from verifiers.registry.spec import Spec

BATCH = 64
LENIENT = "its check accepts a wrong answer"
WRONG_REFERENCE = "its check rejects its own answer"

Checked = tuple[OwnRow, str]
"""A row with the reason of its refusal, empty if accepted."""


class ChecksMany(Protocol):
    """Interface of `verifiers.checker.Checker` as used here."""

    def check_many(
        self, pairs: Sequence[tuple[Spec, str]], seconds: float | None = None
    ) -> list[Verdict | SpecProblem]: ...


def checked(checker: ChecksMany, rows: Iterator[OwnRow], progress: Callable[[int], None]) -> Iterator[Checked]:
    """Tries each row's check on wrong answers and the reference, in batches. Yields each row with its result, in order,
    and reports the count to `progress`."""
    done = 0
    while some := list(islice(rows, BATCH)):
        submissions = [submissions_of(row) for row in some]
        pairs = [(row.spec, text) for row, texts in zip(some, submissions, strict=True) for text in texts]
        found = iter(checker.check_many(pairs) if pairs else [])
        for row, texts in zip(some, submissions, strict=True):
            yield row, _refusal(row, list(islice(found, len(texts))))
            done += 1
        progress(done)


def submissions_of(row: OwnRow) -> list[str]:
    """Returns the submissions to try a row's check with: wrong answers, then the reference if any. Empty for checks
    decided elsewhere, which pass nothing here."""
    kind = kind_of(row.spec)
    if scored_elsewhere(row.spec):
        return []
    wrong = ["", kind.random_answer(Random(row.key)), *([kind.probe] if kind.probe else [])]
    if row.answer and row.answer != row.question:
        wrong.append(row.question)
    if kind.runs:
        wrong = wrong[1:]  # each has a sandbox
    if row.environment in (TERMINAL.name, CONTAINER.name):
        wrong.append(untouched(row))
    return [*wrong, *([row.answer] if row.answer else [])]


def _refusal(row: OwnRow, found: Sequence[Verdict | SpecProblem]) -> str:
    for one in found:
        if isinstance(one, SpecProblem):
            return f"its check cannot be used: {one.reason}"
        if one.outcome is Outcome.INFRA_ERROR:
            return f"it could not be checked here: {one.reason}"
    passed = [isinstance(one, Verdict) and one.outcome is Outcome.PASS for one in found]
    if any(passed[:-1] if row.answer else passed):
        return LENIENT
    return WRONG_REFERENCE if row.answer and not passed[-1] else ""
