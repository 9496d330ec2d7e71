"""The simulation asks the gates themselves, fools itself rarely, and finds what is there."""

from __future__ import annotations

import pytest
from good_evidence import good_measurements
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import examples
from pydantic import ValidationError

from policies.contract.decision import DecisionOutcome
from policies.contract.evidence import Budget, CostReport, Evidence, PairCounts, PairedItem
from policies.decide import decide
from policies.policy import Policy, load
from policies.simulate import Assumed, SimulatedJudge, simulate

POLICY = load()
AT = "2026-01-02T03:00:00+00:00"
ALONE = POLICY.model_copy(
    update={
        "gates": POLICY.gates.model_copy(update={"approval": POLICY.approval.model_copy(update={"required": False})})
    }
)
JUDGE = SimulatedJudge(POLICY)


def really_decided(families: list[tuple[int, int, int]], before: int, policy: Policy = ALONE) -> DecisionOutcome:
    """What `decide` says about questions with these counts when everything else is in order."""
    items = [
        PairedItem(task=f"{family}-{n}", family=f"f{family}", champion_passed=was, candidate_passed=is_)
        for family, (count, gained, lost) in enumerate(families)
        for n, (was, is_) in enumerate(
            [(False, True)] * gained + [(True, False)] * lost + [(True, True)] * (count - gained - lost)
        )
    ]
    material = Evidence(
        evaluation="e",
        candidate="c" * 64,
        champion="a" * 64,
        in_service="a" * 64,
        sealed_set="d" * 64,
        candidate_asked="d" * 64,
        champion_asked="d" * 64,
        candidate_temperature=1.0,
        champion_temperature=1.0,
        items=tuple(items),
        evaluated_at=AT,
        measurements=good_measurements(AT),
        budget=Budget(quarter="2026-Q1", before=before),
        cost=CostReport(answers=len(items), tokens=1, tokens_champion=1, calls=1, calls_champion=1),
    )
    return decide(material, policy, policy_digest="p", id="d", made_at=AT).outcome


counts = st.integers(1, 120).flatmap(
    lambda items: st.integers(0, items).flatmap(
        lambda apart: st.integers(0, apart).map(lambda gained: (items, gained, apart - gained))
    )
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(counts, min_size=1, max_size=4), st.sampled_from([0, 89, 90]))
def test_counts_are_judged_as_the_decision_judges_the_questions(
    families: list[tuple[int, int, int]], before: int
) -> None:
    whole = tuple(sum(column) for column in zip(*families, strict=True))
    counted = tuple(PairCounts(*one) for one in (whole, *families))
    assert JUDGE.outcome(counted, before) is really_decided(families, before)


@pytest.mark.parametrize(
    ("family", "outcome"),
    [
        ((200, 80, 20), DecisionOutcome.PROMOTE),
        ((200, 40, 30), DecisionOutcome.HOLD),
        ((200, 20, 80), DecisionOutcome.REJECT),
    ],
)
def test_each_outcome_is_met_in_both(family: tuple[int, int, int], outcome: DecisionOutcome) -> None:
    one = PairCounts(*family)
    whole = PairCounts(*(2 * count for count in family))
    assert JUDGE.outcome((whole, one, one), 0) is outcome
    assert really_decided([family, family], 0) is outcome


def test_the_packaged_policy_is_rarely_fooled_and_finds_four_points() -> None:
    found = simulate(POLICY, Assumed(quarters=40, seed=1))
    assert found.null_promoted_share <= 0.05
    assert found.power >= 0.8
    assert list(found.found_by_night) == sorted(found.found_by_night)
    assert found.found_by_night[-1] == found.power
    assert found.null_promoted_low <= found.null_promoted_share <= found.null_promoted_high


def test_a_careless_policy_is_seen_to_be_fooled() -> None:
    """The control: a simulation that saw nothing would not see this either."""
    gates = POLICY.gates
    changes = {
        "improvement": gates.improvement.model_copy(update={"min_gain": 0.0, "alpha": 0.2}),
        "evidence": gates.evidence.model_copy(update={"alpha": 0.2, "candidates": 1, "nights": 1}),
        "non_regression": gates.non_regression.model_copy(update={"margin": 50.0}),
        "retention": None,
    }
    careless = POLICY.model_copy(update={"gates": gates.model_copy(update=changes)})
    found = simulate(careless, Assumed(quarters=400, nights=1, within=1, seed=2))
    assert 0.005 < found.null_promoted_share <= 0.2
    assert simulate(POLICY, Assumed(quarters=400, nights=1, within=1, seed=2)).null_promoted_share == 0.0


def test_equal_seeds_give_equal_figures() -> None:
    small = Assumed(quarters=5, nights=10, items=200, families=3)
    assert simulate(POLICY, small) == simulate(POLICY, small)


@pytest.mark.parametrize("wrong", [{"gain": 30.0}, {"items": 3}, {"gain": 0.0}, {"discordant": 101.0}, {"quarters": 0}])
def test_what_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Assumed.model_validate(wrong)


def test_people_s_approval_is_what_the_simulation_takes_for_granted() -> None:
    assert really_decided([(200, 80, 20), (200, 80, 20)], 0, POLICY) is DecisionOutcome.HOLD
