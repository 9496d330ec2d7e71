"""Nothing goes into service but what the policy admits, a person approved, and the disk still holds byte by byte."""

from __future__ import annotations

import threading
from pathlib import Path

import people
import pytest
from checkpoint_records import checkpoint_record
from good_evidence import good_measurements
from people import admit, approval_envelope, approve, newest, reject

from appliance.config.configuration import Settings
from appliance.daemon.contract import NotThereError, RefusedByPolicyError
from appliance.daemon.coordination.core import Core
from appliance.daemon.service.decision import next_phase
from appliance.daemon.service.readiness import Readiness
from appliance.errors import exit_code
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import write_by_digest
from appliance.ledger.history import history_of
from appliance.ledger.ledger import Ledger
from appliance.promotion.evidence import PromotionError, decision_on
from appliance.records.evaluations import Evaluation, ItemResult, ModelResults
from curriculum.sealed import sealed_set
from policies.contract.decision import DecisionOutcome
from policies.contract.evidence import HackReport
from policies.policy import load

SEALED = sealed_set(800, seed=4)
AT = "2026-01-02T03:04:05+00:00"


def results(weights: str, passes: int, temperature: float) -> ModelResults:
    """Passes `passes` of every ten questions."""
    items = tuple(
        ItemResult(task=task.id, family=task.taskset, passed=n * 7 % 10 < passes, calls=1, failed_calls=0)
        for n, task in enumerate(SEALED.tasks)
    )
    return ModelResults(weights=weights, temperature=temperature, items=items, tokens=1000, seconds=1.0)


def put_model(data: Path, ledger: Ledger, content: bytes) -> str:
    digest = write_by_digest(data / "models", {"model.safetensors": content, "config.json": b"{}"})
    ledger.put_checkpoint(checkpoint_record(digest, created=AT))
    return digest


def put_decided(
    core: Core, champion: str, content: bytes, *, before: int = 3, after: int = 8, hacks: HackReport | None = None
) -> str:
    """A candidate that was evaluated against the champion and decided on, as a cycle leaves it."""
    candidate = put_model(core.data, core.ledger, content)
    evaluation = Evaluation(
        id=f"evaluation-{candidate[:6]}",
        cycle="c",
        sealed_set=SEALED.digest,
        candidate=results(candidate, after, 1.0),
        champion=results(champion, before, 1.0),
        candidate_greedy=results(candidate, after, 0.0),
        champion_greedy=results(champion, before, 0.0),
        measurements=good_measurements(AT)
        if hacks is None
        else good_measurements(AT).model_copy(update={"hacks": hacks}),
        created=AT,
        policy=core.policy.digest,
    )
    core.ledger.put_evaluation(evaluation)
    core.ledger.put_decision(
        decision_on(
            evaluation,
            core.policy,
            in_service=champion,
            history=history_of(evaluation, core.ledger),
            id=f"decided-{candidate[:6]}",
            made_at=AT,
        )
    )
    core.ledger.set_aliases({"candidate": candidate}, "trained", AT)
    return candidate


@pytest.fixture
def core(data):
    """A core with a champion in service, on a day when the evaluations are an hour old."""
    with Core(Settings(data=data), now=lambda: "2026-01-02T04:04:05.000+00:00") as running:
        champion = put_model(data, running.ledger, b"champion")
        running.ledger.set_aliases({"champion": champion}, "first", AT)
        admit(running, "ada", "bob")
        yield running


def test_an_approved_candidate_goes_into_service_and_can_be_taken_back(core) -> None:
    champion = core.ledger.alias("champion")
    candidate = put_decided(core, champion, b"better")
    shown = core.ledger.decisions(candidate=candidate)[0]
    approved = core.governance.approve(candidate[:8], approval_envelope(core, shown))
    assert approved.decision.outcome is DecisionOutcome.PROMOTE
    assert approved.approval.decision == shown.digest()
    assert approved.aliases == {"champion": candidate, "candidate": None, "previous": champion, "canary": None}
    assert core.ledger.decisions(candidate=candidate)[0] == approved.decision
    with pytest.raises(PromotionError, match="a rollback would no longer withdraw"):
        core.governance.rollback("ada", "another was in service when it was asked for", champion)
    for anchors in ({"anchor/gcd": champion, "anchor/lcm": champion}, {"anchor/gcd": candidate}):
        core.ledger.set_aliases(anchors, "better there", AT)
    assert core.governance.rollback("ada", "it is rude", candidate)["champion"] == champion
    assert core.ledger.alias("anchor/gcd") == champion, "the anchor before it"
    assert "it is rude" in core.ledger.alias_history()[0]["reason"]
    with pytest.raises(PromotionError):
        core.governance.rollback("ada")


