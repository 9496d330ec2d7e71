"""What a candidate waits for: said so that a person signs only where a signature helps now."""

from __future__ import annotations

import pytest
import test_daemon_governance as built
from people import admit, approve

from appliance.client.messages import StartCycle
from appliance.config.configuration import Settings
from appliance.daemon.api.read_models import status_of
from appliance.daemon.contract import RefusedByPolicyError
from appliance.daemon.coordination.core import Core
from appliance.daemon.service import decision
from appliance.daemon.service.decision import decide_cycle
from appliance.daemon.service.readiness import Readiness
from appliance.daemon.views.cycle_views import YOURS, CandidateNeed, candidate_wait
from appliance.records.evaluations import CANDIDATE_RUN, ItemResult, ModelResults
from appliance.records.rollouts import Purpose, Rollout, RolloutEnd
from appliance.records.training import Judged
from appliance.reporting.as_text import as_text
from appliance.reporting.night_report import night_report
from policies.contract.decision import DecisionOutcome
from verifiers.contract.verdict import Outcome, Verdict

HOUR_LATER = "2026-01-02T04:04:05.000+00:00"
MONTH_LATER = "2026-02-02T04:04:05.000+00:00"


@pytest.fixture
def core(data, monkeypatch):
    monkeypatch.setattr(Readiness, "require", lambda *_, **__: None)  # the folders here are no models
    with Core(Settings(data=data), now=lambda: HOUR_LATER) as running:
        champion = built.put_model(data, running.ledger, b"champion")
        running.ledger.set_aliases({"champion": champion}, "first", built.AT)
        admit(running, "ada", "bob")
        yield running


def few_gained(weights: str, gained: int, temperature: float) -> ModelResults:
    """Half of the questions passed, and `gained` more of the others."""
    items = tuple(
        ItemResult(
            task=task.id, family=task.taskset, passed=n % 2 == 0 or (n * 7 % 400) < 2 * gained, calls=1, failed_calls=0
        )
        for n, task in enumerate(built.SEALED.tasks)
    )
    return ModelResults(weights=weights, temperature=temperature, items=items, tokens=1000, seconds=1.0)


def wanting_evidence(core: Core, monkeypatch) -> str:
    """A candidate that gained, and not by enough for one night."""
    monkeypatch.setattr(built, "results", few_gained)
    return built.put_decided(core, core.ledger.alias("champion"), b"a little better", before=0, after=7)


def waits(core: Core, at: str = HOUR_LATER):
    return candidate_wait(core.ledger, core.policy, core.cycles.unfinished(), at)


def test_without_a_candidate_nothing_waits(core) -> None:
    assert waits(core) == (CandidateNeed.NOTHING, "")
    assert status_of(core).candidate_waits_for == ""


def test_a_candidate_that_passed_everything_else_waits_for_a_person_as_long_as_its_evaluation_is_fresh(core) -> None:
    built.put_decided(core, core.ledger.alias("champion"), b"better")
    assert waits(core) == (CandidateNeed.PERSON, YOURS)
    assert waits(core, MONTH_LATER).need is CandidateNeed.OTHER
    assert "too old" in waits(core, MONTH_LATER).text


def test_a_candidate_that_is_evaluated_waits_for_that(core) -> None:
    candidate = built.put_decided(core, core.ledger.alias("champion"), b"better")
    cycle = core.cycles.evaluate(candidate)
    assert waits(core) == (CandidateNeed.EVALUATION, f"being evaluated by {cycle.id}: `assay cycle watch`")
    assert status_of(core).candidate_waits_for == waits(core).text


def test_a_candidate_without_enough_evidence_waits_for_another_night_also_once_it_was_signed(core, monkeypatch) -> None:
    candidate = wanting_evidence(core, monkeypatch)
    assert waits(core).need is CandidateNeed.EVIDENCE
    assert "`assay cycle start` asks the same candidate fresh questions" in waits(core).text
    with pytest.raises(RefusedByPolicyError) as refused:
        approve(core, candidate)
    assert "Your approval is on record; it counts for this evaluation alone" in str(refused.value)
    assert "`assay cycle start` asks the same candidate fresh questions" in refused.value.hint
    assert len(core.ledger.approvals(candidate=candidate)) == 1
    assert waits(core).need is CandidateNeed.EVIDENCE


