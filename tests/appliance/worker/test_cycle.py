"""A night goes from a champion to a decision, on record at every step, and goes on wherever it was cut short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from recorded_nights import RecordedNight
from short_nights import FIXTURE, SHORT, cycle_of, run_night, train_night

from appliance.daemon.contract import NotThereError
from appliance.daemon.views.ledger_views import Rollouts
from appliance.learning.folders import verify
from appliance.ledger.sqlite import SqliteLedger
from appliance.promotion.evidence import decision_on
from appliance.records.cycles import Cycle, CycleState
from appliance.records.rollouts import Purpose
from appliance.records.training import RolloutFilter, StepRecord
from appliance.settings.config_layers import ConfigError
from appliance.settings.policy_files import parse_policy
from appliance.system.clock import utc_now
from appliance.worker.cycle import CycleRun
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import training_rules
from appliance.worker.setup.progress import CycleProgress
from appliance.worker.training.step_sampling import tasks_with_signal
from curriculum.contract.task import Split, Task, asked
from curriculum.names import CALCULATORS
from curriculum.registry import key_of
from curriculum.sealed import SealedSet, TaskStream, sealed_set
from curriculum.seeds import derive
from curriculum.separation.index import TrainedQuestions
from policies.contract.decision import Decision, DecisionOutcome
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
    "train": 2 * 4 * 8,
    "validation": 2 * 4,
    "evaluation": 4 * 10 + 4,
    "steps": 2,
    "checkpoints": 2,
    "evaluations": 1,
    "decisions": 1,
}


@dataclass(frozen=True)
class FinishedNight:
    context: WorkContext
    ledger: SqliteLedger
    decision: Decision


@pytest.fixture(scope="module")
def night(recorded_night: RecordedNight, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FinishedNight]:
    """One night for all tests that only look at what it has left."""
    with recorded_night.copied("finished", tmp_path_factory.mktemp("night")) as context:
        assert isinstance(context.ledger, SqliteLedger)
        yield FinishedNight(context, context.ledger, recorded_night.decision)


@pytest.fixture
def later(recorded_night: RecordedNight, tmp_path: Path) -> Iterator[FinishedNight]:
    """That night in a folder of the test's own, where others may follow it."""
    with recorded_night.copied("finished", tmp_path / "later") as context:
        assert isinstance(context.ledger, SqliteLedger)
        yield FinishedNight(context, context.ledger, recorded_night.decision)


def test_a_night_leaves_every_record_and_waits_for_a_person(night: FinishedNight) -> None:
    context, ledger, decision = night.context, night.ledger, night.decision
    assert counts(ledger, "n") == WHOLE
    cycle = ledger.cycle("n")
    assert cycle is not None
    assert cycle.state is CycleState.DONE
    assert set(cycle.seconds) >= {"prepare", "training", "evaluation"}
    assert decision.outcome is not DecisionOutcome.PROMOTE
    candidate = ledger.checkpoint(decision.candidate)
    assert candidate is not None
    assert candidate.parent == ledger.alias("champion") == decision.champion
    assert verify(context.data / candidate.folder) == candidate.manifest
    assert ledger.alias("candidate") == candidate.manifest
    assert list((context.data / "cycles").iterdir()) == []
    said = [event.text.partition(":")[0] for _, event in ledger.events(limit=1000) if event.kind == "evaluation"]
    assert said == ["champion, sampled", "champion, greedy", "candidate, sampled", "candidate, greedy"]


def test_a_night_measures_what_the_gates_ask_for(night: FinishedNight) -> None:
    (evaluation,) = night.ledger.evaluations()
    found = evaluation.measurements
    assert found.selftest is not None
    assert (found.selftest.accepted, found.selftest.rejected, found.selftest.untested) == (0, 0, ())
    assert found.selftest.attacks > 20
    assert found.selftest.tested == found.selftest.installed
    told = [event.text for _, event in night.ledger.events(limit=1000) if event.kind == "selftest"]
    tried = found.selftest.attacks + found.selftest.controls
    assert told[0] == f"verifiers: 1 of {tried} attacks and controls tried"
    assert told[-1] == f"verifiers: {tried} of {tried} attacks and controls tried"
    assert found.hacks is not None
    assert (found.hacks.impossible, found.hacks.passed, found.hacks.answers) == (4, 0, 10)
    assert found.contamination is not None
    assert (found.contamination.sealed, found.contamination.found) == (10, 0)
    assert found.contamination.trained >= 2 * 4
    assert found.egress is not None
    assert (found.egress.held, found.egress.open) == (found.egress.tried, ())
    assert found.drift is not None
    assert found.drift.tokens > 0
    assert 0 < found.drift.kl_champion == found.drift.kl_base < 1
    assert found.drift.length > 0


