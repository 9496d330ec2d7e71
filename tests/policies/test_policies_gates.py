"""Gates pass on what is shown, fail on what is excluded, and hold back in between."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from types import ModuleType

import pytest
from good_evidence import good_measurements
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from policies.contract.decision import DecisionOutcome, GateFinding, GateOutcome
from policies.contract.evidence import (
    Budget,
    CostReport,
    EarlierNight,
    Evidence,
    PairCounts,
    PairedItem,
    RecordedApproval,
    RetainedTaskset,
    pairs,
)
from policies.contract.rules import OutcomeRule, PromotionRules
from policies.decide import decide, must_be_found, outcome_of
from policies.gates import approval, freshness, improvement, integrity, non_regression, retention
from policies.gates.gate import GateContext, Section
from policies.policy import Policy, load

POLICY = load()
RULES = POLICY.gates
NOW = "2025-03-02T12:00:00+00:00"
SHOWN = "5" * 64


def items(both: int, gained: int, lost: int, neither: int, *, family: str = "gcd", infra: int = 0) -> list[PairedItem]:
    results = [
        *[(True, True)] * both,
        *[(False, True)] * gained,
        *[(True, False)] * lost,
        *[(False, False)] * neither,
        *[(None, True)] * infra,
    ]
    return [
        PairedItem(task=f"{family}-{n}", family=family, champion_passed=before, candidate_passed=after)
        for n, (before, after) in enumerate(results)
    ]


def evidence(paired: Sequence[PairedItem], **changes: object) -> Evidence:
    fields: dict[str, object] = {
        "evaluation": "evaluation-1",
        "candidate": "c" * 64,
        "champion": "a" * 64,
        "in_service": "a" * 64,
        "sealed_set": "d" * 64,
        "candidate_asked": "d" * 64,
        "champion_asked": "d" * 64,
        "candidate_temperature": 1.0,
        "champion_temperature": 1.0,
        "items": tuple(paired),
        "evaluated_at": "2025-03-02T10:00:00+00:00",
        "measurements": good_measurements("2025-03-02T09:50:00+00:00"),
        "budget": Budget(quarter="2025-Q1", before=0),
        "cost": CostReport(answers=550, tokens=100, tokens_champion=100, calls=600, calls_champion=600),
    }
    return Evidence.model_validate({**fields, **changes})


def recorded_approval(verdict: str, person: str = "ada", decision: str = SHOWN) -> RecordedApproval:
    return RecordedApproval.model_validate({"person": person, "verdict": verdict, "decision": decision, "at": NOW})


def judged(gate: ModuleType, material: Evidence, rules: Section | None = None, now: str = NOW) -> GateFinding:
    found = gate.judge(material, rules or RULES[gate.GATE], GateContext(RULES, now))
    return found[0] if isinstance(found, tuple) else found


def decided(material: Evidence, policy: Policy = POLICY):
    return decide(material, policy, policy_digest=policy.digest, id="decision-1", made_at=NOW)


GOOD = [*items(150, 90, 5, 55), *items(150, 60, 5, 35, family="lcm")]
APPROVED = {"approvals": (recorded_approval("approve"),), "shown": (SHOWN,)}


# improvement


def test_a_clear_gain_passes_with_its_figures() -> None:
    finding = judged(improvement, evidence(GOOD))
    assert finding.outcome is GateOutcome.PASSED
    assert finding.figure == pytest.approx(100 * 140 / 550)
    assert finding.low is not None
    assert finding.low >= 1.0
    assert "150 gained, 10 lost" in finding.reason
    assert finding.would_change == ""


def test_a_clear_loss_fails() -> None:
    finding = judged(improvement, evidence(items(100, 5, 80, 200)))
    assert finding.outcome is GateOutcome.FAILED
    assert "gains more than 1 points" in finding.would_change


def test_a_small_gain_is_undecided_and_says_how_many_questions_would_decide() -> None:
    finding = judged(improvement, evidence(items(200, 40, 25, 135)))
    assert finding.outcome is GateOutcome.UNDECIDED
    assert "questions would decide" in finding.would_change
    needed = int(finding.would_change.split("about ")[1].split()[0])
    grown = needed / 400
    enough = judged(
        improvement, evidence(items(round(200 * grown), round(40 * grown), round(25 * grown), round(135 * grown)))
    )
    assert enough.low == pytest.approx(RULES.improvement.min_gain, abs=0.3)


def test_too_few_questions_never_decide_however_good() -> None:
    finding = judged(improvement, evidence(items(0, RULES.improvement.min_items - 1, 0, 0)))
    assert finding.outcome is GateOutcome.UNDECIDED
    assert "200" in finding.would_change


def test_lost_answers_count_for_neither_side() -> None:
    seen = pairs(tuple(items(10, 5, 2, 3, infra=50)))
    assert (seen.items, seen.gained, seen.lost) == (20, 5, 2)


def test_without_any_answer_nothing_is_shown() -> None:
    assert judged(improvement, evidence([])).outcome is GateOutcome.UNDECIDED
    assert judged(improvement, evidence(items(0, 0, 0, 0, infra=300))).outcome is GateOutcome.UNDECIDED


def test_the_champion_is_no_improvement_on_itself() -> None:
    finding = judged(improvement, evidence(GOOD, candidate="a" * 64))
    assert finding.outcome is GateOutcome.FAILED


@given(st.integers(0, 150), st.integers(0, 150), st.integers(0, 150), st.integers(0, 150))
def test_improvement_never_passes_where_the_interval_does_not(both: int, gained: int, lost: int, neither: int) -> None:
    finding = judged(improvement, evidence(items(both, gained, lost, neither)))
    if finding.outcome is GateOutcome.PASSED:
        assert finding.low is not None
        assert finding.low >= RULES.improvement.min_gain
        assert gained > lost
        assert both + gained + lost + neither >= RULES.improvement.min_items
    else:
        assert finding.would_change


def test_a_gain_that_chance_explains_is_not_shown_although_the_interval_reaches_it() -> None:
    rules = RULES.improvement.model_copy(update={"min_items": 10, "min_gain": 0.0, "alpha": 0.05})
    outcomes = [improvement.gain_outcome(PairCounts(10, gained, 0), rules, lambda: (1.0, 1.0)) for gained in (4, 6)]
    assert outcomes == [GateOutcome.UNDECIDED, GateOutcome.PASSED]


# non-regression


def test_every_family_is_judged_on_its_own() -> None:
    mixed = [*items(100, 100, 0, 100), *items(10, 0, 60, 10, family="lcm"), *items(3, 1, 0, 1, family="rare")]
    findings = {
        finding.gate: finding
        for finding in non_regression.judge(evidence(mixed), RULES.non_regression, GateContext(RULES, NOW))
    }
    assert findings["non_regression/gcd"].outcome is GateOutcome.PASSED
    assert findings["non_regression/lcm"].outcome is GateOutcome.FAILED
    assert findings["non_regression/rare"].outcome is GateOutcome.UNDECIDED
    assert "at 95 % over all nights" in findings["non_regression/gcd"].reason
    assert "20 are the least" in findings["non_regression/rare"].reason
    assert "20 questions of rare" in findings["non_regression/rare"].would_change


def test_a_family_that_tonight_does_not_ask_still_may_not_have_been_lost() -> None:
    """Its questions pay into the gain of all nights; so what they lost counts too."""
    lost = EarlierNight(evaluation="n1", items=tuple(items(10, 10, 60, 20, family="primes")))
    tonight = evidence(items(100, 150, 10, 100), earlier=(lost,))
    found = {
        one.gate: one.outcome for one in non_regression.judge(tonight, RULES.non_regression, GateContext(RULES, NOW))
    }
    assert found == {"non_regression/gcd": GateOutcome.PASSED, "non_regression/primes": GateOutcome.FAILED}
    assert decided(tonight).outcome is DecisionOutcome.REJECT


def test_a_family_that_may_be_worse_than_the_margin_is_undecided() -> None:
    finding = judged(non_regression, evidence(items(20, 3, 4, 5)))
    assert finding.outcome is GateOutcome.UNDECIDED
    assert "questions of gcd would decide" in finding.would_change


def test_a_family_without_any_change_passes_once_it_is_large_enough() -> None:
    finding = judged(non_regression, evidence(items(16, 0, 0, 16)))
    assert finding.outcome is GateOutcome.UNDECIDED
    assert finding.would_change == "about 47 questions of gcd would decide at this gain"
    finding = judged(non_regression, evidence(items(26, 0, 0, 26)))
    assert finding.outcome is GateOutcome.PASSED
    assert finding.figure == 0


def by_gate(gate: ModuleType, material: Evidence) -> dict[str, GateFinding]:
    found = gate.judge(material, RULES[gate.GATE], GateContext(RULES, NOW))
    return {finding.gate.partition("/")[2]: finding for finding in found}


def outcomes(found: dict[str, GateFinding]) -> dict[str, GateOutcome]:
    return {name: finding.outcome for name, finding in found.items()}


def night(number: int, paired: Sequence[PairedItem]) -> tuple[PairedItem, ...]:
    return tuple(item.model_copy(update={"task": f"{number}-{item.task}"}) for item in paired)


def test_a_family_that_passed_on_one_night_stays_passed_for_this_candidate() -> None:
    good, bad = night(1, items(50, 10, 0, 20)), night(2, items(40, 0, 14, 20))
    assert by_gate(non_regression, evidence([*good, *bad]))["gcd"].outcome is GateOutcome.UNDECIDED
    later = evidence(bad, earlier=(EarlierNight(evaluation="n1", items=good),))
    assert by_gate(non_regression, later)["gcd"].outcome is GateOutcome.PASSED


@table(
    ("own", "rows", "outcome", "word"),
    [
        (items(8, 0, 0, 4, family="own/a"), {"own/a": 300}, {"own/a": "undecided"}, "20 are the least"),
        (items(8, 0, 0, 4, family="own/a"), {"own/a": 12}, {"small_tasksets": "passed"}, "left out: own/a (12)"),
        (items(0, 0, 12, 0, family="own/a"), {"own/a": 12}, {"own/a": "failed"}, "at most"),
        (
            [*items(8, 0, 1, 4, family="own/a"), *items(9, 0, 0, 4, family="own/b")],
            {"own/a": 13, "own/b": 13},
            {"small_tasksets": "passed"},
            "own/a, own/b together: -3.8 points on 26 questions, which are all there are, so the observed loss decides",
        ),
        (
            [*items(8, 0, 3, 4, family="own/a"), *items(9, 0, 0, 4, family="own/b")],
            {"own/a": 15, "own/b": 13},
            {"small_tasksets": "failed"},
            "-10.7 points on 28 questions",
        ),
        (items(20, 1, 2, 7, family="own/a"), {"own/a": 30}, {"own/a": "passed"}, "alpha does not apply"),
        (items(20, 1, 6, 3, family="own/a"), {"own/a": 30}, {"own/a": "failed"}, "-16.7 points"),
        (items(20, 1, 2, 7, family="own/a"), {"own/a": 31}, {"own/a": "undecided"}, "would decide"),
    ],
    ids=[
        "generated",
        "alone",
        "all_wrong",
        "pooled",
        "pooled_and_worse",
        "all_asked",
        "all_asked_and_worse",
        "some_left",
    ],
)
def test_a_decision_never_waits_for_questions_that_cannot_exist(
    own: list[PairedItem], rows: dict[str, int], outcome: dict[str, str], word: str
) -> None:
    material = evidence([*items(100, 20, 0, 80), *own], rows=rows)
    for gate in (non_regression, retention):
        found = by_gate(gate, material)
        assert found.pop("gcd").outcome is GateOutcome.PASSED
        assert outcomes(found) == outcome
        finding = found.popitem()[1]
        assert word in finding.reason + finding.would_change or gate is retention


# retention


def anchored(family: str, *nights: Sequence[PairedItem], anchor: str = "b" * 64) -> RetainedTaskset:
    return RetainedTaskset(family=family, anchor=anchor, nights=tuple(map(tuple, nights)))


@table(
    ("per_night", "nights", "outcome"),
    [
        (8, 1, {"own/a": "undecided"}),
        (8, 4, {"own/a": "undecided"}),
        (8, 5, {"own/a": "passed"}),
        (3, 1, {"small_tasksets": "passed"}),
        (3, 5, {"small_tasksets": "passed"}),
    ],
)
def test_a_large_own_taskset_of_which_a_night_asks_little_holds_no_longer_than_the_policy_s_nights(
    per_night: int, nights: int, outcome: dict[str, str]
) -> None:
    """A row of a taskset is one of many that a night could ask, so it may never have asked them all."""
    paired = items(per_night - 2, 1, 1, 0, family="own/a")
    asked = [night(number, paired) for number in range(nights)]
    earlier = tuple(EarlierNight(evaluation=f"n{number}", items=one) for number, one in enumerate(asked[:-1]))
    found = by_gate(non_regression, evidence(asked[-1], earlier=earlier, rows={"own/a": 200}))
    assert outcomes(found) == outcome


def test_a_family_is_compared_with_its_anchor_and_not_with_the_champion() -> None:
    """As good as the champion, which had lost as much before."""
    lost = evidence(items(150, 5, 5, 40), retained=(anchored("gcd", items(130, 0, 45, 25)),))
    assert outcomes(by_gate(non_regression, lost)) == {"gcd": GateOutcome.PASSED}
    finding = by_gate(retention, lost)["gcd"]
    assert finding.outcome is GateOutcome.FAILED
    assert "against the anchor bbbbbbbbbbbb" in finding.reason
    assert "keeps what the anchor bbbbbbbbbbbb can do in gcd" in finding.would_change
    assert finding.figure == -22.5
    kept = evidence(items(150, 5, 5, 40), retained=(anchored("gcd", items(150, 5, 5, 40)),))
    assert by_gate(retention, kept)["gcd"].outcome is GateOutcome.PASSED


def test_the_champion_is_the_anchor_of_every_other_family() -> None:
    mixed = [*items(150, 5, 5, 40), *items(80, 0, 80, 40, family="lcm")]
    found = by_gate(retention, evidence(mixed, retained=(anchored("gcd", items(150, 5, 5, 40)),)))
    assert outcomes(found) == {"gcd": GateOutcome.PASSED, "lcm": GateOutcome.FAILED}


def test_a_family_with_an_anchor_that_no_night_asked_is_undecided_and_holds() -> None:
    material = evidence(GOOD, retained=(anchored("primes"),), **APPROVED)
    finding = by_gate(retention, material)["primes"]
    assert finding.outcome is GateOutcome.UNDECIDED
    assert finding.would_change == "evaluate the candidate again: a night measures it"
    assert decided(material).outcome is DecisionOutcome.HOLD
    gone = evidence(GOOD, retained=(anchored("primes"),), not_askable={"primes": "no such taskset"}, **APPROVED)
    assert by_gate(retention, gone)["primes"].reason == "left out: primes cannot be asked: no such taskset"
    assert decided(gone).outcome is DecisionOutcome.PROMOTE


def test_a_candidate_that_is_the_anchor_lost_nothing_to_it() -> None:
    found = by_gate(retention, evidence(GOOD, retained=(anchored("gcd", anchor="c" * 64),)))
    assert found["gcd"].reason == "gcd: the candidate is the anchor"


def test_the_candidates_of_a_quarter_that_were_better_share_alpha() -> None:
    paired = items(100, 4, 4, 52)
    levels = [
        by_gate(retention, evidence(paired, budget=Budget(quarter="2025-Q1", before=90, better=better)))["gcd"]
        for better in (0, 1, 11)
    ]
    assert [one.outcome.value for one in levels] == ["passed", "passed", "undecided"]
    assert ["97.5 %" in levels[0].reason, "99.17 %" in levels[1].reason, "99.97 %" in levels[2].reason] == [True] * 3
    assert retention.judge(evidence(paired, budget=None), RULES.retention, GateContext(RULES, NOW))[0].outcome is (
        GateOutcome.UNDECIDED
    )


def test_a_policy_without_the_gate_does_not_ask_for_it() -> None:
    gates = POLICY.gates.model_copy(update={"retention": None})
    without = POLICY.model_copy(update={"gates": gates})
    lost = evidence(GOOD, retained=(anchored("gcd", items(130, 0, 45, 25)),), **APPROVED)
    assert decided(lost).outcome is DecisionOutcome.REJECT
    assert decided(lost, without).outcome is DecisionOutcome.PROMOTE


# integrity and freshness


def test_the_same_questions_on_both_sides_pass() -> None:
    assert judged(integrity, evidence(GOOD)).outcome is GateOutcome.PASSED


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"candidate_asked": "e" * 64}, "candidate was not asked"),
        ({"champion_asked": "e" * 64}, "champion was not asked"),
        ({"items": tuple(GOOD + GOOD[:1])}, "more than once"),
        ({"candidate_temperature": 0.0}, "temperatures"),
    ],
)
def test_an_evaluation_that_contradicts_itself_is_quarantined(changes: dict[str, object], message: str) -> None:
    material = evidence(GOOD, **{**APPROVED, **changes})
    finding = judged(integrity, material)
    assert finding.outcome is GateOutcome.FAILED
    assert message in finding.reason
    assert decided(material).outcome is DecisionOutcome.QUARANTINE


def test_broken_infrastructure_holds_and_never_accuses() -> None:
    material = evidence([*GOOD, *items(0, 0, 0, 0, family="gcd2", infra=60)], **APPROVED)
    finding = judged(integrity, material)
    assert finding.outcome is GateOutcome.UNDECIDED
    assert finding.figure == pytest.approx(100 * 60 / (2 * 610))
    assert decided(material).outcome is DecisionOutcome.HOLD


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"in_service": "b" * 64}, "another champion"),
        ({"evaluated_at": "2025-02-20T10:00:00+00:00"}, "hours old"),
        ({"evaluated_at": "2025-03-02T13:00:00+00:00"}, "future"),
    ],
)
def test_evidence_about_the_past_or_the_future_is_undecided(changes: dict[str, object], message: str) -> None:
    finding = judged(freshness, evidence(GOOD, **changes), now=NOW)
    assert finding.outcome is GateOutcome.UNDECIDED
    assert message in finding.reason


def test_the_first_champion_needs_none_in_service() -> None:
    assert judged(freshness, evidence(GOOD, in_service=None), now=NOW).outcome is GateOutcome.PASSED


def test_times_without_a_zone_are_utc() -> None:
    finding = judged(freshness, evidence(GOOD, evaluated_at="2025-03-02T10:00:00Z"), now=NOW[:19])
    assert finding.figure == pytest.approx(2.0)


# approval


@table(
    ("approvals", "outcome"),
    [
        ((), GateOutcome.UNDECIDED),
        ((recorded_approval("approve"),), GateOutcome.PASSED),
        ((recorded_approval("reject"),), GateOutcome.FAILED),
        ((recorded_approval("reject"), recorded_approval("approve")), GateOutcome.PASSED),
        ((recorded_approval("approve"), recorded_approval("reject")), GateOutcome.FAILED),
        ((recorded_approval("approve"), recorded_approval("reject", "bob")), GateOutcome.FAILED),
        ((recorded_approval("approve", decision="6" * 64),), GateOutcome.UNDECIDED),
        ((recorded_approval("approve"), recorded_approval("reject", decision="6" * 64)), GateOutcome.PASSED),
    ],
)
def test_last_words_on_what_was_shown_count(approvals: tuple[RecordedApproval, ...], outcome: GateOutcome) -> None:
    assert (
        judged(approval, evidence(GOOD, approvals=approvals, shown=(SHOWN,)), RULES.approval, now=NOW).outcome
        is outcome
    )


def test_two_people_means_two_different_people() -> None:
    rules = RULES.approval.model_copy(update={"people": 2})
    twice = evidence(GOOD, approvals=(recorded_approval("approve"), recorded_approval("approve")), shown=(SHOWN,))
    finding = judged(approval, twice, rules, now=NOW)
    assert finding.outcome is GateOutcome.UNDECIDED
    assert "1 more person" in finding.would_change
    both = evidence(GOOD, approvals=(recorded_approval("approve"), recorded_approval("approve", "bob")), shown=(SHOWN,))
    assert judged(approval, both, rules, now=NOW).outcome is GateOutcome.PASSED


def test_a_policy_without_approval_still_listens_to_a_rejection() -> None:
    rules = RULES.approval.model_copy(update={"required": False})
    assert judged(approval, evidence(GOOD), rules, now=NOW).outcome is GateOutcome.PASSED
    said_no = evidence(GOOD, approvals=(recorded_approval("reject"),), shown=(SHOWN,))
    assert judged(approval, said_no, rules, now=NOW).outcome is GateOutcome.FAILED


# the decision


def test_a_good_candidate_waits_for_a_person_and_is_then_promoted() -> None:
    waiting = decided(evidence(GOOD))
    assert waiting.outcome is DecisionOutcome.HOLD
    assert waiting.reason == "approval: 0 of 1 people approved"
    assert waiting.would_change == "the approval of 1 more person"
    approved = decided(
        evidence(GOOD, approvals=(recorded_approval("approve", decision=waiting.digest()),), shown=(waiting.digest(),))
    )
    assert approved.outcome is DecisionOutcome.PROMOTE
    assert approved.would_change == ""
    assert approved.policy == POLICY.digest


def test_a_person_can_reject_what_every_figure_praises() -> None:
    no = decided(evidence(GOOD, approvals=(recorded_approval("reject"),), shown=(SHOWN,)))
    assert no.outcome is DecisionOutcome.REJECT
    assert "rejected by ada" in no.reason


def test_a_regression_in_one_family_rejects_an_approved_gain() -> None:
    mixed = [*items(100, 200, 0, 100), *items(10, 0, 40, 10, family="lcm")]
    no = decided(evidence(mixed, **APPROVED))
    assert no.outcome is DecisionOutcome.REJECT
    assert no.reason.startswith("non_regression/lcm")


def test_many_undecided_families_are_named_in_one_breath_and_found_one_by_one() -> None:
    names = ["a", "b", "c", "d"]
    small = [item for name in names for item in items(2, 2, 0, 0, family=name)]
    held = decided(evidence([*items(150, 100, 0, 50), *small], **APPROVED))
    assert held.outcome is DecisionOutcome.HOLD
    assert "non_regression: undecided for 4 tasksets (a, b, c, d)" in held.reason
    assert held.would_change.endswith("and likewise for 3 other tasksets")
    undecided = {finding.gate for finding in held.findings if finding.outcome is GateOutcome.UNDECIDED}
    assert undecided >= {f"non_regression/{name}" for name in names}


def test_empty_evidence_is_held() -> None:
    assert decided(evidence([], **APPROVED)).outcome is DecisionOutcome.HOLD


def test_equal_evidence_gives_an_equal_decision_and_digest() -> None:
    assert decided(evidence(GOOD)).digest() == decided(evidence(GOOD)).digest()


def test_the_digest_of_a_decision_is_of_its_canonical_json() -> None:
    decision = decided(evidence(GOOD)).model_copy(update={"reason": "größer"})
    text = json.dumps(decision.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert decision.digest() == hashlib.sha256(text.encode("utf-8")).hexdigest()


def with_rules(*rules: OutcomeRule) -> Policy:
    return POLICY.model_copy(update={"promotion": PromotionRules.model_construct(rules=rules)})


def finding(gate: str, outcome: GateOutcome) -> GateFinding:
    return GateFinding(gate=gate, outcome=outcome, figure=None, reason="")


GATES = [*sorted(must_be_found(POLICY) - {"non_regression"}), "non_regression/gcd", "non_regression/lcm"]


@given(st.lists(st.tuples(st.sampled_from(GATES), st.sampled_from(GateOutcome)), max_size=20))
def test_nothing_is_promoted_unless_all_was_asked_and_all_passed(given_: list[tuple[str, GateOutcome]]) -> None:
    findings = [finding(gate, outcome) for gate, outcome in given_]
    outcome = outcome_of(findings, POLICY)
    every = all(one is GateOutcome.PASSED for _, one in given_)
    complete = {gate.split("/")[0] for gate, _ in given_} >= must_be_found(POLICY)
    assert (outcome is DecisionOutcome.PROMOTE) == (every and complete)
    if any(one is GateOutcome.FAILED for gate, one in given_ if gate != "selftest"):
        failed = {gate for gate, one in given_ if one is GateOutcome.FAILED}
        assert outcome is not DecisionOutcome.PROMOTE
        assert (outcome is DecisionOutcome.HOLD) == ("selftest" in failed and not failed & QUARANTINED)


QUARANTINED = {"approval", "integrity", "contamination", "hacks", "egress"}
"""Their rules stand above that of the self-test; a person's rejection rejects."""