def test_what_no_signature_can_lift_waits_for_no_person(core) -> None:
    champion = core.ledger.alias("champion")
    built.put_decided(core, champion, b"worse", before=8, after=3)
    assert waits(core).need is CandidateNeed.OTHER
    assert "no signature" in waits(core).text
    built.put_decided(core, champion, b"better")
    core.ledger.set_aliases({"champion": built.put_model(core.data, core.ledger, b"new")}, "another", HOUR_LATER)
    assert waits(core).need is CandidateNeed.OTHER
    assert "another champion" in waits(core).text


def test_a_night_by_hand_begins_no_other_training_while_a_candidate_waits_for_a_person_alone(core) -> None:
    candidate = built.put_decided(core, core.ledger.alias("champion"), b"better")
    with pytest.raises(RefusedByPolicyError) as refused:
        core.cycles.start("night", anew=StartCycle().anew)
    assert candidate[:12] in str(refused.value)
    assert "--anew" in refused.value.hint
    assert core.cycles.unfinished() is None
    assert core.cycles.start("night", anew=True).id.startswith("night-")


def test_a_night_by_the_clock_and_one_that_asks_again_begin_as_ever(core, monkeypatch) -> None:
    wanting_evidence(core, monkeypatch)
    asked_again = core.cycles.start("night", anew=False)
    core.cycles.cancel(asked_again.id)
    built.put_decided(core, core.ledger.alias("champion"), b"better")
    assert core.cycles.start("night", scheduled=True).id


def test_a_night_that_trained_nothing_is_reported_with_its_figures_and_its_decision(core, monkeypatch) -> None:
    monkeypatch.setattr(decision, "utc_now", lambda: HOUR_LATER)
    champion = core.ledger.alias("champion")
    candidate = built.put_decided(core, champion, b"better")
    cycle = core.cycles.evaluate(candidate)
    [asked] = core.ledger.evaluations(candidate=candidate)
    core.ledger.put_evaluation(asked.model_copy(update={"id": f"{cycle.id}.evaluation", "cycle": cycle.id}))
    decide_cycle(cycle, core.ledger, core.policy, core.data)
    detail = core.cycles.detail(cycle.id)
    assert [one.cycle for one in detail.evaluations] == [cycle.id]
    assert [one.evaluation for one in detail.decisions] == [f"{cycle.id}.evaluation"]
    said = as_text(night_report(detail, []))
    assert "before" in said
    assert "80 %" in said
    assert "decision: hold: approval: 0 of 1 people approved" in said
    assert "would change it: the approval of 1 more person" in said
    assert "\n\n\n" not in said


def test_a_look_at_the_sealed_questions_is_not_called_off_once_the_candidate_has_answered(core) -> None:
    """Whoever has seen that it did badly could otherwise look again until it does well, and no budget counts that."""
    candidate = built.put_decided(core, core.ledger.alias("champion"), b"better")
    cycle = core.cycles.evaluate(candidate)
    rollout = Rollout(
        id=f"{cycle.id}.evaluation.1.q.0",
        cycle=cycle.id,
        step=CANDIDATE_RUN,
        task="q",
        sample=0,
        purpose=Purpose.EVALUATION,
        temperature=1.0,
        nodes=(),
        ended=RolloutEnd.ANSWERED,
        answer="6",
        answers=1,
        seconds=0.1,
    )
    wrong = Verdict(outcome=Outcome.FAIL, score=0.0, reason="no", verifier="v", version="1", seconds=0.0)
    core.ledger.put_rollouts([Judged(rollout=rollout, verdict=wrong, family="gcd")])
    with pytest.raises(RefusedByPolicyError, match="it must be decided"):
        core.cycles.cancel(cycle.id)
    assert core.cycles.unfinished().id == cycle.id


def test_what_was_taken_out_of_service_does_not_come_back_by_an_evaluation_from_before(core, monkeypatch) -> None:
    monkeypatch.setattr(decision, "utc_now", lambda: HOUR_LATER)
    candidate = built.put_decided(core, core.ledger.alias("champion"), b"better")
    [asked] = core.ledger.evaluations(candidate=candidate)
    approve(core, candidate)
    core.governance.rollback("ada", "it is rude")
    cycle = core.cycles.evaluate(candidate)
    core.ledger.put_evaluation(asked.model_copy(update={"id": f"{cycle.id}.evaluation", "cycle": cycle.id}))
    made = decide_cycle(cycle, core.ledger, core.policy, core.data)
    assert made.outcome is DecisionOutcome.QUARANTINE
    assert "it is rude" in made.reason
