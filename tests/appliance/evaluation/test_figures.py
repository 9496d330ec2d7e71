"""Figures of an evaluation, against ones that were worked out by hand, and intervals against simulated questions."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from appliance.evaluation.figures import page, pass_at, results, score, uncalled
from appliance.evaluation.plan import EvaluationAttempt, EvaluationPlan
from curriculum.registry import domain_of
from policies.statistics import wilson

PLAN = EvaluationPlan(
    model="m", engine="torch", tasksets=("arithmetic@1", "modular_arithmetic@1"), items=2, seeds=(0,), repeats=2,
    temperature=1.0, max_tokens=100, max_calls=4, max_result_chars=28, assay="0",
)  # fmt: skip


def attempt(question: str, repeat: int, outcome: Any, taskset: str = "arithmetic", calls: int = 1) -> EvaluationAttempt:
    return EvaluationAttempt(
        question=question, taskset=taskset, level=0, topic="sums", seed=0, repeat=repeat, outcome=outcome,
        ended="answered", tokens=10, calls=calls, failed_calls=0, seconds=1.0,
    )  # fmt: skip


def test_pass_at_k_is_the_chance_that_one_of_k_is_right() -> None:
    assert (pass_at(4, 2, 1), pass_at(4, 2, 2), pass_at(4, 2, 4)) == (0.5, pytest.approx(1 - 1 / 6), 1.0)
    assert (pass_at(3, 0, 2), pass_at(3, 3, 1)) == (0.0, 1.0)


def test_what_was_lost_is_counted_apart_and_never_as_wrong() -> None:
    made = [
        attempt("a", 0, "right"), attempt("a", 1, "lost"), attempt("b", 0, "wrong"), attempt("b", 1, "right"),
        attempt("c", 0, "lost", "modular_arithmetic"), attempt("c", 1, "lost", "modular_arithmetic"),
        attempt("d", 0, "right", "modular_arithmetic", 3), attempt("d", 1, "right", "modular_arithmetic"),
    ]  # fmt: skip
    found = results(PLAN, made, planned=8, left_out={"theorems": "no Lean"}, domain_of=domain_of, created="now")
    every = found.all
    assert (every.questions, every.right, every.wrong, every.lost, found.complete) == (3, 4, 1, 3, False)
    assert every.pass_at["1"].value == pytest.approx((1 + 0.5 + 1) / 3, abs=1e-6)
    assert (every.pass_at["2"].value, every.pass_at["2"].questions) == (1.0, 2)
    assert [(row.name, row.lost) for row in found.domains] == [("calculator", 1), ("numbers", 2)]
    assert [row.name for row in found.levels] == ["arithmetic/0", "modular_arithmetic/0"]
    assert every.calls == pytest.approx(7 / 5)


@pytest.mark.parametrize(("attempts", "calls", "advised"), [(8, 0, True), (8, 1, False), (7, 0, False)])
def test_a_model_that_never_calls_a_tool_is_advised_to_learn_it_first(attempts: int, calls: int, advised: bool) -> None:
    made = [attempt(str(at), 0, "wrong", calls=calls) for at in range(attempts)]
    found = results(PLAN, made, planned=attempts, left_out={}, domain_of=domain_of, created="now")
    assert ("SFT" in uncalled(found), "no attempt called" in page(found)) == (advised, advised)


def test_intervals_cover_what_they_should_when_attempts_at_a_question_are_alike() -> None:
    """40 questions of very different difficulty, 4 attempts each: about 95 % of intervals hold the true mean."""
    rng, covered, trials = Random(1), 0, 400
    for _ in range(trials):
        rates = [rng.choice((0.05, 0.95, rng.random())) for _ in range(40)]
        found = score([sum(rng.random() < rate for _ in range(4)) / 4 for rate in rates], 4 * len(rates))
        assert found is not None
        covered += found.low <= 0.5 <= found.high
    assert 0.92 <= covered / trials <= 0.985


def test_an_interval_is_never_empty_and_has_its_mean_in_it() -> None:
    for values in ([0.0], [1.0], [0.5], [0.0] * 20, [1.0] * 20, [0.5] * 3, [0.0, 1.0]):
        found = score(values, 4 * len(values))
        assert found is not None
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.high > found.low
    assert score([], 0) is None


def test_a_handful_of_questions_is_never_told_apart_by_more_than_their_attempts() -> None:
    """Five questions answered nearly alike, eight attempts each: as wide as for 40 answers at least, and 95 % hold."""
    alike = score([0.5, 0.5, 0.5, 0.5, 0.625], 40)
    assert alike is not None
    low, high = wilson(21, 40, alpha=0.05)
    assert alike.high - alike.low >= (high - low) * 0.99
    rng, covered, trials = Random(2), 0, 600
    for _ in range(trials):
        rates = [rng.betavariate(1, 1) for _ in range(5)]
        found = score([sum(rng.random() < rate for _ in range(8)) / 8 for rate in rates], 40)
        assert found is not None
        covered += found.low <= 0.5 <= found.high
    assert covered / trials >= 0.94


def test_the_page_shows_hostile_names_as_text_and_loads_nothing() -> None:
    hostile = "<script>alert(1)</script>\u202e\x1b[31m"
    plan = PLAN.model_copy(update={"model": hostile})
    found = results(plan, [attempt("a", 0, "right")], planned=4, left_out={hostile: hostile}, domain_of=domain_of, created="now")  # fmt: skip  # noqa: E501
    shown = page(found)
    assert "<script" not in shown
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert "default-src &#x27;none&#x27;" in shown
    assert "http" not in shown.replace("http-equiv", "")
    assert "<th>pass@1, %</th>" in shown, "100.0 is a share in percent, and says so"
