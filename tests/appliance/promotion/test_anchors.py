"""The best champion of each taskset stays what later candidates are compared with, until a better one is shown."""

from __future__ import annotations

import hashlib

import pytest
from good_evidence import good_measurements
from tables import table

from appliance.promotion.anchors import anchor_moves, anchors_without, beside
from appliance.promotion.evidence import budget_of, decision_on, evidence_of
from appliance.records.evaluations import Evaluation, ItemResult, ModelResults
from policies.contract.decision import Decision, DecisionOutcome, GateOutcome
from policies.policy import Policy, load

PACKAGED = load()
POLICY = PACKAGED.model_copy(
    update={
        "gates": PACKAGED.gates.model_copy(
            update={"approval": PACKAGED.approval.model_copy(update={"required": False})}
        )
    }
)
WITHOUT = POLICY.model_copy(update={"gates": POLICY.gates.model_copy(update={"retention": None})})
OTHERS = ("gcd", "lcm", "primes", "sums")
ITEMS, ROWS = 120, {"own/notes": 12}

Skills = dict[str, float]


def weights(number: int) -> str:
    return f"{number:064x}"


def answers(model: int, skills: Skills, night: int) -> ModelResults:
    """A model's answers to a night's fresh questions: it passes those whose difficulty is below its skill."""
    items = [
        ItemResult(
            task=f"{family}-{night}-{number}",
            family=family,
            passed=(number * 7919 + 31 * night) % 997 / 997 < skill,
            calls=1,
            failed_calls=0,
        )
        for family, skill in skills.items()
        for number in range(ROWS.get(family, ITEMS))
    ]
    return ModelResults(weights=weights(model), temperature=1.0, items=tuple(items), tokens=1000, seconds=1.0)


def evaluation(
    night: int, champion: int, candidate: int, models: dict[int, Skills], anchored: dict[str, str] | None = None
) -> Evaluation:
    anchors = anchored or {}
    others = sorted(set(anchors.values()) - {weights(champion), weights(candidate)})
    by_weights = {weights(number): number for number in models}
    asked = [
        answers(
            by_weights[one],
            {family: skill for family, skill in models[by_weights[one]].items() if anchors.get(family) == one},
            night,
        )
        for one in others
    ]
    theirs = answers(champion, models[champion], night)
    return Evaluation(
        id=f"night-{night}.evaluation",
        cycle=f"night-{night}",
        sealed_set=hashlib.sha256("\n".join(item.task for item in theirs.items).encode()).hexdigest(),
        candidate=answers(candidate, models[candidate], night),
        champion=theirs,
        candidate_greedy=answers(candidate, models[candidate], night),
        champion_greedy=answers(champion, models[champion], night),
        measurements=good_measurements(f"2026-0{1 + night // 28}-{1 + night % 28:02d}T01:50:00+00:00"),
        anchors=tuple(asked),
        anchored={family: anchors.get(family, weights(champion)) for family in models[champion]},
        created=f"2026-0{1 + night // 28}-{1 + night % 28:02d}T02:00:00+00:00",
    )


def decide(one: Evaluation, history: list[Evaluation], policy: Policy) -> Decision:
    return decision_on(
        one,
        policy,
        in_service=one.champion.weights,
        history=history,
        decisions=[],
        id=one.id,
        made_at=one.created.replace("T02", "T03"),
    )


def quarter(policy: Policy, candidates: int) -> tuple[int, dict[str, str]]:
    """Tries candidates that are each 8 points better elsewhere than the champion and 4 worse in `calculus`; returns how
    many were promoted, and the anchors then."""
    models = {0: {"calculus": 0.9, **dict.fromkeys(OTHERS, 0.1)}}
    champion, night, anchors, history = 0, 0, dict[str, str](), list[Evaluation]()
    promoted = 0
    for candidate in range(1, candidates + 1):
        skills = models[champion]
        models[candidate] = {
            family: min(0.98, skill + (-0.04 if family == "calculus" else 0.08)) for family, skill in skills.items()
        }
        for _ in range(4):
            one = evaluation(night, champion, candidate, models, anchors)
            night += 1
            better = budget_of(one, history, policy).better
            anchors |= {
                name.removeprefix("anchor/"): str(model)
                for name, model in anchor_moves(one, history, better, policy).items()
            }
            outcome = decide(one, history, policy).outcome
            history.append(one)
            if outcome is not DecisionOutcome.HOLD:
                break
        if outcome is DecisionOutcome.PROMOTE:
            promoted, champion = promoted + 1, candidate
    return promoted, anchors


def test_candidates_that_each_lose_four_points_of_a_taskset_are_stopped_by_the_third() -> None:
    promoted, anchors = quarter(POLICY, 5)
    assert 1 <= promoted <= 2
    assert anchors["calculus"] == weights(0)
    assert anchors["gcd"] != weights(0)
    assert quarter(WITHOUT, 5)[0] == 5


