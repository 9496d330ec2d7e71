"""What is asked stays at the edge of what the model can do; what is solved, or too hard, is dropped and comes back."""

from __future__ import annotations

from random import Random

import pytest

from appliance.learning.recipes.recipe import TrainingRecipe
from benchmarks.difficulty import simulated
from curriculum.contract.task import Split
from curriculum.difficulty import Difficulty, LevelState, Place, Seen, place_of
from curriculum.registry import TASKSETS
from curriculum.sealed import TaskStream

LEVELS = {"a": 3, "b": 3}
EVEN = [1.0, 1.0]


def told(rates: dict[Place, float], groups: int = 3) -> Difficulty:
    known = Difficulty()
    for _ in range(groups):
        known = known.after(Seen(place, round(16 * rate), 16) for place, rate in rates.items())
    return known


def asked(known: Difficulty, times: int = 300) -> dict[Place, int]:
    rng, counts = Random(1), dict.fromkeys((Place(name, level) for name in LEVELS for level in range(3)), 0)
    for _ in range(times):
        counts[known.choose(LEVELS, EVEN, rng)] += 1
    return counts


def test_what_is_at_the_edge_is_asked_and_what_is_solved_or_too_hard_is_not() -> None:
    solved, edge, hard = Place("a", 0), Place("a", 1), Place("a", 2)
    known = told({solved: 1.0, edge: 0.5, hard: 0.0, **{Place("b", level): 0.0 for level in range(3)}})
    counts = asked(known)
    assert counts[edge] > 0.9 * sum(counts.values())
    assert [known.state(place, 3) for place in (solved, edge, hard)] == [
        LevelState.SOLVED,
        LevelState.EDGE,
        LevelState.TOO_HARD,
    ]


def test_a_level_that_was_never_asked_is_tried_and_guessed_from_its_neighbours() -> None:
    known = told({Place("a", 0): 0.5, Place("b", 0): 0.0})
    assert known.state(Place("a", 1), 3) is LevelState.NEW
    assert asked(known)[Place("a", 1)] > 10
    assert known.rate(Place("a", 0), 3) > known.rate(Place("a", 1), 3) > known.rate(Place("a", 2), 3)
    assert known.rate(Place("b", 1), 3) < 0.1


def test_what_was_dropped_is_asked_again_after_a_while() -> None:
    place = Place("a", 0)
    known = told({place: 0.0, Place("a", 1): 0.5, Place("a", 2): 0.5, **{Place("b", n): 0.5 for n in range(3)}})
    at_once = asked(known)[place]
    for _ in range(150):
        known = known.after([])
    assert at_once == 0
    assert known.state(place, 3) is LevelState.EDGE
    assert asked(known)[place] > 5


def test_it_is_restored_from_json_and_the_same_generator_asks_the_same() -> None:
    known = told({Place("a", 0): 0.4, Place("b", 2): 0.9})
    again = Difficulty.model_validate_json(known.model_dump_json())
    assert again == known
    assert asked(again) == asked(known)


def test_a_group_that_nobody_judged_says_nothing_and_without_a_taskset_there_is_nothing_to_ask() -> None:
    assert Difficulty().after([Seen(Place("a", 0), 0, 0)]).counts == {}
    with pytest.raises(ValueError, match="no place is left"):
        Difficulty().choose({}, [], Random(0))


def test_a_stream_that_knows_the_levels_asks_those_at_the_edge_and_within_the_shares() -> None:
    name, other = "divisors", "powers"
    rates = {Place(one, level): 0.5 if (one, level) == (name, 1) else 1.0 for one in (name, other) for level in (0, 1)}
    stream = TaskStream(Split.TRAIN, 3, shares={name: 75.0, other: 75.0}, tasksets=(name, other))
    plain, chosen = stream.tasks(0, 24), stream.tasks(0, 24, told(rates))
    at_edge = [sum((task.taskset, task.level) == (name, 1) for task in tasks) for tasks in (plain, chosen)]
    assert at_edge[1] > 1.5 * at_edge[0]
    assert sum(task.taskset == name for task in chosen) <= 18
    assert stream.tasks(0, 24, told(rates)) == chosen


