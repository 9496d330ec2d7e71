"""Planning tokens are those of moves that correct solutions share; they get more credit, and nobody else gets less."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from learning_builders import judged
from torch import Tensor

from appliance.learning.batches import sample_each
from appliance.learning.signal import planning
from appliance.learning.signal.planning import credited, find_plans, planning_tokens, semantic_entropy, strategic_grams
from appliance.records.rollouts import Message, Role, Rollout, WeightSpan

MOVE = (1, 2, 3)
"""What every correct solution says at some place."""


def apart(ids: Tensor) -> Tensor:
    """An embedding in which no two tokens have anything in common."""
    return torch.eye(64)[ids]


def rollout(name: str, *messages: tuple[int, ...]) -> Rollout:
    """The policy model says `messages`, and hears (1, 2, 3, 4) after each."""
    nodes = [Message(parent=None, role=Role.USER, ids=(60, 61), sampled=False)]
    for ids in messages:
        said = (WeightSpan(version="w", start=0, end=len(ids)),)
        at = len(nodes) - 1
        own = Message(parent=at, role=Role.ASSISTANT, ids=ids, sampled=True, logprobs=(-1.0,) * len(ids), weights=said)
        nodes += [own, Message(parent=at + 1, role=Role.TOOL, ids=(1, 2, 3, 4), sampled=False)]
    return judged().rollout.model_copy(update={"id": name, "nodes": tuple(nodes)})


def test_a_move_of_all_solutions_is_strategic_and_what_one_alone_says_is_not() -> None:
    solutions = [[(10 + i, *MOVE, 20 + i)] for i in range(4)]
    assert strategic_grams(solutions, apart) == {MOVE}


def test_of_many_moves_the_fifth_that_is_in_most_solutions_is_strategic() -> None:
    """Ten moves that have nothing in common, in 2 to 11 of 11 solutions: the two most frequent stay."""
    moves = [(3 * i, 3 * i + 1, 3 * i + 2) for i in range(10)]
    solutions = [[move for i, move in enumerate(moves) if i + 2 > number] for number in range(11)]
    assert strategic_grams(solutions, apart) == {moves[9], moves[8]}


def test_two_ways_to_say_a_move_are_one_cluster_whose_solutions_count_together() -> None:
    """4 and 5 mean the same as 1 and 2. Each way is in two solutions of five, together they are in four; a move that is
    in three alone does not make the fifth of the three clusters."""
    alike = torch.eye(64)
    alike[4], alike[5] = alike[1], alike[2]
    one, other, rival, third = (1, 2, 3), (4, 5, 3), (7, 8, 9), (11, 12, 13)
    solutions = [[one, rival, third], [one, rival, third], [other, rival], [other], [(30, 31, 32)]]
    assert strategic_grams(solutions, lambda ids: alike[ids]) == {one, other}
    assert strategic_grams(solutions, apart) == {rival}


def test_semantic_entropy_by_hand() -> None:
    """Three of one move and one of another: -(.75 ln .75 + .25 ln .25); of one move alone, and of none, it is 0."""
    other = (7, 8, 9)
    told = [[(*MOVE, *MOVE)], [MOVE, (5, *other)]]
    assert semantic_entropy(told, {MOVE, other}) == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    assert semantic_entropy(told, {MOVE}) == semantic_entropy([], {MOVE}) == semantic_entropy(told, set()) == 0


def test_planning_tokens_are_the_policy_models_own_and_get_a_fifth_more() -> None:
    """The tool says the move as well, and the move that begins in one message and ends in the next is none."""
    (made,) = sample_each(rollout("a", (10, *MOVE, 11), (1, 2)), 1.0)
    planned = planning_tokens(made, {MOVE})
    assert [one for one, plans in zip(made.ids, planned, strict=True) if plans] == [1, 2, 3]
    assert planned[3:6] == (True, True, True)
    (other,) = sample_each(rollout("a", (10, *MOVE, 11)), -1.0)
    praised, blamed = credited(made, {MOVE}, 0.2), credited(other, {MOVE}, 0.2)
    assert praised.advantages[:7] == pytest.approx((0, 0, 1.0, 1.2, 1.2, 1.2, 1.0))
    assert blamed.advantages[:7] == pytest.approx((0, 0, -1.0, -0.8, -0.8, -0.8, -1.0))
    assert replace(praised, advantages=made.advantages) == made


@given(st.lists(st.lists(st.integers(0, 5), max_size=9), min_size=1, max_size=4), st.floats(-2, 2), st.floats(0, 1))
def test_credit_never_falls_and_is_given_to_trained_tokens_only(
    messages: list[list[int]], advantage: float, alpha: float
) -> None:
    (told,) = sample_each(rollout("a", *map(tuple, messages)), advantage)
    grams = strategic_grams([[tuple(message) for message in messages]] * 2, apart)
    raised = credited(told, grams, alpha)
    planned = planning_tokens(told, grams)
    assert all(own or not plans for own, plans in zip(told.mask, planned, strict=True))
    for before, after, plans in zip(told.advantages, raised.advantages, planned, strict=True):
        assert after == (before + alpha * abs(before) if plans else before)


def test_plans_come_from_correct_solutions_and_entropy_from_all() -> None:
    wrong_move = (40, 41, 42)
    right = [rollout(f"r{i}", (10 + i, *MOVE)) for i in range(3)]
    wrong = [rollout(f"w{i}", (*wrong_move, *MOVE)) for i in range(3)]
    found = find_plans(right, wrong, apart, Random(0))
    assert found.grams == {MOVE}
    assert found.entropy == 0.0
    assert find_plans([], wrong, apart, Random(0)).grams == frozenset()


def test_the_work_is_bounded_however_long_the_rollouts_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a bound of 20 tokens only as many are read, and never more than 5 grams are compared."""
    compared: list[int] = []

    def embed(ids: Tensor) -> Tensor:
        compared.append(len(ids))
        return apart(ids)

    monkeypatch.setattr(planning, "MOST_TOKENS", 20)
    monkeypatch.setattr(planning, "MOST_GRAMS", 5)
    long = [rollout(f"r{i}", tuple(range(50))) for i in range(2)]
    assert find_plans(long, [], embed, Random(0)).grams == frozenset()
    assert compared == []
    monkeypatch.setattr(planning, "MOST_TOKENS", 100)
    assert find_plans(long, [], embed, Random(0)).grams == {(0, 1, 2), (0, 1, 2, 3)}
    assert compared[0] <= 5 * 5