MODELS = {
    0: {"gcd": 0.9, "lcm": 0.2},
    1: {"gcd": 0.9, "lcm": 0.5},
    2: {"gcd": 0.7, "lcm": 0.8},
    3: {"gcd": 0.9, "lcm": 0.9},
}


def test_the_first_champion_is_the_anchor_of_what_it_was_asked() -> None:
    first = evaluation(0, 0, 1, MODELS)
    assert anchor_moves(first, [], 0, POLICY) == {"anchor/gcd": weights(0), "anchor/lcm": weights(0)}
    assert anchor_moves(first, [], 0, WITHOUT) == {}


def test_a_champion_takes_the_place_of_an_anchor_only_where_it_is_shown_to_be_better() -> None:
    anchored = {"gcd": weights(0), "lcm": weights(0)}
    nights = [evaluation(night, 2, 3, MODELS, anchored) for night in range(2)]
    assert anchor_moves(nights[1], nights, 0, POLICY) == {"anchor/lcm": weights(2)}
    met_before = evaluation(5, 0, 2, MODELS, anchored)
    assert beside(met_before, weights(0), weights(2), "lcm"), "its nights as a candidate count too"


def test_an_anchor_s_answers_are_what_the_candidate_is_compared_with() -> None:
    anchored = {"gcd": weights(0), "lcm": weights(2)}
    one = evaluation(1, 2, 3, MODELS, anchored)
    assert [results.weights for results in one.anchors] == [weights(0)]
    assert {item.family for item in one.anchors[0].items} == {"gcd"}, "each anchor is asked its own tasksets only"
    (kept,) = evidence_of(one, in_service=None, history=[], approvals=[], decisions=[], policy=POLICY).retained
    assert (kept.family, kept.anchor, len(kept.nights)) == ("gcd", weights(0), 1)
    found = {finding.gate: finding for finding in decide(one, [], POLICY).findings}
    assert found["non_regression/gcd"].figure == pytest.approx(20, abs=3)
    assert found["retention/gcd"].figure == 0.0
    assert found["retention/lcm"].figure == found["non_regression/lcm"].figure


@table(
    ("anchored", "not_askable", "outcome"),
    [
        ({"gcd": weights(0), "primes": weights(0)}, {}, GateOutcome.UNDECIDED),
        ({"gcd": weights(0), "primes": weights(7)}, {}, GateOutcome.UNDECIDED),
        ({"gcd": weights(0), "primes": weights(7)}, {"primes": "the taskset was removed"}, GateOutcome.PASSED),
    ],
)
def test_a_taskset_with_an_anchor_that_was_not_asked_is_guarded(
    anchored: dict[str, str], not_askable: dict[str, str], outcome: GateOutcome
) -> None:
    one = evaluation(0, 0, 1, MODELS).model_copy(update={"anchored": anchored, "not_askable": not_askable})
    found = {finding.gate: finding.outcome for finding in decide(one, [], POLICY).findings}
    assert found["retention/primes"] is outcome


def test_a_withdrawn_model_is_no_anchor_any_more() -> None:
    moves = [
        {"anchor/gcd": "a", "anchor/lcm": "a"},
        {"anchor/gcd": "b"},
        {"anchor/gcd": "c", "anchor/sums": "c"},
        {"champion": "c"},
    ]
    aliases = {"anchor/gcd": "c", "anchor/lcm": "a", "anchor/sums": "c", "champion": "c"}
    assert anchors_without("c", aliases, moves) == {"anchor/gcd": "b", "anchor/sums": None}


def test_the_quarter_s_budget_counts_the_pairs_whose_candidate_was_better() -> None:
    better, equal = evaluation(0, 0, 2, {**MODELS, 2: {"gcd": 0.99, "lcm": 0.9}}), evaluation(1, 0, 1, MODELS)
    equal = equal.model_copy(update={"candidate": answers(1, MODELS[0], 1)})
    last = evaluation(2, 0, 3, MODELS)
    budget = budget_of(last, [better, equal], POLICY)
    assert (budget.before, budget.better) == (2, 1)


def test_sixty_rows_of_one_s_own_beside_other_tasksets_do_not_hold_a_candidate() -> None:
    models = {0: {"own/notes": 0.5, **dict.fromkeys(OTHERS, 0.3)}, 1: {"own/notes": 0.5, **dict.fromkeys(OTHERS, 0.6)}}
    one = evaluation(0, 0, 1, models)
    assert decide(one, [], POLICY).outcome is DecisionOutcome.HOLD, "a taskset without end waits for more questions"
    decision = decide(one.model_copy(update={"rows": ROWS}), [], POLICY)
    assert decision.outcome is DecisionOutcome.PROMOTE
    found = {finding.gate: finding.reason for finding in decision.findings}
    assert "left out: own/notes (12)" in found["non_regression/small_tasksets"]
    assert "left out: own/notes (12)" in found["retention/small_tasksets"]
