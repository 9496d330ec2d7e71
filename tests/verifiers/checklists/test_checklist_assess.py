"""A checklist itself under scrutiny: can it be met, is it met for nothing, does an item follow from another?"""

from __future__ import annotations

from typing import Any

import pytest

from verifiers.checklists.assess import ListAssessment, assessed
from verifiers.checklists.hard import HardVerifier
from verifiers.checklists.spec import ChecklistSpec
from verifiers.contract.errors import SpecError

LENGTH = {"item": "length", "name": "length", "target": 60}
WORDS = {"item": "words", "name": "words", "required": ["evaporation", "rain"]}


def assess(*items: dict[str, Any], right: str = "", **fields: Any) -> ListAssessment:
    spec = ChecklistSpec.model_validate({"question": "Describe the water cycle.", "items": items, **fields})
    return assessed(spec, right, HardVerifier().verify)


def test_a_list_of_different_items_is_sound() -> None:
    found = assess(LENGTH, WORDS, {"item": "count", "name": "parts", "of": "paragraphs", "least": 2, "most": 2})
    assert (found.sound, found.met, found.implied, found.trivial) == (True, True, (), ())


def test_an_item_that_follows_from_another_is_found_out() -> None:
    sentence = {"item": "occurrences", "name": "rain", "phrase": "rain", "least": 1}
    found = assess(LENGTH, WORDS, sentence)
    assert (found.sound, found.implied) == (False, (("words", "rain"),))
    wide = {"item": "count", "name": "long", "of": "words", "least": 20}
    assert ("length", "long") in assess(LENGTH, WORDS, wide).implied


def test_a_list_that_keywords_in_a_row_meet_is_not_sound() -> None:
    found = assess(WORDS, {"item": "count", "name": "short", "of": "words", "most": 50})
    assert not found.sound
    assert any("keywords" in what for what in found.trivial)


def test_a_list_that_nothing_meets_is_not_sound_and_says_what_to_do() -> None:
    found = assess(LENGTH, {"item": "count", "name": "short", "of": "words", "most": 10})
    assert (found.sound, found.met) == (False, False)
    assert "--submission" in found.reason


def test_a_text_that_should_meet_the_list_and_does_not_is_the_owners_mistake() -> None:
    with pytest.raises(SpecError, match="does not"):
        assess(LENGTH, WORDS, right="Rain falls.")


def test_soft_items_alone_decide_nothing() -> None:
    spec = ChecklistSpec.model_validate({"items": [{"item": "soft", "name": "s", "point": "It is kind."}]})
    with pytest.raises(SpecError, match="hard item"):
        HardVerifier().check(spec)