def test_a_level_of_which_half_the_topics_are_solved_and_half_are_never_solved_is_not_at_the_edge() -> None:
    topics = TASKSETS["divisibility"].topics
    rates = {Place("divisibility", 0, topic): float(at % 2) for at, topic in enumerate(topics)}
    edge = {Place("divisibility", 1, topic): 0.5 for topic in topics}
    known = told({**rates, **edge}, groups=6)
    assert known.level_states({"divisibility": 2}) == {
        ("divisibility", 0): LevelState.MIXED,
        ("divisibility", 1): LevelState.EDGE,
    }
    rng = Random(2)
    chosen = [known.choose({"divisibility": 2}, [1.0], rng, topics={"divisibility": topics}) for _ in range(200)]
    assert sum(place.level for place in chosen) > 190


def test_a_stream_asks_the_topic_at_the_edge_of_a_level() -> None:
    name, topic = "arithmetic", "quotient"
    places = (Place(name, level, one) for level in range(3) for one in TASKSETS[name].topics)
    known = told({place: 0.5 if place[1:] == (1, topic) else 1.0 for place in places}, groups=8)
    tasks = TaskStream(Split.TRAIN, 5, tasksets=(name,)).tasks(0, 24, known)
    assert sum((task.level, task.topic) == (1, topic) for task in tasks) > 20


def test_a_topic_never_asked_is_guessed_from_the_others_of_its_level() -> None:
    known = told({Place("a", 0, "x"): 1.0, Place("a", 1, "x"): 0.0}, groups=9)
    assert known.rate(Place("a", 0, "y"), 2) > 0.9
    assert known.rate(Place("a", 1, "y"), 2) < 0.1


@pytest.mark.parametrize(
    "place",
    [Place("a", 0), Place("own/sums", 12), Place("own/sums", 4, "shell/1 scripts"), Place("a", 3, "log reports")],
)
def test_a_place_is_read_from_its_key(place: Place) -> None:
    assert place_of(place.key) == place


def test_adaptive_levels_need_the_steps_before() -> None:
    with pytest.raises(ValueError, match="max_staleness = 0"):
        TrainingRecipe(difficulty="adaptive", max_staleness=1)


def test_in_a_simulated_training_most_of_what_is_asked_lies_within_the_band() -> None:
    uniform, adaptive = (simulated(3, 25, adaptive=adaptive) for adaptive in (False, True))
    assert adaptive["inside"] > 1.8 * uniform["inside"]
    assert adaptive["groups"] > 1.3 * uniform["groups"]


def test_a_night_begins_with_what_the_last_one_knew_faded_by_half() -> None:
    known = told({Place("a", 0): 1.0, Place("a", 1): 0.5})
    begun = known.overnight()
    assert begun.step == 0
    for key, counts in known.counts.items():
        left = begun.counts[key]
        assert 0.4 < (left.passed + left.failed) / sum(counts.at(known.step)) < 0.6
    assert begun.rate(Place("a", 0), 3) > begun.rate(Place("a", 1), 3)
    for _ in range(20):
        begun = begun.overnight()
    assert begun == Difficulty()


def test_a_level_at_the_edge_of_which_all_was_asked_is_left_out() -> None:
    names = ("counting", "arithmetic", "divisors")
    met = {f"choose:{of},{take}" for of in range(8, 100) for take in range(2, 7)}
    edge = {Place(name, level, topic) for name in names[1:] for level in range(3) for topic in TASKSETS[name].topics}
    rates = {**dict.fromkeys(edge, 0.5), Place("counting", 0, "choose"): 0.5}
    known = told({**rates, Place("counting", 1, "choose"): 0.0, Place("counting", 2, "choose"): 0.0}, groups=20)
    stream = TaskStream(Split.TRAIN, 7, frozenset(met), dict.fromkeys(names, 40.0), names)
    for step in range(8):
        tasks = stream.tasks(step, 24, known)
        assert stream.tasks(step, 12, known) == tasks[:12]
        assert not met & {task.key for task in tasks}
