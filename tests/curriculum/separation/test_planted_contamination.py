"""A short form of `benchmarks/separation.py`: copies are stopped at the doors, and clean texts are not."""

from __future__ import annotations

from benchmarks import separation

TASKSETS = (
    "linear", "divisors", "composed_problems", "constructions", "modular_arithmetic",
    "divisibility", "tables", "calendars", "theorems", "knights",
)  # fmt: skip
LIKELY = 0.9
"""Of so few, by chance less than the bar of the benchmark may be stopped."""


def test_copies_are_stopped_and_clean_texts_are_let_through() -> None:
    figures, _ = separation.measure(TASKSETS, sealed=60, each=60)
    assert {sort: one["share"] for sort, one in figures.items() if sort in ("exact", "in a result")} == {
        "exact": 1.0,
        "in a result": 1.0,
    }
    near = ("reworded", "other numbers", "one word", "in a result, one word")
    assert {sort: one["share"] for sort, one in figures.items() if sort in near and one["share"] < LIKELY} == {}
    clean = ("generated", "own text in a result", "other tasksets, as written", "documentation")
    assert {sort: one["others"] for sort, one in figures.items() if sort in clean and one["stopped"] > 1} == {}