def test_a_model_out_of_service_is_evaluated_anew_before_it_can_be_approved_again(core, monkeypatch) -> None:
    champion = core.ledger.alias("champion")
    candidate = put_decided(core, champion, b"better")
    approve(core, candidate)
    core.governance.rollback("ada", "it is rude")
    with pytest.raises(RefusedByPolicyError):
        approve(core, candidate)
    monkeypatch.setattr(Readiness, "require", lambda *_, **__: None)  # the folders here are no models
    cycle = core.cycles.evaluate(candidate)
    assert next_phase(cycle, core.ledger) == "prepare", "the exam is fixed first"
    assert {name: cycle.plan[name] for name in ("start", "candidate")} == {"start": champion, "candidate": candidate}
    assert core.ledger.alias("candidate") == candidate
    with pytest.raises(RefusedByPolicyError, match="is not finished"):
        core.cycles.evaluate(candidate)
    core.cycles.cancel(cycle.id)
    assert core.ledger.alias("candidate") == candidate, "an earlier decision is about it"
    with pytest.raises(RefusedByPolicyError, match="is the champion itself"):
        core.cycles.evaluate(champion)


def test_a_rollback_does_not_land_at_what_a_person_rejected_since_it_was_in_service(core) -> None:
    first = put_decided(core, core.ledger.alias("champion"), b"better")
    approve(core, first)
    second = put_decided(core, first, b"better still")
    approve(core, second)
    assert core.ledger.alias("previous") == first
    reject(core, first)
    with pytest.raises(PromotionError, match="was rejected by ada") as met:
        core.governance.rollback("bob")
    assert "promote another candidate" in met.value.hint
    assert core.ledger.alias("champion") == second
    with pytest.raises(RefusedByPolicyError, match="Your approval is on record"):
        approve(core, first)
    assert core.governance.rollback("bob")["champion"] == first


def test_an_approval_does_not_make_a_candidate_better(core) -> None:
    champion = core.ledger.alias("champion")
    candidate = put_decided(core, champion, b"worse", before=8, after=3)
    with pytest.raises(RefusedByPolicyError, match="improvement") as met:
        approve(core, "candidate")
    assert (exit_code(met.value), bool(met.value.hint)) == (4, True)
    assert core.ledger.alias("champion") == champion
    assert [approval.person for approval in core.ledger.approvals(candidate=candidate)] == ["ada"]
    assert core.ledger.decisions(candidate=candidate)[0].outcome is DecisionOutcome.REJECT


def test_a_word_on_another_decision_than_the_newest_has_no_effect(core) -> None:
    champion = core.ledger.alias("champion")
    candidate = put_decided(core, champion, b"better")
    stale = newest(core, candidate).model_copy(update={"reason": "it is the best that there ever was"})
    with pytest.raises(RefusedByPolicyError, match="another decision: a newer decision"):
        core.governance.approve(candidate, approval_envelope(core, stale))
    assert people.refusals(core) == ["another decision"]
    assert core.ledger.approvals(candidate=candidate) == []
    assert core.ledger.alias("champion") == champion


@pytest.mark.parametrize("harm", ["changed", "missing", "another model", "link"])
def test_what_is_not_on_disk_byte_by_byte_never_goes_into_service(core, data, harm) -> None:
    champion = core.ledger.alias("champion")
    candidate = put_decided(core, champion, b"better")
    folder = data / "models" / candidate
    if harm == "changed":
        (folder / "model.safetensors").write_bytes(b"bitter")
    elif harm == "missing":
        (folder / "model.safetensors").unlink()
    else:
        folder.rename(data / "aside")
        if harm == "link":
            folder.symlink_to(data / "aside")
        else:
            (data / "models" / champion).rename(folder)
    with pytest.raises(CheckpointError) as met:
        approve(core, "candidate")
    assert exit_code(met.value) == 5
    assert core.ledger.alias("champion") == champion
    assert core.ledger.approvals(candidate=candidate) == []