def test_a_candidate_held_for_want_of_evidence_is_asked_fresh_questions_and_none_is_trained(
    later: FinishedNight,
) -> None:
    context, ledger, first = later.context, later.ledger, later.decision
    (evaluation,) = ledger.evaluations()
    better = tuple(item.model_copy(update={"passed": True}) for item in evaluation.candidate.items)
    wish = evaluation.model_copy(
        update={"id": "wish", "candidate": evaluation.candidate.model_copy(update={"items": better})}
    )
    ledger.put_evaluation(wish)
    held = decision_on(
        wish, context.policy, in_service=first.champion, history=[], id="wish.decision", made_at=utc_now()
    )
    assert held.outcome is DecisionOutcome.HOLD
    ledger.put_decision(held)
    second = run_night(context, "m", seed=1)
    assert second.candidate == first.candidate
    assert ledger.recorded_steps("m") == []
    assert ledger.rollout_counts("m") == {"evaluation": 4 * 10 + 4}
    evaluated = ledger.evaluation("m.evaluation")
    assert evaluated is not None
    assert evaluated.sealed_set != evaluation.sealed_set
    asked = [item.question for item in evaluated.candidate.items]
    assert all(asked), "what is asked is on record, so that the same in other words is no fresh question"
    assert len(set(asked)) == len(asked) == len(evaluated.champion.items)
    assert asked == [item.question for item in evaluated.champion.items]
    assert evaluated.measurements.contamination is not None
    assert evaluated.measurements.contamination.found == 0
    assert "after 3 nights" in next(one.reason for one in second.findings if one.gate == "evidence")


def test_a_model_is_evaluated_once_more_on_fresh_questions_and_nothing_is_trained(later: FinishedNight) -> None:
    context, ledger, first = later.context, later.ledger, later.decision
    champion, candidate = ledger.alias("champion"), first.candidate
    plan = {"start": champion, "candidate": candidate, "again": candidate}
    cycle = cycle_of("e", 1)
    ledger.put_cycle(cycle.model_copy(update={"kind": "evaluation", "plan": cycle.plan | plan}))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(CycleRun, "train", None)
        second = run_night(context, "e")
    assert (second.candidate, second.champion, second.evaluation) == (candidate, champion, "e.evaluation")
    assert ledger.rollout_counts("e") == {"evaluation": 4 * 10 + 4}
    one, other = (ledger.evaluation(f"{name}.evaluation") for name in "ne")
    assert one is not None
    assert other is not None
    assert one.sealed_set != other.sealed_set


def test_all_code_ran_in_sandboxes_and_sealed_questions_never_in_training(night: FinishedNight) -> None:
    ledger = night.ledger
    every = ledger.rollouts(RolloutFilter(cycle="n"), limit=10_000)
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
    asked = {task["key"] for step in range(2) for task in _step(ledger, step).tasks}
    assert asked
    assert not asked & sealed.questions


def test_the_words_of_a_rollout_can_be_read_as_long_as_its_model_is_there(night: FinishedNight, tmp_path: Path) -> None:
    rollouts = Rollouts(night.ledger)
    for purpose in (Purpose.TRAIN, Purpose.EVALUATION):
        (view,) = rollouts.rollout_views(RolloutFilter(cycle="n", purpose=purpose, step=0), limit=1)
        detail = rollouts.rollout_detail(view.id, night.context.data)
        asked, *said = detail.turns
        assert (detail.unread, asked.sampled, said[0].sampled) == ("", False, True)
        assert any(turn.text.strip() for turn in said)
        assert detail.rollout.question
        assert detail.rollout.question in asked.text
        gone = rollouts.rollout_detail(view.id, tmp_path)
        assert (gone.turns, "is not a folder" in gone.unread) == ((), True)
    with pytest.raises(NotThereError):
        rollouts.rollout_detail("none", night.context.data)