@table("missing", GATES)
def test_a_gate_that_was_not_asked_holds(missing: str) -> None:
    findings = [finding(gate, GateOutcome.PASSED) for gate in GATES if gate.split("/")[0] != missing.split("/")[0]]
    assert outcome_of(findings, POLICY) is DecisionOutcome.HOLD
    assert outcome_of([*findings, finding(missing, GateOutcome.PASSED)], POLICY) is DecisionOutcome.PROMOTE


def test_the_first_rule_that_fits_decides_and_none_means_hold() -> None:
    findings = [finding(gate, GateOutcome.PASSED) for gate in GATES if gate not in ("hacks", "cost")]
    bad = [*findings, finding("hacks", GateOutcome.FAILED), finding("cost", GateOutcome.FAILED)]
    assert outcome_of(bad, POLICY) is DecisionOutcome.QUARANTINE
    turned = with_rules(*reversed(POLICY.promotion.rules))
    assert outcome_of(bad, turned) is DecisionOutcome.REJECT
    silent = with_rules()
    assert outcome_of(bad, silent) is DecisionOutcome.HOLD
    every = [finding(gate, GateOutcome.PASSED) for gate in GATES]
    assert outcome_of(every, silent) is DecisionOutcome.HOLD
    assert outcome_of(every, POLICY) is DecisionOutcome.PROMOTE


