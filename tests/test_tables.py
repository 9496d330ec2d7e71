"""A table of rows is one test, which names every row that is wrong."""

from __future__ import annotations

import inspect

import pytest
from tables import table


def test_every_row_is_run_and_each_wrong_one_is_named() -> None:
    seen: list[tuple[int, str]] = []

    @table(("number", "text"), [(1, "a"), pytest.param(2, "b", id="second"), (3, "c")])
    def asked(number: int, text: str, tmp: str) -> None:
        seen.append((number, text + tmp))
        assert number == 1
        pytest.fail("never")

    assert [*inspect.signature(asked).parameters] == ["tmp"]
    with pytest.raises(ExceptionGroup, match="3 of 3 rows are wrong") as met:
        asked(tmp="x")
    assert seen == [(1, "ax"), (2, "bx"), (3, "cx")]
    notes = [error.__notes__ for error in met.value.exceptions]
    assert notes == [["row 0: number=1, text='a'"], ["row 1: second"], ["row 2: number=3, text='c'"]]


def test_a_table_without_a_wrong_row_passes_and_one_value_needs_no_tuple() -> None:
    seen = []
    table("pair", [(1, 2), (3, 4)], ids=["one", "two"])(lambda pair: seen.append(pair))()
    assert seen == [(1, 2), (3, 4)]
    table("a", range(3))(table("b", range(2))(lambda a, b: seen.append((a, b))))()
    assert len(seen) == 8


def test_marks_of_a_row_and_a_row_of_another_length_are_refused() -> None:
    for rows in ([pytest.param(1, 2, marks=pytest.mark.slow)], [(1, 2, 3)]):
        with pytest.raises(AssertionError):
            table(("a", "b"), rows)
