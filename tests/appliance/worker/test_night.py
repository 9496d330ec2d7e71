"""A night goes from a champion to a decision, on record at every step, and goes on wherever it was cut short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from short_nights import SHORT, cycle_of, run_night

from appliance.learning.checkpoints import verify
from appliance.ledger.ledger import LedgerError
from appliance.ledger.sqlite import SqliteLedger
from appliance.places import parse_policy
from appliance.promotion import decision_on
from appliance.records import CycleState, StepRecord
from appliance.worker.allowed import allowed
from appliance.worker.equipment import Equipment
from appliance.worker.practice import tasks_with_signal
from appliance.worker.progress import utc_now
from appliance.worker.seeds import derive
from curriculum.registry import make_problem, problem_of
from curriculum.sealed import TaskStream, question_key, sealed_set
from curriculum.task import Split, Task
from policies.decision import DecisionOutcome
from policies.policy import load, read_content
from runtime.errors import InfrastructureError
from runtime.sandbox import Priority, Session, Tier


def counts(ledger: SqliteLedger, name: str) -> dict[str, int]:
    return {
        **ledger.rollout_counts(name),
        "steps": len(ledger.recorded_steps(name)),
        "checkpoints": len(ledger.checkpoints()),
        "evaluations": len(ledger.evaluations()),
        "decisions": len(ledger.decisions()),
    }


WHOLE = {
    "train": 3 * 4 * 8,
    "validation": 3 * 4,
    "evaluation": 4 * 10 + 4,
    "steps": 3,
    "checkpoints": 2,
    "evaluations": 1,
    "decisions": 1,
}


def test_a_night_leaves_every_record_and_waits_for_a_person(equipment: Equipment, ledger: SqliteLedger) -> None:
    decision = run_night(equipment, "n")
    assert counts(ledger, "n") == WHOLE
    cycle = ledger.cycle("n")
    assert cycle is not None
    assert cycle.state is CycleState.DONE
    assert set(cycle.seconds) >= {"prepare", "training", "evaluation", "decision"}
    assert decision.outcome is not DecisionOutcome.PROMOTE
    candidate = ledger.checkpoint(decision.candidate)
    assert candidate is not None
    assert candidate.parent == ledger.alias("champion") == decision.champion
    assert verify(equipment.data / candidate.folder) == candidate.manifest
    assert ledger.alias("candidate") == candidate.manifest
    assert list((equipment.data / "cycles").iterdir()) == []


def test_a_night_measures_what_the_gates_ask_for(equipment: Equipment, ledger: SqliteLedger) -> None:
    run_night(equipment, "n")
    (evaluation,) = ledger.evaluations()
    found = evaluation.gathered
    assert found.selftest is not None
    assert (found.selftest.accepted, found.selftest.rejected, found.selftest.untested) == (0, 0, ())
    assert found.selftest.attacks > 20
    assert found.selftest.tested == found.selftest.installed
    assert found.hacks is not None
    assert (found.hacks.impossible, found.hacks.passed, found.hacks.answers) == (4, 0, 10)
    assert found.contamination is not None
    assert (found.contamination.sealed, found.contamination.found) == (10, 0)
    assert found.contamination.trained >= 3 * 4
    assert found.egress is not None
    assert (found.egress.held, found.egress.open) == (found.egress.tried, ())
    assert found.drift is not None
    assert found.drift.tokens > 0
    assert 0 < found.drift.kl_champion == found.drift.kl_base < 1
    assert found.drift.length > 0


def test_a_candidate_held_for_want_of_evidence_is_asked_fresh_questions_and_none_is_trained(
    equipment: Equipment, ledger: SqliteLedger
) -> None:
    first = run_night(equipment, "n")
    (evaluation,) = ledger.evaluations()
    better = tuple(item.model_copy(update={"passed": True}) for item in evaluation.candidate.items)
    wish = evaluation.model_copy(
        update={"id": "wish", "candidate": evaluation.candidate.model_copy(update={"items": better})}
    )
    ledger.put_evaluation(wish)
    held = decision_on(
        wish, equipment.policy, in_service=first.champion, history=[], id="wish.decision", made_at=utc_now()
    )
    assert held.outcome is DecisionOutcome.HOLD
    ledger.put_decision(held)
    second = run_night(equipment, "m", seed=1)
    assert second.candidate == first.candidate
    assert ledger.recorded_steps("m") == []
    assert ledger.rollout_counts("m") == {"evaluation": 4 * 10 + 4}
    evaluated = ledger.evaluation("m.evaluation")
    assert evaluated is not None
    assert evaluated.sealed_set != evaluation.sealed_set
    assert evaluated.gathered.contamination is not None
    assert evaluated.gathered.contamination.found == 0
    assert "after 3 nights" in next(one.reason for one in second.findings if one.gate == "evidence")


def test_all_code_ran_in_sandboxes_and_sealed_questions_never_in_training(
    equipment: Equipment, ledger: SqliteLedger
) -> None:
    run_night(equipment, "n")
    every = ledger.rollouts(cycle="n", limit=10_000)
    calls = [call for judged in every for call in judged.rollout.calls if call.status.value != "parse_error"]
    assert calls
    assert all(call.sandbox and call.tier is not None for call in calls)
    assert sum(judged.rollout.usage.calls for judged in every) == len(calls)
    assert sum(judged.rollout.usage.seconds for judged in every) > 0
    (evaluation,) = ledger.evaluations()
    sealed_calls = sum(item.calls for item in evaluation.candidate.items)
    assert 0 < evaluation.candidate.usage.calls <= sealed_calls
    assert sum(evaluation.candidate.tiers.values()) <= len(evaluation.candidate.items)
    for metrics in ledger.step_metrics("n"):
        assert metrics["rollouts_shared"] + metrics["rollouts_process"] + metrics["rollouts_sandbox"] <= 4 * 8
        assert metrics["sandbox_seconds"] > 0
    sealed = sealed_set(10, derive("sealed", 0))
    assert list(ledger.sealed_sets()) == [sealed.digest]
    asked = {
        question_key(make_problem(task["family"], task["level"], task["seed"]))
        for step in range(3)
        for task in _step(ledger, step).tasks
    }
    assert asked
    assert not asked & sealed.questions


def _step(ledger: SqliteLedger, step: int) -> StepRecord:
    record = ledger.step("n", step)
    assert record is not None
    return record


def test_a_finished_night_that_is_run_again_does_nothing_again(equipment: Equipment, ledger: SqliteLedger) -> None:
    first = run_night(equipment, "n")
    again = run_night(equipment, "n")
    assert again == first
    assert counts(ledger, "n") == WHOLE


class Cut(Exception):
    """Stands for the plug being pulled."""


class Cutting:
    """The ledger, until a method has been called so many times; then nothing more gets through."""

    def __init__(self, ledger: SqliteLedger, method: str, times: int, *, after: bool) -> None:
        self._ledger = ledger
        self._method = method
        self._left = times
        self._after = after

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._ledger, name)
        if name != self._method:
            return real

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise Cut
            answer = real(*args, **kwargs)
            if self._left == 0:
                raise Cut
            return answer

        return counted


@pytest.mark.parametrize("after", [False, True], ids=["before it is on record", "after it is on record"])
@pytest.mark.parametrize(
    ("method", "times"),
    [
        ("commit_step", 2),
        ("put_checkpoint", 2),
        ("put_rollouts", 4),
        ("put_evaluation", 1),
        ("put_decision", 1),
        ("set_aliases", 2),
    ],
)
def test_a_night_cut_short_anywhere_goes_on_and_counts_nothing_twice(
    equipment: Equipment, ledger: SqliteLedger, method: str, times: int, after: bool
) -> None:
    equipment.ledger = Cutting(ledger, method, times, after=after)  # type: ignore[assignment]
    with pytest.raises(Cut):
        run_night(equipment, "n")
    equipment.ledger = ledger
    decision = run_night(equipment, "n")
    assert counts(ledger, "n") == WHOLE
    assert ledger.alias("candidate") == decision.candidate


def put_night(ledger: SqliteLedger, name: str, tasks: list[Task]) -> None:
    """A cycle that trained on these."""
    ledger.put_cycle(cycle_of(name).model_copy(update={"state": CycleState.DONE}))
    told = tuple({**task.model_dump(mode="json"), "id": task.id} for task in tasks)
    ledger.commit_step(StepRecord(cycle=name, step=0, tasks=told, judged=(), groups=(), metrics={}))


def test_what_recent_nights_asked_is_known_and_idle_ones_do_not_count(ledger: SqliteLedger) -> None:
    """Of the nights before this one, not of those after it, as when it is resumed."""
    nights = {name: TaskStream(Split.TRAIN, seed).tasks(0, 5) for seed, name in enumerate("abc")}
    for name, tasks in nights.items():
        put_night(ledger, name, tasks)
        ledger.put_cycle(cycle_of(f"idle-{name}"))

    def met(cycle: str, fresh_nights: int) -> set[str]:
        data = load().data.model_copy(update={"fresh_nights": fresh_nights})
        return set(allowed(load().model_copy(update={"data": data}), ledger, cycle).met)

    keys = {name: {question_key(problem_of(task)) for task in tasks} for name, tasks in nights.items()}
    assert met("idle-c", 1) == keys["c"]
    assert met("idle-c", 2) == keys["b"] | keys["c"]
    assert met("c", 1) == keys["b"]
    assert met("a", 7) == set()
    assert met("idle-c", 0) == set()


def test_groups_without_signal_are_made_up_for_with_fresh_tasks(equipment: Equipment, ledger: SqliteLedger) -> None:
    """And of families that the policy allows, which the night before did not ask."""
    packaged = read_content()[0].replace(b'families = ["*"] ', b'families = ["digits", "linear"] ')
    equipment.policy = parse_policy(packaged.replace(b"max_share = 40.0", b"max_share = 60.0"), "p")
    shares = allowed(equipment.policy, ledger, "n").shares
    assert shares == {"digits": 60.0, "linear": 60.0}
    sealed = sealed_set(SHORT.evaluation.sealed_items, derive("sealed", 0)).questions
    would = TaskStream(Split.TRAIN, 0, sealed, shares).tasks(0, 4)
    put_night(ledger, "earlier", would)
    training = SHORT.training.model_copy(update={"refills": 1, "steps": 2})
    run_night(equipment, "n", recipe=SHORT.model_copy(update={"training": training}))
    asked = [make_problem(task["family"], task["level"], task["seed"]) for task in ledger.step_tasks("n")]
    assert {task["family"] for task in ledger.step_tasks("n")} == {"digits", "linear"}
    assert {question_key(problem) for problem in asked}.isdisjoint(question_key(problem_of(task)) for task in would)
    for step in range(2):
        record = _step(ledger, step)
        first = {task["id"] for task in record.tasks[:4]}
        dull = 4 - tasks_with_signal([one for one in record.judged if one.rollout.task in first])
        assert len(record.tasks) == len({task["id"] for task in record.tasks}) == 4 + dull
        assert len(record.judged) == 8 * len(record.tasks)
        assert len(record.groups) == len(record.tasks)
        assert all(not group.kept for group in record.groups if len(set(group.rewards)) == 1)


def test_a_recorded_step_is_learned_again_and_not_sampled_again(equipment: Equipment, ledger: SqliteLedger) -> None:
    equipment.ledger = Cutting(ledger, "commit_step", 2, after=True)  # type: ignore[assignment]
    with pytest.raises(Cut):
        run_night(equipment, "n")
    before = [judged.rollout.id for judged in _step(ledger, 1).judged]
    kept = _step(ledger, 1)
    equipment.ledger = ledger
    run_night(equipment, "n")
    assert [judged.rollout.id for judged in _step(ledger, 1).judged] == before
    assert _step(ledger, 1) == kept


def test_a_broken_checkpoint_is_passed_over_and_said(equipment: Equipment, ledger: SqliteLedger) -> None:
    equipment.ledger = Cutting(ledger, "commit_step", 3, after=True)  # type: ignore[assignment]
    with pytest.raises(Cut):
        run_night(equipment, "n")
    newest = sorted((equipment.data / "cycles" / "n" / "checkpoints").iterdir())[-1]
    weights = newest / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    equipment.ledger = ledger
    run_night(equipment, "n")
    assert counts(ledger, "n") == WHOLE
    warnings = [event.text for _, event in ledger.events(limit=1000) if event.kind == "warning"]
    assert any(newest.name in text and "bytes" in text for text in warnings)


def test_a_night_without_a_model_warm_starts_one(equipment: Equipment, ledger: SqliteLedger) -> None:
    equipment.ledger = Cutting(ledger, "set_aliases", 1, after=False)  # type: ignore[assignment]
    with pytest.raises(Cut):
        run_night(equipment, "n", model=None)
    equipment.ledger = ledger
    run_night(equipment, "n", model=None)
    champion = ledger.checkpoint(ledger.alias("champion") or "")
    assert champion is not None
    assert (champion.stage, champion.step) == ("warm_start", 4)
    assert ledger.rollout_counts("n")["validation"] == 2 * 4 + 3 * 4


def test_a_missing_model_folder_is_an_error_that_says_so(equipment: Equipment, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="not a model folder") as caught:
        run_night(equipment, "n", model=tmp_path / "nothing")
    assert not isinstance(caught.value, LedgerError)


class NoSandboxes:
    """A pool on a machine where every sandbox dies."""

    def open(self, *, tier: Tier = Tier.SHARED, caller: str = "", priority: Priority = Priority.TRAINING) -> Session:
        raise InfrastructureError("no space left for a sandbox")

    def stats(self) -> dict[str, float]:
        return {}

    def close(self) -> None: ...


def test_a_night_whose_sandboxes_die_stops_and_no_step_is_counted(equipment: Equipment, ledger: SqliteLedger) -> None:
    equipment.sessions.close()
    equipment.sessions = NoSandboxes()
    with pytest.raises(InfrastructureError, match="no space left for a sandbox"):
        run_night(equipment, "n")
    assert ledger.recorded_steps("n") == []
    assert ledger.evaluations() == []
    cycle = ledger.cycle("n")
    assert cycle is not None
    assert cycle.state is CycleState.RUNNING