def test_a_rejected_candidate_is_out_and_stays_out_until_the_same_person_approves(core) -> None:
    champion = core.ledger.alias("champion")
    candidate = put_decided(core, champion, b"better")
    rejected = reject(core, "candidate")
    assert rejected.decision.outcome is DecisionOutcome.REJECT
    assert rejected.aliases == {"champion": champion, "candidate": None, "previous": None, "canary": None}
    with pytest.raises(NotThereError, match="the alias candidate is not set"):
        approve(core, "candidate", "bob")
    with pytest.raises(RefusedByPolicyError, match="approval"):
        approve(core, candidate, "bob")
    assert core.ledger.alias("champion") == champion


def test_a_candidate_that_was_compared_with_an_earlier_champion_is_not_admitted(core) -> None:
    champion = core.ledger.alias("champion")
    first = put_decided(core, champion, b"better")
    second = put_decided(core, champion, b"also better")
    approve(core, first)
    with pytest.raises(RefusedByPolicyError, match="another champion"):
        approve(core, second)
    assert core.ledger.alias("champion") == first
    with pytest.raises(RefusedByPolicyError, match="already in service"):
        approve(core, first)


def test_of_many_who_approve_at_once_one_moves_the_aliases(core) -> None:
    champion = core.ledger.alias("champion")
    candidate = put_decided(core, champion, b"better")
    outcomes: list[str] = []
    admit(core, *(f"person{n}" for n in range(8)))
    envelopes = [approval_envelope(core, newest(core, candidate), f"person{n}") for n in range(8)]

    def say(envelope: bytes) -> None:
        try:
            core.governance.approve(candidate, envelope)
        except RefusedByPolicyError:
            outcomes.append("refused")
        else:
            outcomes.append("promoted")

    threads = [threading.Thread(target=say, args=(envelope,)) for envelope in envelopes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["promoted"] + ["refused"] * 7
    assert (core.ledger.alias("champion"), core.ledger.alias("previous")) == (candidate, champion)


def test_a_decision_that_was_not_carried_out_before_a_kill_is_carried_out_at_the_next_start(data) -> None:
    data.mkdir()
    packaged = Path(load.__code__.co_filename).with_name("default_policy.toml").read_text()
    (data / "policy.toml").write_text(packaged.replace("required = true", "required = false"))
    with Core(Settings(data=data), now=lambda: AT) as running:
        champion = put_model(data, running.ledger, b"champion")
        running.ledger.set_aliases({"champion": champion}, "first", AT)
        candidate = put_decided(running, champion, b"better")
        assert running.ledger.decisions(candidate=candidate)[0].outcome is DecisionOutcome.PROMOTE
    with Core(Settings(data=data), now=lambda: AT) as running:
        assert (running.ledger.alias("champion"), running.ledger.alias("candidate")) == (candidate, None)
    with Core(Settings(data=data), now=lambda: AT) as running:
        assert running.ledger.alias("previous") == champion


def test_a_held_candidate_is_not_carried_out_by_a_restart(core, data) -> None:
    champion = core.ledger.alias("champion")
    put_decided(core, champion, b"better")
    core.governance.reconcile()
    assert core.ledger.alias("champion") == champion


def test_names_are_aliases_or_the_first_six_digits_and_more(core) -> None:
    champion = core.ledger.alias("champion")
    for name in ("champion", champion, champion[:6]):
        assert core.governance.digest_of(name) == champion
    for name in (champion[:5], "", "../..", "candidate", "f" * 64):
        with pytest.raises(NotThereError):
            core.governance.digest_of(name)


def test_two_models_are_compared_on_the_items_that_both_answered(core) -> None:
    champion = core.ledger.alias("champion")
    candidate = put_decided(core, champion, b"better")
    found = core.governance.compare("champion", "candidate")
    assert (found.a, found.b, found.items) == (champion, candidate, 800)
    assert (found.passed_a, found.passed_b, found.gained, found.lost) == (240, 640, 400, 0)
    assert (found.greedy_a, found.greedy_b) == (0.3, 0.8)
    assert sum(family.items for family in found.families) == 800
    turned = core.governance.compare("candidate", "champion")
    assert (turned.gained, turned.lost) == (0, 400)
    with pytest.raises(NotThereError):
        core.governance.compare("champion", champion[:10])
