"""Answers of the tasksets of mathematics, found again from the words of the question by another way: by trying all."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random

from tables import table

from benchmarks.brute_force import BY_TRYING
from curriculum.contract.taskset import TaskDraft
from curriculum.contract.topics import TopicTaskset
from curriculum.names import PLACES
from curriculum.registry import TASKSETS, make_draft
from curriculum.tasksets.exact_arithmetic import linear, written

EACH = 6
"""Questions of each topic."""
MATHEMATICS = ("numbers", "hard_mathematics")


def questions(topic: str) -> list[TaskDraft]:
    """The first of this topic, from the lowest levels up."""
    name = next(name for name, taskset in TASKSETS.items() if topic in taskset.topics)
    made = (make_draft(name, seed % 3, seed) for seed in range(10_000))
    return [draft for _, draft in zip(range(EACH), (one for one in made if one.topic == topic), strict=False)]


@table("topic", BY_TRYING)
def test_an_answer_is_what_trying_everything_finds(topic: str) -> None:
    checked = 0
    for draft in questions(topic):
        found = BY_TRYING[topic](draft.messages[-1].text)
        if found is not None:
            assert str(found) == draft.answer, draft.messages[-1].text
            checked += 1
    assert checked


def test_terms_are_written_as_a_person_writes_them() -> None:
    assert linear((1, -1, 1), ("x", "y", "")) == "x - y + 1"
    assert linear((0, -1, Fraction(1, 2)), ("x", "", "z")) == "-1 + (1/2)z"
    assert written([Fraction(-1, 2), 1, 0, -1]) == "-x^3 + x - (1/2)"
    assert written([1]) == "1"
    assert written([0, 0]) == linear((0,), ("x",)) == "0"


@table("name", [name for domain in MATHEMATICS for name in PLACES[domain]])
def test_no_answer_is_right_for_most_of_what_a_topic_asks(name: str) -> None:
    """As certification demands of each topic and level: whoever knows a topic's words alone is rarely right."""
    taskset = TASKSETS[name]
    assert isinstance(taskset, TopicTaskset)
    for topic, make in taskset.makers.items():
        for level in range(taskset.level_count):
            answers = Counter(make(level, Random(seed)).answer for seed in range(60))
            assert answers.most_common(1)[0][1] <= 24, (topic, level, answers.most_common(3))