def _step(ledger: SqliteLedger, step: int) -> StepRecord:
    record = ledger.step("n", step)
    assert record is not None
    return record


def test_a_finished_night_that_is_run_again_does_nothing_again(night: FinishedNight) -> None:
    assert run_night(night.context, "n") == night.decision
    assert counts(night.ledger, "n") == WHOLE


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


CUTS = (
    ("commit_step", 2),
    ("put_checkpoint", 1),
    ("set_aliases", 1),
    ("put_rollouts", 2),
    ("put_evaluation", 1),
    ("put_decision", 1),
)
"""In the order of a night: a method of the ledger, and which of its calls since the night went on."""


def test_a_night_cut_short_everywhere_goes_on_and_counts_nothing_twice(
    context: WorkContext, ledger: SqliteLedger
) -> None:
    """Before each is on record, and after it. A step on record is learned again and not sampled again; a checkpoint
    that broke meanwhile is passed over and named."""
    broken = ""
    for method, times in CUTS:
        for after in (False, True):
            left = 1 if after and method == "commit_step" else times  # the step before has a checkpoint
            context.ledger = Cutting(ledger, method, left, after=after)  # type: ignore[assignment]
            with pytest.raises(Cut):
                run_night(context, "n")
            if (method, after) == ("commit_step", False):
                assert ledger.recorded_steps("n") == [0]
            if (method, after) == ("commit_step", True):
                recorded = [_step(ledger, step) for step in range(2)]
            if (method, after) == ("put_checkpoint", False):
                newest = sorted((context.data / "cycles" / "n" / "checkpoints").iterdir())[-1]
                weights, broken = newest / "model.safetensors", newest.name
                weights.write_bytes(weights.read_bytes()[:-100])
    context.ledger = ledger
    decision = run_night(context, "n")
    assert counts(ledger, "n") == WHOLE
    assert ledger.alias("candidate") == decision.candidate
    assert [_step(ledger, step) for step in range(2)] == recorded
    warnings = [event.text for _, event in ledger.events(limit=1000) if event.kind == "warning"]
    assert any(broken in text and "bytes" in text for text in warnings)


def put_night(ledger: SqliteLedger, name: str, tasks: list[Task]) -> None:
    """A cycle that trained on these."""
    ledger.put_cycle(cycle_of(name).model_copy(update={"state": CycleState.DONE}))
    ledger.commit_step(
        StepRecord(cycle=name, step=0, tasks=tuple(task.record() for task in tasks), judged=(), groups=(), metrics={})
    )


def test_what_recent_nights_asked_is_known_and_idle_ones_do_not_count(ledger: SqliteLedger) -> None:
    """Of the nights before this one, not of those after it, as when it is resumed."""
    nights = {name: TaskStream(Split.TRAIN, seed).tasks(0, 5) for seed, name in enumerate("abc")}
    for name, tasks in nights.items():
        put_night(ledger, name, tasks)
        ledger.put_cycle(cycle_of(f"idle-{name}"))

    def met(cycle: str, fresh_nights: int) -> set[str]:
        data = load().data.model_copy(update={"fresh_nights": fresh_nights})
        return set(training_rules(load().model_copy(update={"data": data}), ledger, cycle, CALCULATORS).met)

    keys = {name: {key_of(task) for task in tasks} for name, tasks in nights.items()}
    assert met("idle-c", 1) == keys["c"]
    assert met("idle-c", 2) == keys["b"] | keys["c"]
    assert met("c", 1) == keys["b"]
    assert met("a", 7) == set()
    assert met("idle-c", 0) == set()


