"""Odds may be looked at every night and still fool nobody; a quarter's budget is shared and runs out."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.contract.decision import GateFinding, GateOutcome
from policies.contract.evidence import Budget, EarlierNight, Evidence, PairCounts, PairedItem, all_nights
from policies.gates.evidence import GATE, asks_again, may_go_on, nights_to_go, odds_outcome
from policies.gates.gate import GateContext
from policies.gates.improvement import gain_outcome
from policies.gates.improvement import judge as improvement
from policies.policy import load
from policies.statistics import (
    LEAST_CLUSTERS,
    log_odds,
    needed,
    of_clusters,
    of_questions,
    paired_difference,
    quarter_of,
)

RULES = load().gates
CONTEXT = GateContext(RULES, "2026-01-02T03:00:00+00:00")


def night(gained: int, lost: int, rest: int, name: str = "n") -> tuple[PairedItem, ...]:
    outcomes = [(False, True)] * gained + [(True, False)] * lost + [(True, True)] * rest
    return tuple(
        PairedItem(task=f"{name}-{n}", family=f"f{n % 10}", champion_passed=before, candidate_passed=after)
        for n, (before, after) in enumerate(outcomes)
    )


def evidence(*nights: tuple[PairedItem, ...], before: int | None = 0) -> Evidence:
    return Evidence(
        evaluation="e",
        candidate="c" * 64,
        champion="a" * 64,
        in_service="a" * 64,
        sealed_set="d" * 64,
        candidate_asked="d" * 64,
        champion_asked="d" * 64,
        candidate_temperature=1.0,
        champion_temperature=1.0,
        items=nights[-1],
        earlier=tuple(EarlierNight(evaluation=f"e{n}", items=items) for n, items in enumerate(nights[:-1])),
        evaluated_at="2026-01-02T03:00:00+00:00",
        budget=None if before is None else Budget(quarter="2026-Q1", before=before),
    )


def so_far(material: Evidence) -> GateFinding:
    return GATE.judge(material, RULES.evidence, CONTEXT)


@pytest.mark.parametrize("pairs", [0, 1, 7, 160, 700])
def test_the_expected_odds_of_a_coin_are_exactly_one(pairs: int) -> None:
    """What makes them odds: Ville's inequality rests on nothing else."""
    expected = math.fsum(
        math.exp(math.log(math.comb(pairs, won)) - pairs * math.log(2) + log_odds(won, pairs - won))
        for won in range(pairs + 1)
    )
    assert expected == pytest.approx(1.0, abs=1e-9)


@given(st.integers(0, 400), st.integers(0, 400))
def test_one_more_gained_question_never_lowers_the_odds_and_one_more_lost_never_raises_them(
    won: int, lost: int
) -> None:
    assert log_odds(won + 1, lost) > log_odds(won, lost) - 1e-9
    assert log_odds(won, lost + 1) < log_odds(won, lost) + 1e-9


def test_a_coin_that_is_watched_after_every_question_rarely_reaches_the_odds_asked_for() -> None:
    rng, alpha, reached = Random(5), 0.1, 0
    for _ in range(400):
        won = 0
        for tossed in range(1, 201):
            won += rng.random() < 0.5
            if log_odds(won, tossed - won) >= math.log(1 / alpha):
                reached += 1
                break
    assert reached <= 0.1 * 400


def test_odds_of_different_questions_hold_though_each_is_easy_for_another_model() -> None:
    """Half of the questions fall to the candidate, half to the champion: the average gain is none."""
    expected = math.fsum(
        math.comb(40, a)
        * 0.9**a
        * 0.1 ** (40 - a)
        * math.comb(40, b)
        * 0.1**b
        * 0.9 ** (40 - b)
        * math.exp(log_odds(a + b, 80 - a - b))
        for a in range(41)
        for b in range(41)
    )
    assert expected <= 1.0


def test_an_ordinary_gain_is_shown_after_about_three_nights() -> None:
    assert needed(0.05, 90) == pytest.approx(7.5, abs=0.01)
    assert log_odds(96, 64) < needed(0.05, 90) < log_odds(3 * 96, 3 * 64)


def test_nights_add_up_and_say_how_many_more_are_needed() -> None:
    first = so_far(evidence(night(96, 64, 640, "one")))
    assert first.outcome is GateOutcome.UNDECIDED
    assert "after 1 night" in first.reason
    assert "90 of them are left in 2026-Q1" in first.reason
    assert first.would_change == "about 2 more nights of fresh questions at this gain"
    third = so_far(evidence(*(night(96, 64, 640, name) for name in ("one", "two", "three"))))
    assert third.outcome is GateOutcome.PASSED
    assert third.figure is not None
    assert third.threshold == pytest.approx(1800)
    assert third.figure > third.threshold


def test_a_question_counts_once_however_often_it_is_asked() -> None:
    same = night(96, 64, 640, "one")
    assert len(all_nights(evidence(same, same, same))) == 800
    assert so_far(evidence(same, same, same)).figure == so_far(evidence(same)).figure


def test_the_budget_runs_out_and_is_never_overdrawn() -> None:
    great = night(300, 0, 500)
    assert so_far(evidence(great, before=89)).outcome is GateOutcome.PASSED
    spent = so_far(evidence(great, before=90))
    assert spent.outcome is GateOutcome.UNDECIDED
    assert "budget is spent" in spent.reason
    unknown = so_far(evidence(great, before=None))
    assert unknown.outcome is GateOutcome.UNDECIDED
    assert "not on record" in unknown.reason