def test_an_old_approval_does_not_count_and_a_rejection_never_grows_old() -> None:
    late = "2025-03-20T12:00:00+00:00"
    approved = evidence(GOOD, approvals=(recorded_approval("approve"),), shown=(SHOWN,))
    finding_ = judged(approval, approved, RULES.approval, now=late)
    assert finding_.outcome is GateOutcome.UNDECIDED
    assert "ada is more than 168 hours old" in finding_.reason
    rejected = evidence(GOOD, approvals=(recorded_approval("reject"),), shown=(SHOWN,))
    assert judged(approval, rejected, RULES.approval, now=late).outcome is GateOutcome.FAILED


def test_a_decision_says_figure_threshold_and_reason_of_every_gate_that_the_policy_asks_for() -> None:
    found = decided(evidence(GOOD))
    assert {one.gate.split("/")[0] for one in found.findings} == must_be_found(POLICY)
    assert all(one.reason and one.threshold is not None and one.figure is not None for one in found.findings)
    assert all(bool(one.would_change) == (one.outcome is not GateOutcome.PASSED) for one in found.findings)


def test_a_gate_that_the_policy_does_not_name_is_not_asked() -> None:
    lax = POLICY.model_copy(update={"gates": RULES.model_copy(update={"hacks": None, "drift": None})})
    found = decided(evidence(GOOD, measurements=good_measurements("2025-03-02T09:50:00+00:00")), lax)
    assert {"hacks", "drift"}.isdisjoint(one.gate for one in found.findings)
    assert found.reason == "approval: 0 of 1 people approved"
    assert POLICY.asks_for("hacks")
    assert not lax.asks_for("hacks")
