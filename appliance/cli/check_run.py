"""Many checks at once, their results in the order of the pairs.

What always holds: a bounded number of pairs is under way, however long the file is; a pair that takes long holds up
what is written, never what is checked, as far as that bound goes.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from appliance.cli.check_pairs import PairItem
from verifiers.contract.verdict import SpecProblem, Verdict
from verifiers.registry.spec import Spec

BATCH_TEXT = 1 << 20
"""Characters of submissions in a batch, unless one alone has more."""
AHEAD = 2
"""Batches under way or waiting for each that runs."""

Ask = Callable[[Sequence[tuple[Spec, str]]], list[Verdict | SpecProblem]]
Judged = list[tuple[PairItem, Verdict | SpecProblem]]


def batches(items: Iterable[PairItem], size: int) -> Iterator[list[PairItem]]:
    """Runs of at most `size` items, and of not too much text."""
    gathered: list[PairItem] = []
    text = 0
    for item in items:
        if gathered and (len(gathered) == size or text + len(item.submission) > BATCH_TEXT):
            yield gathered
            gathered, text = [], 0
        gathered.append(item)
        text += len(item.submission)
    if gathered:
        yield gathered


@contextlib.contextmanager
def judged(items: Iterable[PairItem], ask: Ask, *, at_once: int, batch: int = 1) -> Iterator[Iterator[Judged]]:
    """Verdicts, `batch` or fewer at a time, in the order of the items; `ask` is called `at_once` times at once. Raises
    what it raises. At the end of the block nothing new is asked, and nothing that was asked is waited for."""
    pool = ThreadPoolExecutor(max_workers=at_once, thread_name_prefix="check")
    try:
        yield _in_order(pool, batches(items, batch), ask, at_once * AHEAD)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _in_order(pool: ThreadPoolExecutor, work: Iterator[list[PairItem]], ask: Ask, ahead: int) -> Iterator[Judged]:
    waiting: deque[tuple[list[PairItem], Future[list[Verdict | SpecProblem]]]] = deque()

    def begin(some: list[PairItem]) -> None:
        waiting.append((some, pool.submit(ask, [(item.spec, item.submission) for item in some])))

    for some in islice(work, ahead):
        begin(some)
    while waiting:
        first, future = waiting.popleft()
        verdicts = future.result()
        for some in islice(work, 1):
            begin(some)
        yield list(zip(first, verdicts, strict=True))