def test_a_candidate_without_a_gain_is_told_that_more_nights_do_not_help() -> None:
    assert "60 more nights like these would not suffice" in so_far(evidence(night(80, 80, 640))).would_change
    assert nights_to_go(PairCounts(items=800, gained=80, lost=80), 1, RULES.improvement, RULES.evidence) is None


def test_the_figures_are_numbers_that_json_can_hold() -> None:
    finding = so_far(evidence(night(3000, 0, 10)))
    assert GateFinding.model_validate_json(finding.model_dump_json()) == finding


@pytest.mark.parametrize(
    ("gain", "so_far_", "figure", "nights", "again"),
    [
        ("undecided", "undecided", 3.0, 1, True),
        ("passed", "undecided", 3.0, 4, True),
        ("passed", "undecided", 3.0, 5, False),
        ("undecided", "undecided", 0.0, 1, False),
        ("failed", "undecided", -9.0, 1, False),
        ("passed", "passed", 9.0, 1, False),
    ],
)
def test_who_is_asked_again(gain: str, so_far_: str, figure: float, nights: int, again: bool) -> None:
    findings = [
        GateFinding(gate="improvement", outcome=GateOutcome(gain), figure=figure, reason=""),
        GateFinding(gate="evidence", outcome=GateOutcome(so_far_), figure=9.0, reason=""),
        GateFinding(gate="approval", outcome=GateOutcome.UNDECIDED, figure=0.0, reason=""),
    ]
    assert asks_again(findings, nights, RULES.evidence) is again


def test_nobody_is_asked_again_after_a_failed_gate() -> None:
    findings = [
        GateFinding(gate="improvement", outcome=GateOutcome.UNDECIDED, figure=3.0, reason=""),
        GateFinding(gate="evidence", outcome=GateOutcome.UNDECIDED, figure=9.0, reason=""),
        GateFinding(gate="drift", outcome=GateOutcome.FAILED, figure=9.0, reason=""),
    ]
    assert not asks_again(findings, 1, RULES.evidence)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 6))
def test_counts_and_findings_agree_on_who_goes_on(gained: int, lost: int, nights: int) -> None:
    seen = PairCounts(items=800, gained=gained, lost=lost)
    findings = [
        GateFinding(gate="improvement", outcome=GateOutcome.UNDECIDED, figure=seen.gain, reason=""),
        GateFinding(gate="evidence", outcome=odds_outcome(seen, 0, RULES.evidence), figure=1.0, reason=""),
    ]
    assert asks_again(findings, nights, RULES.evidence) is may_go_on(seen, nights, RULES.evidence)


# the bootstrap


@pytest.mark.parametrize(("gained", "lost", "items"), [(96, 64, 800), (300, 200, 4000), (40, 10, 400)])
def test_the_bootstrap_over_questions_is_as_wide_as_the_score_interval(gained: int, lost: int, items: int) -> None:
    drawn = of_questions(gained, lost, items, alpha=0.01)
    scored = paired_difference(gained, lost, items, alpha=0.01)
    assert drawn == pytest.approx(scored, abs=0.1 * (scored[1] - scored[0]))


def test_a_gain_that_rests_on_few_families_is_not_shown_for_families() -> None:
    everywhere = of_clusters([(10, 80)] * 10, alpha=0.01)
    one = of_clusters([(100, 80), *[(0, 80)] * 9], alpha=0.01)
    assert everywhere is not None
    assert everywhere[0] == pytest.approx(0.125)
    assert one is not None
    assert one[0] == 0.0
    assert of_clusters([(10, 80)] * (LEAST_CLUSTERS - 1), alpha=0.01) is None


def test_the_policy_says_what_is_drawn_anew() -> None:
    by_family = RULES.improvement.model_copy(update={"clusters": "family"})
    material = evidence(night(200, 40, 560))
    assert improvement(material, by_family, CONTEXT).outcome is GateOutcome.PASSED
    few = material.model_copy(
        update={"items": tuple(item.model_copy(update={"family": "gcd"}) for item in material.items)}
    )
    assert improvement(few, RULES.improvement, CONTEXT).outcome is GateOutcome.PASSED
    refused = improvement(few, by_family, CONTEXT)
    assert refused.outcome is GateOutcome.UNDECIDED
    assert 'clusters = "question"' in refused.would_change


def test_a_bootstrap_that_does_not_reach_the_gain_holds() -> None:
    seen = PairCounts(items=800, gained=200, lost=40)
    assert gain_outcome(seen, RULES.improvement, lambda: (0.0, 0.3)) is GateOutcome.UNDECIDED
    assert gain_outcome(seen, RULES.improvement, lambda: None) is GateOutcome.UNDECIDED
    assert gain_outcome(seen, RULES.improvement, lambda: (0.2, 0.3)) is GateOutcome.PASSED


@pytest.mark.parametrize(
    ("moment", "quarter"),
    [
        ("2026-01-01T00:00:00+00:00", "2026-Q1"),
        ("2026-03-31T23:59:59", "2026-Q1"),
        ("2026-03-31T23:59:59-02:00", "2026-Q2"),
        ("2026-12-31T23:00:00Z", "2026-Q4"),
    ],
)
def test_quarters_are_those_of_utc(moment: str, quarter: str) -> None:
    assert quarter_of(moment) == quarter