@pytest.mark.parametrize("kind", ["night", "evaluation"])
def test_no_sealed_question_is_a_word_from_what_an_earlier_cycle_trained_on(
    context: WorkContext, ledger: SqliteLedger, kind: str
) -> None:
    """Of a night or an evaluation alike; a later cycle's training changes nothing."""

    def sealed_of(cycle: Cycle) -> SealedSet:
        run = CycleRun(cycle, context, CycleProgress(cycle, ledger, lambda: 0.0), FIXTURE)
        run.prepare()
        return run._setup(None).sealed

    would = sealed_set(SHORT.evaluation.sealed_items, derive("sealed", 3)).tasks
    known = {task.id: task.question for task in would if TrainedQuestions([task]).meets(task)}
    first, second = list(known)[:2]
    near = {
        task.id: task.model_copy(update={"key": f"near {task.key}", "messages": asked(f"{task.question} Now")})
        for task in would
        if task.id in (first, second)
    }
    put_night(ledger, "earlier", [near[first]])
    cycle = cycle_of("n", seed=3).model_copy(update={"kind": kind})
    ledger.put_cycle(cycle)
    drawn = sealed_of(cycle)
    assert first not in {task.id for task in drawn.tasks}
    assert second in {task.id for task in drawn.tasks}
    put_night(ledger, "later", [near[second]])
    assert sealed_of(cycle).digest == drawn.digest


def test_groups_without_signal_are_made_up_for_with_fresh_tasks(context: WorkContext, ledger: SqliteLedger) -> None:
    """And of families that the policy allows, which the night before did not ask."""
    packaged = read_content()[0].replace(b'families = ["*"] ', b'families = ["digits", "linear"] ')
    context.policy = parse_policy(packaged.replace(b"max_share = 40.0", b"max_share = 60.0"), "p")
    shares = training_rules(context.policy, ledger, "n", CALCULATORS).shares
    assert shares == {"digits": 60.0, "linear": 60.0}
    sealed = sealed_set(SHORT.evaluation.sealed_items, derive("sealed", 0)).questions
    would = TaskStream(Split.TRAIN, 0, sealed, shares).tasks(0, 4)
    put_night(ledger, "earlier", would)
    training = SHORT.training.model_copy(update={"refills": 1, "steps": 2})
    train_night(context, "n", recipe=SHORT.model_copy(update={"training": training}))
    asked = ledger.step_tasks("n")
    assert {task["taskset"] for task in asked} == {"digits", "linear"}
    assert {task["key"] for task in asked}.isdisjoint(key_of(task) for task in would)
    for step in range(2):
        record = _step(ledger, step)
        first = {task["id"] for task in record.tasks[:4]}
        dull = 4 - tasks_with_signal([one for one in record.judged if one.rollout.task in first], SHORT.training)
        assert len(record.tasks) == len({task["id"] for task in record.tasks}) == 4 + dull
        assert len(record.judged) == 8 * len(record.tasks)
        assert len(record.groups) == len(record.tasks)
        assert all(not group.kept for group in record.groups if len(set(group.rewards)) == 1)


def test_a_night_without_a_model_warm_starts_one(context: WorkContext, ledger: SqliteLedger) -> None:
    context.ledger = Cutting(ledger, "set_aliases", 1, after=False)  # type: ignore[assignment]
    with pytest.raises(Cut):
        run_night(context, "n", model=None)
    context.ledger = ledger
    run_night(context, "n", model=None)
    champion = ledger.checkpoint(ledger.alias("champion") or "")
    assert champion is not None
    assert (champion.stage, champion.step) == ("warm_start", 4)
    assert ledger.rollout_counts("n")["validation"] == 2 * 4 + 2 * 4


def test_a_missing_model_folder_is_an_error_that_says_so(context: WorkContext, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a model folder"):
        run_night(context, "n", model=tmp_path / "nothing")


class NoSandboxes:
    """A pool on a machine where every sandbox dies."""

    def open(self, *, tier: Tier = Tier.SHARED, caller: str = "", priority: Priority = Priority.TRAINING) -> Session:
        raise InfrastructureError("no space left for a sandbox")

    def stats(self) -> dict[str, float]:
        return {}

    def close(self) -> None: ...


def test_a_night_whose_sandboxes_die_stops_and_no_step_is_counted(context: WorkContext, ledger: SqliteLedger) -> None:
    context.sessions.close()
    context.sessions = NoSandboxes()
    with pytest.raises(InfrastructureError, match="no space left for a sandbox"):
        run_night(context, "n")
    assert ledger.recorded_steps("n") == []
    assert ledger.evaluations() == []
    cycle = ledger.cycle("n")
    assert cycle is not None
    assert cycle.state is CycleState.RUNNING
