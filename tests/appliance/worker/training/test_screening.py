"""Which tasks of a step get whole groups, by the posterior of their place and their first block."""

from __future__ import annotations

import math
from random import Random

import pytest
from pydantic import ValidationError

from appliance.jobs.success_model import ASSUMED, SuccessModel
from appliance.learning.recipes.recipe import ProposerRecipe, Recipe, TrainingRecipe
from appliance.worker.training.screening import NEWEST, GroupCounts, Screen
from benchmarks import screening
from curriculum.difficulty import Place, Seen

EASY, HARD = SuccessModel(0.01, 12.0, 1.0), SuccessModel(0.9, 0.3, 6.0)
EVEN = SuccessModel(0.01, 6.0, 6.0)


def test_a_block_with_both_outcomes_always_gets_the_rest_and_a_hopeless_one_never() -> None:
    screen = Screen.of([EASY, HARD, ASSUMED, EVEN], 4, 16)
    assert screen.continued([(EASY, 3, 1), (HARD, 0, 4), (HARD, 1, 3), (EVEN, 0, 4)], 64) == [0, 2, 3]


def test_where_every_group_will_have_both_outcomes_no_task_is_stopped_or_added() -> None:
    screen = Screen.of([EVEN] * 16, 4, 16)
    assert screen.tasks == 16
    assert screen.continued([(EVEN, 0, 4), (EVEN, 4, 0), (EVEN, 2, 2)], 48) == [0, 1, 2]


def test_where_tasks_are_hopeless_more_of_them_are_tried() -> None:
    screen = Screen.of([HARD] * 16, 4, 16)
    assert 32 < screen.tasks <= 64
    assert screen.continued([(HARD, 0, 4)] * screen.tasks, 256) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_step_never_has_more_rollouts_than_whole_groups_of_its_tasks(seed: int) -> None:
    rng = Random(seed)
    models = [rng.choice((EASY, HARD, ASSUMED, EVEN)) for _ in range(rng.randrange(1, 20))]
    whole = rng.randrange(4, 20)
    first = rng.randrange(2, whole)
    screen = Screen.of(models, first, whole)
    blocks = [(rng.choice(models), passed, first - passed) for passed in rng.choices(range(first + 1), k=screen.tasks)]
    budget = len(models) * whole
    continued = screen.continued(blocks, budget)
    assert len(blocks) >= len(models)
    assert len(blocks) * first + len(continued) * screen.more <= budget
    assert continued == sorted(set(continued)) == screen.continued(blocks, budget)


def test_where_the_budget_is_short_the_most_promising_come_first_and_equal_ones_in_order() -> None:
    screen = Screen(4, 16, 0.0, 4)
    assert screen.continued([(ASSUMED, 0, 4), (ASSUMED, 1, 3), (EVEN, 0, 4), (ASSUMED, 2, 2)], 4 * 4 + 3 * 12) == [
        1,
        2,
        3,
    ]
    assert screen.continued([(ASSUMED, 1, 3)] * 4, 4 * 4 + 2 * 12 + 11) == [0, 1]


def test_a_task_whose_rollouts_were_all_lost_is_not_continued() -> None:
    model = SuccessModel(0.01, 4.0, 12.0)
    screen = Screen.of([model] * 4, 4, 16)
    assert 2 not in screen.continued([(model, 0, 4), (model, 4, 0), (model, 0, 0), (model, 2, 2)], 64)


def test_a_plan_survives_rounding_where_every_task_is_worthwhile() -> None:
    model = SuccessModel(0.05167457384800697, 3.1130662453787012, 7.450615577702844)
    assert Screen.of([model] * 8, 6, 16).tasks == 8


