"""A count agrees with its noun."""

from __future__ import annotations

from tables import table

from common.counting import counted


@table(
    ("count", "noun", "text"),
    [
        (1, "warning", "1 warning"),
        (0, "warning", "0 warnings"),
        (2, "try", "2 tries"),
        (1, "try", "1 try"),
        (3, "key", "3 keys"),
        (2, "branch", "2 branches"),
    ],
)
def test_a_noun_is_singular_after_one_alone(count: int, noun: str, text: str) -> None:
    assert counted(count, noun) == text
