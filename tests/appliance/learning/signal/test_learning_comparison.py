"""Two models are compared on the items that both were judged on, and on no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.learning.signal.comparison import by_family, compare, errors_in_correct
from appliance.records.evaluations import ItemResult, ModelResults


def item(task: str, passed: bool | None, calls: int = 1, failed: int = 0, family: str = "gcd") -> ItemResult:
    return ItemResult(task=task, family=family, passed=passed, calls=calls, failed_calls=failed)


def results(*items: ItemResult) -> ModelResults:
    return ModelResults(weights="w", temperature=1.0, items=items, tokens=1, seconds=1.0)


verdicts = st.sampled_from([True, False, None])


@given(st.lists(st.tuples(verdicts, verdicts), min_size=1, max_size=60))
def test_the_counts_are_those_of_the_table_and_swapping_sides_mirrors_them(
    pairs: list[tuple[bool | None, bool | None]],
) -> None:
    ours = results(*(item(str(i), a) for i, (a, _) in enumerate(pairs)))
    theirs = results(*(item(str(i), b) for i, (_, b) in reversed(list(enumerate(pairs)))))
    if all(None in pair for pair in pairs):
        with pytest.raises(ValueError, match="none of"):
            compare(ours, theirs)
        return
    table, mirror = compare(ours, theirs), compare(theirs, ours)
    expected = tuple(pairs.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False)))
    assert (table.both, table.gained, table.lost, table.neither) == expected
    assert table.excluded == sum(None in pair for pair in pairs)
    assert table.items + table.excluded == len(pairs)
    assert table.gain.value == pytest.approx(table.candidate.value - table.champion.value)
    assert table.gain.low <= table.gain.value <= table.gain.high
    assert (mirror.gain.low, mirror.gain.high) == pytest.approx((-table.gain.high, -table.gain.low), abs=1e-9)
    assert table.candidate.low <= table.candidate.value <= table.candidate.high


def test_an_infrastructure_failure_on_one_side_excludes_the_item_for_both() -> None:
    table = compare(results(item("a", True), item("b", None)), results(item("a", False), item("b", True)))
    assert (table.items, table.excluded, table.champion.value) == (1, 1, 0.0)


def test_agreement_on_many_items_makes_a_narrower_interval_than_the_two_shares_would() -> None:
    ours = results(*(item(str(i), i < 300) for i in range(400)))
    theirs = results(*(item(str(i), i < 280) for i in range(400)))
    table = compare(ours, theirs)
    assert table.gain.low > 0
    assert table.candidate.low < table.champion.high


def test_errors_are_counted_inside_right_answers_only() -> None:
    items = [item("a", True, calls=3, failed=1), item("b", True, calls=1), item("c", False, calls=4, failed=4)]
    assert errors_in_correct(items) == 0.25
    assert errors_in_correct([item("c", False, calls=4, failed=4), item("d", True, calls=0)]) == 0.0
    table = compare(results(*items), results(*(item(one.task, True) for one in items)))
    assert (table.candidate_errors, table.champion_errors) == (0.25, 0.0)


def test_families_are_compared_each_on_its_own() -> None:
    ours = results(item("a", True), item("b", False, family="lcm"), item("c", None, family="mod"))
    theirs = results(item("a", False), item("b", True, family="lcm"), item("c", True, family="mod"))
    tables = by_family(ours, theirs)
    assert list(tables) == ["gcd", "lcm"]
    assert (tables["gcd"].gained, tables["lcm"].lost) == (1, 1)


def test_items_of_one_model_only_or_answered_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="2 items were answered by one model only"):
        compare(results(item("a", True)), results(item("b", True)))
    with pytest.raises(ValueError, match="more than once"):
        compare(results(item("a", True), item("a", True)), results(item("a", True)))
