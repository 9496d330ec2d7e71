"""Composed problems and constructions: their labels, found again from the words, and what a script cannot solve."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations, product
from math import factorial, prod
from random import Random

import pytest
from tables import table

from benchmarks.composed_answers import by_period
from benchmarks.construction_answers import rotations
from benchmarks.hard_mathematics import answer_of, same, solved
from curriculum.contract.topics import TopicTaskset
from curriculum.tasksets import huge_numbers as huge
from curriculum.tasksets.composed.problems import COMPOSED_BY_HAND, COMPOSED_PROBLEMS, COUNTS, STEPS
from curriculum.tasksets.composed.steps import ValueKind
from curriculum.tasksets.constructions.bounds import distinct_parts, without_ratios
from curriculum.tasksets.constructions.problems import CONSTRUCTIONS, CONSTRUCTIONS_BY_HAND
from curriculum.tasksets.constructions.symmetry import SOLIDS

HARD = (COMPOSED_PROBLEMS, COMPOSED_BY_HAND, CONSTRUCTIONS, CONSTRUCTIONS_BY_HAND)


@pytest.mark.parametrize("each", [2, pytest.param(30, marks=pytest.mark.slow)])
@pytest.mark.parametrize("taskset", HARD, ids=lambda taskset: taskset.name)
def test_a_label_is_what_is_read_from_the_words_and_found_by_other_means(taskset: TopicTaskset, each: int) -> None:
    for topic, make in taskset.makers.items():
        for level in range(taskset.level_count):
            for seed in range(each):
                item = make(level, Random(f"{topic} {level} {seed}"))
                assert same(topic, answer_of(topic, item.text), item.answer), (topic, level, item.text)


@pytest.mark.parametrize("taskset", [COMPOSED_PROBLEMS, CONSTRUCTIONS], ids=lambda taskset: taskset.name)
def test_scripts_solve_at_most_a_tenth_of_the_top_level(taskset: TopicTaskset) -> None:
    top, results = taskset.level_count - 1, []
    for topic, make in taskset.makers.items():
        results += [solved(topic, make(top, Random(seed))) for seed in range(5)]
    assert sum(results) <= len(results) / 10


def test_scripts_solve_what_is_small() -> None:
    results = Counter[str]()
    for topic, make in CONSTRUCTIONS.makers.items():
        results[topic] += sum(solved(topic, make(0, Random(seed))) for seed in range(5))
    assert sum(count > 0 for count in results.values()) > len(results) / 2, results
    few = [COMPOSED_PROBLEMS.makers["composed_set"](1, Random(seed)) for seed in range(9)]
    assert all(solved("composed_set", item) for item in few)


@pytest.mark.parametrize("taskset", [COMPOSED_PROBLEMS, COMPOSED_BY_HAND], ids=lambda taskset: taskset.name)
def test_a_composed_problem_has_the_steps_of_its_level_and_names_no_result_twice(taskset: TopicTaskset) -> None:
    for make in taskset.makers.values():
        for level, count in enumerate(COUNTS[taskset is COMPOSED_BY_HAND]):
            text = make(level, Random(level)).text
            names = re.findall(r"(?:Let|Write) (\w)(?:\(x\))? (?:be|for|=) ", text)
            assert len(names) == len(set(names)) == count, text
            assert all(len(re.findall(rf"(?<![\w.]){name}(?!\w)", text)) > 1 for name in names), text


def test_every_step_is_taken() -> None:
    seen = Counter(kind for step in STEPS for kind in (step.takes, step.gives))
    assert set(seen) == set(ValueKind)
    assert len(STEPS) == len(set(STEPS)) > 60


@table("levels, modulus", [((2, 3, 2), 7), ((6, 2, 3), 8), ((10, 5), 1000), ((12, 3), 1), ((2, 10, 3), 96)])
def test_a_tower_is_what_its_value_leaves(levels: tuple[int, ...], modulus: int) -> None:
    value = 1
    for base in reversed(levels):
        value = base**value
    assert huge.tower(levels, modulus) == by_period(levels, modulus) == value % modulus


def test_sums_and_counts_beyond_counting_agree_with_counting() -> None:
    for a, b, m, n in product((0, 3, 17), (0, 5), (4, 9), (1, 7, 30)):
        assert huge.floor_sum(n, m, a, b) == sum((a * k + b) // m for k in range(n))
    for last, divisor in product((3, 7, 11), (3, 5)):
        subsets = [some for size in range(last + 1) for some in combinations(range(1, last + 1), size)]
        good = sum(sum(some) % divisor == 0 for some in subsets)
        assert huge.subsets_divisible(last, divisor, 10**9) == good
    for total in range(1, 20):
        assert huge.with_digit_sum(3_217, total) == sum(sum(map(int, str(n))) == total for n in range(3_217))
    assert [n for n in range(200) if huge.is_prime(n)] == [n for n in range(2, 200) if all(n % d for d in range(2, n))]
    assert not huge.is_prime(3_215_031_751), "a strong pseudoprime to the bases 2, 3, 5 and 7"
    assert huge.factorial_valuation(30, 3) == max(k for k in range(30) if factorial(30) % 3**k == 0)
    fibonacci = [0, 1]
    while len(fibonacci) < 60:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    assert [huge.distant_term((1, 1), (0, 1), n, 10**20) for n in range(60)] == fibonacci


def test_the_bounds_are_those_of_trying_everything() -> None:
    for low, high, ratio, steps in ((1, 14, 2, 1), (2, 15, 2, 2), (1, 16, 3, 1), (3, 16, 2, 1)):
        factors = {ratio**step for step in range(1, steps + 1)}
        numbers = range(low, high + 1)
        good = (
            size
            for size in range(len(numbers), 0, -1)
            for some in combinations(numbers, size)
            if not any(a * factor == b for a, b in combinations(some, 2) for factor in factors)
        )
        assert without_ratios(low, high, ratio, steps) == next(good)
    for total, least in product(range(5, 40), (2, 3, 5)):
        if total >= least:
            best = {0: 1}
            for part in range(least, total + 1):
                for before, value in list(best.items()):
                    best[before + part] = max(best.get(before + part, 0), value * part)
            parts = distinct_parts(total, least)
            assert (sum(parts), len(set(parts)), prod(parts)) == (total, len(parts), best[total]), (total, least)


def test_the_rotations_of_a_solid_are_those_of_its_corners() -> None:
    for what, group in SOLIDS.items():
        parts, solid = what.split()[0], what.split()[-1]
        moves = rotations(solid, parts)
        assert len(set(moves)) == sum(times for times, _ in group)
        places = {sum(length * number for length, number in cycles) for _, cycles in group}
        assert places == {len(moves[0])}