def test_the_chance_of_both_outcomes_is_that_of_drawn_groups() -> None:
    rng, model, counts = Random(3), SuccessModel(0.3, 0.5, 1.5), {0: [0, 0], 4: [0, 0]}
    either = 0
    for _ in range(40_000):
        rate = 0.0 if rng.random() < model.hopeless else rng.betavariate(model.a, model.b)
        made = [rng.random() < rate for _ in range(16)]
        either += 0 < sum(made) < 16
        if sum(made[:4]) in counts:
            block = counts[sum(made[:4])]
            block[0] += 1
            block[1] += 0 < sum(made) < 16
    assert model.differing(0, 0, 16) == pytest.approx(either / 40_000, abs=0.01)
    assert model.differing(0, 4, 12) == pytest.approx(counts[0][1] / counts[0][0], abs=0.02)
    assert model.differing(4, 0, 12) == pytest.approx(counts[4][1] / counts[4][0], abs=0.05)
    assert model.differing(1, 3, 12) == 1


def test_a_rule_that_reads_rewards_changes_the_weight_of_a_task_but_not_the_direction_of_its_gradient() -> None:
    """Two ways to pass and two to fail: the expected gradient keeps the proportions of that of the success rate."""
    logits, rng = [0.3, -0.4, 0.8, 0.1], Random(5)
    shares = [math.exp(one) / sum(map(math.exp, logits)) for one in logits]
    rate = shares[0] + shares[1]
    toward = [share * ((at < 2) - rate) for at, share in enumerate(shares)]
    total, groups = [0.0] * 4, 60_000
    for _ in range(groups):
        ways = rng.choices(range(4), shares, k=6)
        passed = sum(way < 2 for way in ways)
        if not 0 < sum(way < 2 for way in ways[:2]) < 2:
            continue  # stopped after a first block of two
        for way in ways:
            advantage = (way < 2) - passed / 6
            for at in range(4):
                total[at] += advantage * ((at == way) - shares[at])
    factor = total[0] / toward[0]
    assert factor > 0
    assert [one / factor for one in total] == pytest.approx(toward, abs=0.006)


def test_a_place_is_learned_from_its_own_groups_around_those_of_all() -> None:
    known = GroupCounts().after([Seen(Place("solved", 1, topic), 8, 8) for topic in "abcdefgh"])
    known = known.after([Seen(Place("never", 0), 0, 8)] * 8 + [Seen(Place("lost", 0), 0, 0)])
    solved, never, new = (known.model(Place(name, level)) for name, level in (("solved", 1), ("never", 0), ("new", 0)))
    assert solved.next_success(0) > new.next_success(0) > never.next_success(0)
    assert GroupCounts.model_validate_json(known.model_dump_json()).model(Place("solved", 1)) == solved
    assert "lost/0" not in known.groups


def test_the_newest_groups_of_a_place_count() -> None:
    known = GroupCounts().after([Seen(Place("t", 0), 0, 8)] * NEWEST).after([Seen(Place("t", 0), 8, 8)] * NEWEST)
    assert known.groups == {"t/0": ((8, 0),) * NEWEST}


@pytest.mark.parametrize(
    "changes",
    [
        {"screening": 1},
        {"screening": 16},
        {"max_staleness": 1},
        {"reward": "score"},
        {"branching": {"where": "repair"}},
    ],
)
def test_a_recipe_that_cannot_be_screened_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="screening"):
        TrainingRecipe.model_validate({"screening": 4, **changes})


def test_proposals_are_not_screened() -> None:
    with pytest.raises(ValidationError, match="screening"):
        Recipe(training=TrainingRecipe(screening=4), proposer=ProposerRecipe(proposals=2))


@pytest.mark.parametrize("world", screening.WORLDS)
def test_more_groups_of_a_simulated_night_teach_something_also_after_a_wrong_prior(world: str) -> None:
    found = screening.compared([screening.night(world, seed, 16)[:320] for seed in range(2)], 4, 16)
    for arm in ("screened", "misled"):
        assert min(found[arm]["% over whole"]) > 5
        assert sum(found[arm]["signal"]) > sum(found["whole"]["signal"])
