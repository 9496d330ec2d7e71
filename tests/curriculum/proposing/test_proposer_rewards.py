"""What proposals earn, by numbers that were worked out by hand, and what is remembered of them."""

from __future__ import annotations

import math

import pytest
from written import BODY, program

from curriculum.contract.task import Task
from curriculum.proposing.kind import Provers
from curriculum.proposing.near_duplicates import NearDuplicates, NoveltyMemory
from curriculum.proposing.refusals import RefusedProposal
from curriculum.proposing.registry import KINDS
from curriculum.proposing.rewards import advantages, reward

BY_HAND = {
    "azr": {(0, 4): 0.0, (1, 4): 0.75, (2, 4): 0.5, (3, 4): 0.25, (4, 4): 0.0},
    "variance": {(2, 4): 1.0, (1, 4): math.exp(-0.1953125), (0, 4): math.exp(-3.125), (4, 4): math.exp(-3.125)},
    "min": {(0, 4): 0.0, (1, 4): 0.25, (2, 4): 0.5, (3, 4): 0.25, (4, 4): 0.0},
    "4p1p": {(0, 4): 0.0, (1, 4): 0.75, (2, 4): 1.0, (3, 4): 0.75, (4, 4): 0.0},
}


@pytest.mark.parametrize("name", BY_HAND)
def test_rewards_are_those_worked_out_by_hand(name: str) -> None:
    for (passed, judged), worth in BY_HAND[name].items():
        assert reward(name, passed, judged) == pytest.approx(worth)
    assert reward(name, 0, 0) == 0.0
    with pytest.raises(ValueError, match="impossible counts"):
        reward(name, 5, 4)


def test_similarity_lowers_the_reward_of_r_zero_alone() -> None:
    assert reward("min", 2, 4, 0.3) == pytest.approx(0.2)
    assert reward("min", 1, 4, 0.3) == 0.0
    assert reward("azr", 1, 4, 0.3) == 0.75


def test_proposers_are_compared_across_the_problems_of_a_step() -> None:
    assert advantages([1.0, 0.0, 0.0, 1.0]) == pytest.approx([1.0, -1.0, -1.0, 1.0])
    assert advantages([0.75, 0.25, 0.5]) == pytest.approx([1.224745, -1.224745, 0.0], abs=1e-6)
    assert advantages([0.5, 0.5]) == [0.0, 0.0]
    assert advantages([]) == []


def test_what_was_proposed_is_known_also_after_a_restart(provers: Provers) -> None:
    made = KINDS["deduction"].make(program(), provers)
    memory = NoveltyMemory()
    assert memory.require_new(made) == 0.0
    memory.add(made.task)
    again = NoveltyMemory([Task.model_validate(made.task.record())])
    renamed = KINDS["deduction"].make(program(BODY.replace("out", "found")), provers)
    further = "    for y in xs:\n        if y % 5 == 0:\n            out.append(y - k)\n    return"
    longer = BODY.replace("    return", further)
    near = KINDS["deduction"].make(program(longer), provers)
    nearer = KINDS["deduction"].make(program(longer.replace("y % 5", "y % 6")), provers)
    other = KINDS["deduction"].make(program("def f(s):\n    return s[::-1].upper() + s[1:]", "'abcd'"), provers)
    for known in (memory, again):
        for one in (made, renamed):
            with pytest.raises(RefusedProposal, match="known"):
                known.require_new(one)
        known.require_new(near)
        known.add(near.task)
        with pytest.raises(RefusedProposal, match="near_duplicate"):
            known.require_new(nearer)
        assert known.require_new(other) < 0.3
        assert len(known) == 2


def test_similarity_does_not_hang_on_names_or_on_the_order_in_which_texts_came() -> None:
    texts = {"one": BODY, "two": BODY.replace("sorted(xs)", "reversed(xs)"), "three": "puzzle " * 20}
    forth, back = NearDuplicates(0.9), NearDuplicates(0.9)
    for name, text in texts.items():
        forth.add(name, text)
    for name, text in reversed(texts.items()):
        back.add(name, text)
    for text in (BODY.replace("xs", "zs"), texts["two"], "short"):
        assert forth.similarity(text) == back.similarity(text)
    assert forth.similarity(BODY.replace("xs", "zs")) == 1.0
    assert forth.similarity("short") == 0.0
