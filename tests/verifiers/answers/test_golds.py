"""Expected answers as collections of problems write them are read; an equal form passes, a near miss never does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from answer_pairs import DATA

from verifiers.answers.spec import AnswerSpec
from verifiers.answers.verifier import AnswerVerifier
from verifiers.contract.errors import SpecError

VERIFIER = AnswerVerifier()
GOLDS: list[dict[str, Any]] = [json.loads(line) for line in (DATA / "golds.jsonl").read_text("utf-8").splitlines()]
COLLECTIONS = sorted({row["category"] for row in GOLDS})
UNREAD = {"olympiad-108", "sci-031"}
"""`t/RC`, which has two readings; a partial derivative."""


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_golds_of_a_collection_are_read_and_only_what_equals_them_passes(collection: str) -> None:
    unread, turned_away, accepted = set(), set(), set()
    for row in GOLDS:
        if row["category"] != collection:
            continue
        spec = AnswerSpec(expected=row["gold"], **row.get("spec", {}))
        try:
            VERIFIER.check(spec, prove=True)
        except SpecError:
            unread.add(row["id"])
            continue
        if not VERIFIER.verify(spec, row["equal"]).passed:
            turned_away.add(row["id"])
        if VERIFIER.verify(spec, row["unequal"]).passed:
            accepted.add(row["id"])
    assert accepted == set()
    assert turned_away == set()
    assert unread <= UNREAD


def test_there_are_golds_of_every_collection_and_each_has_its_own_id() -> None:
    assert len(GOLDS) == len({row["id"] for row in GOLDS}) > 300
    assert COLLECTIONS == ["AIME", "GSM8K", "MATH", "OlympiadBench", "SciBench"]
    assert len(UNREAD) / len(GOLDS) < 0.03
