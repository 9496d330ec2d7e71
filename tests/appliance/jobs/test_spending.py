"""Choice of a job's next attempts: by expected success per sampled token, equal for equal records."""

from __future__ import annotations

import random

import pytest

from appliance.jobs.spending import FIRST, WORTH, Experience, next_step
from appliance.jobs.success_model import ASSUMED, SuccessModel
from appliance.records.jobs import JobStep


def step(attempts: int, **given: object) -> JobStep:
    made = {"failed": attempts, "tokens": 100 * attempts, "ended": True, "expected": 0.1, "weights": "w"}
    return JobStep.model_validate({"attempts": attempts} | made | given)


def chosen(known: Experience, *before: JobStep, attempts: int = 16, tokens: int | None = None) -> JobStep | str:
    left = attempts - sum(one.attempts for one in before)
    return next_step(known, before, weights="w", attempts=attempts, left=left, tokens=tokens)


def test_steps_double_until_the_attempts_are_used_up() -> None:
    before: list[JobStep] = []
    while isinstance(found := chosen(Experience(), *before), JobStep):
        before.append(step(found.attempts))
    assert [one.attempts for one in before] == [2, 2, 4, 8]
    assert found == ""


def test_without_records_what_is_expected_is_the_assumed_model() -> None:
    found = chosen(Experience())
    assert isinstance(found, JobStep)
    assert found.expected == ASSUMED.success_within(0, FIRST)
    assert found.branches


def test_a_hopeless_kind_gets_its_first_step_and_no_other() -> None:
    known = Experience.of([[step(16)]] * 400, "w")
    assert isinstance(chosen(known), JobStep)
    found = chosen(known, step(2))
    assert isinstance(found, str)
    assert "would succeed with a chance of" in found


def test_no_more_attempts_are_made_than_are_worth_their_cost() -> None:
    model = SuccessModel(0.01, 0.05, 1.0)
    found = chosen(Experience(attempt=model), step(16), attempts=64)
    assert isinstance(found, JobStep)
    last, after = (model.next_success(16 + found.attempts + more) for more in (-1, 0))
    assert found.attempts < 16
    assert last >= 1 / (WORTH * 64) > after


def test_a_budget_of_tokens_bounds_the_next_step_and_ends_the_work() -> None:
    bounded = chosen(Experience(), step(2, tokens=200), tokens=100)
    assert isinstance(bounded, JobStep)
    assert (bounded.attempts, bounded.cost) == (1, 100.0)
    assert chosen(Experience(), step(2), tokens=0) == "its budget of tokens is used up"
    assert chosen(Experience(), step(16), tokens=0) == "its budget of tokens is used up"
    assert isinstance(chosen(Experience(cost=10.0), tokens=10**12), JobStep)


def test_branches_are_made_only_while_they_are_worth_more_than_the_next_attempt() -> None:
    poor = [[step(2, passed=1, failed=1, branches_failed=2, tokens=400, branch_tokens=200)]] * 300
    good = [[step(1, branches_passed=1, failed=1, tokens=150, branch_tokens=50)]] * 300
    for jobs, branches in ((poor, False), (good, True)):
        found = chosen(Experience.of(jobs, "w"))
        assert isinstance(found, JobStep)
        assert found.branches is branches


def test_jobs_of_other_weights_teach_less() -> None:
    made = [[step(1, passed=1, failed=0)]] * 50
    same, other = (Experience.of(made, weights).attempt.next_success(0) for weights in ("w", "x"))
    assert same >= other > ASSUMED.next_success(0)


def test_equal_records_give_equal_choices_in_any_order() -> None:
    rng = random.Random(3)
    jobs = [[step(n, passed=n % 2, failed=n)] for n in range(1, 60)]
    known = Experience.of(jobs, "w")
    rng.shuffle(jobs)
    assert Experience.of(jobs, "w") == known


@pytest.mark.parametrize("broken", [step(2, failed=0, lost=2, tokens=0), step(2, failed=0, lost=1, tokens=0)])
def test_attempts_that_met_a_failure_of_the_infrastructure_teach_nothing(broken: JobStep) -> None:
    assert Experience.of([[broken]] * 50, "w") == Experience()
