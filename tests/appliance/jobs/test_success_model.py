"""How likely the next attempt is to succeed, and what is learned from earlier jobs."""

from __future__ import annotations

import random

import pytest

from appliance.jobs.success_model import ASSUMED, SuccessModel, Tries, fitted


def drawn(truth: SuccessModel, count: int, attempts: int, rng: random.Random) -> list[Tries]:
    """Jobs that stop at the first success."""
    made = []
    for _ in range(count):
        rate = 0.0 if rng.random() < truth.hopeless else rng.betavariate(truth.a, truth.b)
        failed = next((failures for failures in range(attempts) if rng.random() < rate), attempts)
        made.append(Tries(failed, int(failed < attempts)))
    return made


def test_the_chance_of_the_next_attempt_falls_as_published_for_a_beta_prior() -> None:
    model = SuccessModel(1e-12, 0.3, 0.7)
    chances = [round(model.next_success(failures), 3) for failures in (0, 1, 2, 4, 8, 16)]
    assert chances == [0.3, 0.15, 0.1, 0.06, 0.033, 0.018]


def test_the_chance_within_several_attempts_is_that_of_one_after_the_other() -> None:
    model = SuccessModel(0.25, 0.4, 1.2)
    missed = 1.0
    for failures in range(3, 9):
        missed *= 1 - model.next_success(failures)
    assert model.success_within(3, 6) == pytest.approx(1 - missed)


def test_failures_make_a_hopeless_job_more_likely() -> None:
    model = SuccessModel(0.1, 1.0, 1.0)
    chances = [model.hopeless_after(failures) for failures in range(20)]
    assert chances[0] == pytest.approx(0.1)
    assert chances == sorted(chances)
    assert chances[-1] > 0.6


def test_a_model_is_recovered_from_jobs_that_stopped_at_their_first_success() -> None:
    truth = SuccessModel(0.3, 0.5, 1.5)
    found = fitted(drawn(truth, 4_000, 16, random.Random(1)))
    for failures in (0, 1, 2, 4, 8):
        assert found.next_success(failures) == pytest.approx(truth.next_success(failures), rel=0.12)


def test_the_order_of_jobs_does_not_matter_and_without_any_the_prior_stays() -> None:
    made = drawn(SuccessModel(0.3, 0.5, 1.5), 200, 16, random.Random(2))
    assert fitted(made) == fitted(reversed(made))
    assert fitted([]) == fitted([Tries(0)]) == ASSUMED


@pytest.mark.parametrize("made", [[Tries(16)] * 10_000, [Tries(0, 1)] * 10_000, [Tries(512, 512)] * 1_000])
def test_jobs_that_are_all_alike_give_a_model_that_can_still_be_asked(made: list[Tries]) -> None:
    model = fitted(made)
    assert 0 < model.hopeless < 1
    assert 0 < model.next_success(0) < 1
    assert 0 <= model.success_within(1_000, 1_000) <= 1


def test_which_attempts_of_a_step_end_first_does_not_change_what_is_learned() -> None:
    """Passes that always end before failures would look like a higher rate, if only ended attempts were counted."""
    rng, made = random.Random(4), []
    for _ in range(3_000):
        failed, last = 0, 0
        for count in (2, 2, 4, 8):
            if any(rng.random() < 0.1 for _ in range(count)):
                last = count
                break
            failed += count
        made.append(Tries(failed, last))
    assert fitted(made).next_success(0) == pytest.approx(0.1, rel=0.15)
