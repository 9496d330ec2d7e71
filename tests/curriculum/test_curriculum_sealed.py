"""Sealed sets are balanced and distinct, and neither streams nor demonstrations touch them."""

from __future__ import annotations

import hashlib
from collections import Counter
from random import Random

import pytest
from calculators import FAMILIES, OPERATIONS, numbers_of, topic_of
from hypothesis import given, settings
from hypothesis import strategies as st

from curriculum import seeds
from curriculum.contract.errors import CurriculumError, ExhaustedError
from curriculum.contract.task import Split
from curriculum.demonstrations import demonstration
from curriculum.families.phrased import fill
from curriculum.registry import CALCULATORS, key_of, make_draft
from curriculum.sealed import TaskStream, draw_task, sealed_set

SEALED = sealed_set(512, seed=0)


def test_sealed_questions_differ_in_id_prompt_and_substance() -> None:
    assert len({task.id for task in SEALED.tasks}) == 512
    assert len({task.question for task in SEALED.tasks}) == 512
    assert len(SEALED.questions) == 512
    assert {task.split for task in SEALED.tasks} == {Split.SEALED}


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 200), st.integers(0, 2**32))
def test_operations_are_asked_equally_often_as_far_as_their_number_allows(items: int, seed: int) -> None:
    counts = Counter(topic_of(task) for task in sealed_set(items, seed).tasks)
    assert max(counts.values()) - min(counts[name] for name in OPERATIONS) <= 1


def test_levels_are_asked_equally_often_within_an_operation() -> None:
    counts = Counter((topic_of(task), task.level) for task in SEALED.tasks)
    for name, family in FAMILIES.items():
        for topic in family.topics:
            shares = [counts[topic, level] for level in range(family.level_count)]
            assert max(shares) - min(shares) <= 1, name


def test_equal_seeds_give_the_same_set_and_another_seed_another_digest() -> None:
    assert sealed_set(512, seed=0).digest == SEALED.digest
    assert sealed_set(512, seed=1).digest != SEALED.digest
    assert sealed_set(511, seed=0).digest != SEALED.digest


def test_the_questions_are_those_that_were_published() -> None:
    def published(divided: bool) -> str:
        questions = "\n".join(task.question for task in sealed_set(32, seed=7, divided=divided).tasks)
        return hashlib.sha256(questions.encode()).hexdigest()

    assert published(True) == "c26a8abb4cc7e3941eb003b04bdf4ad8aa0059b2d00712f52b947ec3eebb56d0"
    before_questions_belonged_to_splits = "bcd42d602e7b8731b724951936b4225c5613aafba95b88ca67bf2aa1101da08d"
    assert published(False) == before_questions_belonged_to_splits


def test_the_description_says_how_to_make_the_set_again() -> None:
    description = SEALED.description
    assert description["items"] == 512
    assert description["seed"] == 0
    assert sum(count for name, count in description.items() if name.startswith("family ")) == 512  # type: ignore[misc]
    assert "powers@1" in str(description["versions"])


def test_levels_can_be_chosen() -> None:
    assert {task.level for task in sealed_set(64, 0, levels=[1]).tasks} == {1}
    assert "digits" not in {task.taskset for task in sealed_set(64, 0, levels=[2]).tasks}


def test_other_operations_fill_up_when_one_has_no_more_to_ask() -> None:
    large = sealed_set(3000, 0, levels=[0])
    counts = Counter(topic_of(task) for task in large.tasks)
    assert counts["choose"] <= 43 * 3 < counts["add"]
    assert len(large.questions) == 3000


@pytest.mark.parametrize(("items", "levels"), [(0, None), (-3, None), (8, [9]), (8, [])])
def test_a_set_that_cannot_be_is_refused_with_a_hint(items: int, levels: list[int] | None) -> None:
    with pytest.raises(CurriculumError) as refused:
        sealed_set(items, 0, levels)
    assert refused.value.hint


@pytest.mark.parametrize("split", [Split.TRAIN, Split.VALIDATION])
def test_a_stream_never_asks_what_is_sealed_in_any_words(split: Split) -> None:
    stream = TaskStream(split, seed=3)
    asked = {key_of(task) for step in range(120) for task in stream.tasks(step, 24)}
    assert {seeds.split_of_question(key) for key in asked} == {split}
    assert not asked & SEALED.questions
    rng, drawn = Random(3), set()
    while len(drawn) < len(asked):
        name = rng.choice(CALCULATORS)
        drawn.add(make_draft(name, rng.randrange(2), seeds.draw(split, rng)).key)
    assert drawn & SEALED.questions, "seeds that are kept apart alone would let them meet"


def test_a_stream_goes_on_at_any_step_as_if_it_had_never_stopped() -> None:
    stream = TaskStream(Split.TRAIN, seed=5, exclude=SEALED.questions)
    whole = [stream.tasks(step, 8) for step in range(6)]
    resumed = TaskStream(Split.TRAIN, seed=5, exclude=SEALED.questions)
    assert [resumed.tasks(step, 8) for step in (4, 5)] == whole[4:]
    assert len({task.id for step in whole for task in step}) > 40
    assert all(task.split is Split.TRAIN for step in whole for task in step)


def test_a_stream_draws_operations_uniformly_and_never_twice_the_same_in_a_step() -> None:
    tasks = TaskStream(Split.TRAIN, seed=1).tasks(0, 3200)
    counts = Counter(topic_of(task) for task in tasks if topic_of(task) != "choose")
    assert all(140 < counts[name] < 290 for name in OPERATIONS if name != "choose")
    assert len({task.id for task in tasks}) == 3200


class Everything(set[str]):
    """Holds every question there is."""

    def __contains__(self, question: object) -> bool:
        return True


def test_a_stream_without_anything_left_to_ask_says_so() -> None:
    with pytest.raises(ExhaustedError) as refused:
        draw_task(Split.TRAIN, Random(0), Everything())
    assert "exclude fewer" in refused.value.hint


def test_demonstrations_choose_rightly_as_often_as_told() -> None:
    rng = Random(0)
    shown = [demonstration(rng, right_choice=0.6, fail_first=0.5, exclude=SEALED.questions) for _ in range(3000)]
    assert 0.57 < sum(one.right for one in shown) / 3000 < 0.63
    assert 0.47 < sum(len(one.calls) > 1 for one in shown) / 3000 < 0.53
    assert all(one.right == (one.topic == topic_of(one.task)) for one in shown)
    assert not {key_of(one.task) for one in shown} & SEALED.questions
    assert {one.task.split for one in shown} == {Split.TRAIN}


@pytest.mark.parametrize("right_choice", [0.0, 1.0])
def test_a_demonstration_calls_one_operation_with_the_numbers_of_the_question(right_choice: float) -> None:
    rng = Random(9)
    for _ in range(300):
        one = demonstration(rng, right_choice=right_choice, fail_first=1.0)
        numbers = numbers_of(one.task)
        assert one.calls[-1] == fill(OPERATIONS[one.topic].code, numbers)
        beginners = {fill(code, numbers) for code in OPERATIONS[one.topic].beginner}
        assert set(one.calls[:-1]) <= beginners
        assert len(one.calls) in (2, 3)
        assert one.right == bool(right_choice)
        assert OPERATIONS[one.topic].arity == len(numbers)


def test_a_clean_demonstration_is_a_single_call() -> None:
    assert len(demonstration(Random(1), right_choice=1.0, fail_first=0.0).calls) == 1
