"""Many checks at once, told in the order of the pairs."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from tables import table

from appliance.cli.check import work as check_work
from appliance.cli.check.pairs import PairItem
from appliance.cli.check.work import batches, judged
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.exact.spec import ExactSpec
from verifiers.registry.spec import Spec

SPEC = ExactSpec(expected="1")


def items(count: int, text: str = "1") -> list[PairItem]:
    return [PairItem(number, SPEC, f"{text} {number}") for number in range(count)]


def verdict(submission: str) -> Verdict:
    return Verdict(outcome=Outcome.FAIL, score=0, reason=submission, verifier="exact", version="1", seconds=0)


def verdicts(pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
    return [verdict(submission) for _, submission in pairs]


@table("jobs", [1, 2, 7])
@table("count", [0, 1, 15, 16, 17, 1000])
def test_every_pair_gets_its_own_verdict_in_order(jobs: int, count: int) -> None:
    with judged(items(count), verdicts, at_once=jobs, batch=16) as found:
        reasons = [(item.id, verdict.reason) for some in found for item, verdict in some]
    assert reasons == [(number, f"1 {number}") for number in range(count)]


def test_as_many_run_at_once_as_were_asked_for() -> None:
    meeting = threading.Barrier(3)

    def ask(pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
        meeting.wait(timeout=120)
        return verdicts(pairs)

    with judged(items(6), ask, at_once=3, batch=1) as found:
        assert sum(len(some) for some in found) == 6


def test_a_slow_pair_holds_up_what_is_told_and_not_what_is_checked() -> None:
    others = threading.Event()
    asked = []

    def ask(pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
        asked.append(pairs[0][1])
        if pairs[0][1] == "1 0":
            assert others.wait(timeout=120)
        if len(asked) == 4:
            others.set()
        return verdicts(pairs)

    with judged(items(4), ask, at_once=2, batch=1) as found:
        assert [some[0][0].id for some in found] == [0, 1, 2, 3]


def test_only_a_bounded_number_is_under_way_however_many_there_are() -> None:
    taken = []

    def endless() -> object:
        for item in items(10_000):
            taken.append(item.id)
            yield item

    with judged(endless(), verdicts, at_once=2, batch=1) as found:
        next(found)
        assert len(taken) <= 2 * check_work.AHEAD + 2


def test_leaving_early_waits_for_nothing() -> None:
    held, waited = threading.Event(), []

    def ask(pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
        if pairs[0][1] != "1 0":
            held.wait(timeout=120)
            waited.append(pairs)
        return verdicts(pairs)

    try:
        with judged(items(50), ask, at_once=2, batch=1) as found:
            next(found)
        assert waited == []
    finally:
        held.set()


def test_what_the_checker_raises_is_raised() -> None:
    def ask(pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
        raise OSError("no broker")

    with pytest.raises(OSError, match="no broker"), judged(items(3), ask, at_once=2) as found:
        list(found)


def test_long_submissions_go_in_small_batches() -> None:
    long = [PairItem(number, SPEC, "x" * (check_work.BATCH_TEXT // 2)) for number in range(5)]
    assert [len(some) for some in batches(long, 16)] == [2, 2, 1]
    assert [len(some) for some in batches([PairItem(0, SPEC, "x" * (2 * check_work.BATCH_TEXT))], 16)] == [1]
