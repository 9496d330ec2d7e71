"""Long texts: the instruction's constraints, the list that decides them, and the list itself under scrutiny."""

from __future__ import annotations

import pytest
from tables import table

from curriculum.checklists.instructions import GENRES, SOFT_SHARE, TARGETS, instruction
from curriculum.registry import TASKSETS, make_draft, stable_random
from verifiers.checklists.assess import assessed
from verifiers.checklists.hard import HardVerifier
from verifiers.checklists.spec import ChecklistSpec, LengthItem, SoftItem

HARD = HardVerifier()
EVERY = [(genre, level) for level in range(len(TARGETS)) for genre in GENRES]


@table(("genre", "level"), EVERY)
def test_the_reference_meets_the_list_and_what_does_no_work_does_not(genre: str, level: int) -> None:
    for seed in range(3):
        made = instruction(genre, level, stable_random(genre, level, seed))
        HARD.check(made.spec, prove=True)
        verdict = HARD.verify(made.spec, made.answer)
        assert verdict.passed, verdict.reason
        for idle in ("", *TASKSETS["long_form"].null_answers, made.text, f"Here it is.\n\n{made.text}"):
            assert not HARD.verify(made.spec, idle).passed


@pytest.mark.parametrize(("genre", "level"), [*zip(GENRES, range(len(TARGETS)), strict=True)])
def test_no_constraint_follows_from_another_and_nothing_idle_passes(genre: str, level: int) -> None:
    made = instruction(genre, level, stable_random("sound", genre, level))
    found = assessed(made.spec, made.answer, HARD.verify)
    assert (found.sound, found.implied, found.trivial) == (True, (), ()), found.reason


def test_an_instruction_has_about_five_constraints_a_length_and_little_for_the_judge() -> None:
    made = [instruction(genre, level, stable_random(genre, level)) for genre, level in EVERY]
    assert {len(one.constraints) for one in made} == {3, 4, 5}
    assert any(constraint.implicit for one in made for constraint in one.constraints)
    for one in made:
        lengths = [item for item in one.spec.hard if isinstance(item, LengthItem)]
        assert [length.weight for length in lengths] == [len(one.spec.hard) - 1]
        assert (len(one.spec.soft), one.spec.soft_share, one.spec.soft_needed) == (2, SOFT_SHARE, 0)
        assert str(lengths[0].target) in one.text
        assert all(constraint.said in one.text for constraint in one.constraints)


def test_the_score_of_a_text_that_misses_something_is_that_of_ace_rl() -> None:
    """Half of it for the constraints, half for the length; one of two required words is half of its constraint."""
    spec = ChecklistSpec.model_validate(
        {
            "credit": "items",
            "items": [
                {"item": "length", "name": "length", "target": 40, "weight": 2},
                {"item": "words", "name": "words", "required": ["anchor", "violin"]},
                {"item": "count", "name": "list", "of": "list_items", "least": 3},
            ],
        }
    )
    plain = "The anchor lies where the boats turn towards the open sea each morning. "

    def score(text: str) -> float:
        return HARD.verify(spec, text).score

    other = "Nobody asked the keeper why it had been left there in the first place. He would not have said. "
    third = "Children climb on it and look out for the ferry that comes at noon."
    assert len((plain + other + third).split()) in range(36, 49)
    assert score(plain + other + third) == pytest.approx((2 * 1 + 0.5 + 0) / 4)
    assert score(plain + other + third + "\n\n- violin\n- cup") == pytest.approx((2 * 1 + 1 + 0.5) / 4)
    assert score(plain) == pytest.approx((2 * max(0, 1 - (27 / 40 - 0.2) / 0.5) + 0.5) / 4)
    assert HARD.verify(spec, "All items of the checklist are fulfilled.").score == 0


def test_the_judged_points_are_the_voice_and_the_reader() -> None:
    draft = make_draft("long_form", 0, 0)
    assert isinstance(draft.spec, ChecklistSpec)
    assert [isinstance(item, SoftItem) for item in draft.spec.items][-2:] == [True, True]
    never = TASKSETS["long_form"].unsolvable(draft, 7)
    assert isinstance(never, ChecklistSpec)
    assert not HARD.verify(never, draft.answer).passed
