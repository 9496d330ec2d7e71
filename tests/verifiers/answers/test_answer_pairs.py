"""Nothing false gets through, and next to nothing true is turned away: over hundreds of hard pairs."""

from __future__ import annotations

import random
from functools import cache

import pytest
from answer_pairs import Pair, pairs
from tables import table

from verifiers.answers.verifier import AnswerVerifier
from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Ground

VERIFIER = AnswerVerifier()
TURNED_AWAY = {"stranger-stranger-287"}
"""True answers that are not proved today."""
CATEGORIES = sorted({(name, pair.category) for name in ("ours", "others") for pair in pairs(name)})


def passes(name: str, category: str) -> list[tuple[str, bool, bool]]:
    return [(pair.id, pair.equal, passed(pair)) for pair in pairs(name) if pair.category == category]


@cache
def passed(pair: Pair) -> bool:
    """Whether it passes; an expected answer that is no answer, such as `1, 2, ..., n`, passes nobody."""
    try:
        VERIFIER.check(pair.spec, prove=True)
    except SpecError:
        return False
    verdict = VERIFIER.verify(pair.spec, pair.prediction)
    assert (verdict.ground is Ground.PROVED) == verdict.passed
    assert verdict.reason
    return verdict.passed


@table(("name", "category"), CATEGORIES)
def test_no_false_answer_passes_and_every_true_one_but_those_known(name: str, category: str) -> None:
    found = passes(name, category)
    assert [pair for pair, equal, went in found if went and not equal] == []
    assert {pair for pair, equal, went in found if equal and not went} <= TURNED_AWAY


@pytest.mark.parametrize("name", ["ours", "others"])
def test_the_pairs_are_of_both_sorts_and_each_has_its_own_id(name: str) -> None:
    found = pairs(name)
    assert len({pair.id for pair in found}) == len(found)
    assert 0.4 <= sum(pair.equal for pair in found) / len(found) <= 0.6


def test_any_answer_to_any_question_gets_a_verdict() -> None:
    draw = random.Random(20)
    known = pairs("ours") + pairs("others")
    for _ in range(400):
        asked, answered = draw.choice(known), draw.choice(known)
        if answered.category in ("calculus", "radical") or asked.category == "calculus":
            continue
        try:
            verdict = VERIFIER.verify(asked.spec.model_copy(update={"form": "equal"}), answered.prediction)
        except SpecError:
            continue
        assert verdict.ground is not None
