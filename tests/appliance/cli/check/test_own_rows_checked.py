"""Rows of an owner's file with proofs, claims and texts, before their real checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from lean_stand_in import lean_toolchain

from appliance.cli.check.own_rows import LENIENT, WRONG_REFERENCE, checked
from curriculum.own.columns import row_of
from verifiers.checker import Checker

LONG = "On Monday the harbour wakes slowly. Boats leave before six, and gulls follow them out past the long grey wall."
ITEMS = [
    {"item": "length", "name": "length", "target": 20},
    {"item": "words", "name": "place", "required": ["harbour"]},
]
CLAIM = "(declare-const x Int)\n(assert (= (* 7 x) 42))\n"
ROWS: list[tuple[dict[str, Any], str]] = [
    ({"question": "Which x has 7x = 42?", "claim": CLAIM, "answer": "((x 6))"}, ""),
    ({"question": "Which x has 7x = 42, then?", "claim": CLAIM, "answer": "((x 5))"}, WRONG_REFERENCE),
    ({"question": "Any x?", "claim": "(declare-const x Int)\n(frobnicate)\n"}, "its check cannot be used"),
    (
        {
            "question": "Prove it.",
            "formal_statement": "theorem target : 2 + 2 = 4 := sorry",
            "proof": "theorem target : 2 + 2 = 4 := rfl",
        },
        "",
    ),
    (
        {
            "question": "Prove this too.",
            "formal_statement": "theorem target : 2 + 2 = 5 := sorry",
            "proof": "theorem target : 2 + 2 = 5 := rfl",
        },
        WRONG_REFERENCE,
    ),
    ({"question": "Write of a morning.", "checklist": ITEMS, "solution": LONG}, ""),
    ({"question": "Write of an evening.", "checklist": ITEMS, "solution": "Too short."}, WRONG_REFERENCE),
]


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with lean_toolchain(), Checker() as made:
        yield made


def test_proofs_claims_and_texts_are_taken_only_where_their_own_answer_passes_and_no_wrong_one_does(
    checker: Checker,
) -> None:
    rows = [row_of(columns, "auto", f"f:{at}") for at, (columns, _) in enumerate(ROWS)]
    found = [reason for _, reason in checked(checker, iter(rows), lambda done: None)]
    assert [row.spec.kind for row in rows] == ["smt", "smt", "smt", "lean", "lean", "checklist", "checklist"]
    for (_, said), reason in zip(ROWS, found, strict=True):
        assert reason.startswith(said) if said else reason == "", (said, reason)
    assert LENIENT not in found
