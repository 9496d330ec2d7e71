"""The ledger keeps what it is given, exactly once, and gives it back as it was."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import ledger_records as made
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.daemon.views.ledger_views import Rollouts
from appliance.ledger.ledger import LedgerError
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.clustered_interval import AttemptSums
from appliance.records.cycles import CycleState, Event
from appliance.records.jobs import JobFile, JobState, Validation
from appliance.records.nights import CanaryState
from appliance.records.rollouts import Message, Purpose, RolloutEnd, ToolCall, ToolStatus
from appliance.records.training import Judged, RolloutFilter
from verifiers.contract.verdict import Outcome


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger(tmp_path / "ledger.sqlite3") as opened:
        yield opened


def test_everything_that_was_written_is_read_again_after_opening_anew(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "ledger.sqlite3"
    with SqliteLedger(path) as ledger:
        ledger.put_cycle(made.cycle())
        ledger.commit_step(made.step_record())
        ledger.put_sealed_set(made.digest(99), {"items": 512, "seed": 3, "share": 0.5, "families": "all"})
        for seed in (1, 2):
            ledger.put_checkpoint(made.checkpoint(seed))
        ledger.put_evaluation(made.evaluation())
        ledger.put_decision(made.decision())
        ledger.put_approval(made.approval())
        ledger.set_aliases({"champion": made.digest(2), "previous": made.digest(1)}, "approved by ada", made.AT)
        ledger.put_job(made.job())
        ledger.put_artifact(made.artifact())
        ledger.put_event(Event(kind="phase", text="training", figures={"step": 1.0}, created=made.AT))
    with SqliteLedger(path) as ledger:
        assert ledger.cycles() == [made.cycle()]
        assert ledger.cycle("night-1") == made.cycle()
        assert ledger.step("night-1", 0) == made.step_record()
        assert ledger.step_metrics("night-1") == [{"success": 0.5, "tokens_per_second": 900.0, "step": 0}]
        assert ledger.sealed_sets() == {made.digest(99): {"items": 512, "seed": 3, "share": 0.5, "families": "all"}}
        assert ledger.checkpoints() == [made.checkpoint(2), made.checkpoint(1)]
        assert ledger.evaluation("evaluation-2") == made.evaluation()
        assert ledger.evaluations(candidate=made.digest(2)) == [made.evaluation()]
        assert ledger.evaluations(candidate=made.digest(1)) == []
        assert ledger.decisions(candidate=made.digest(2)) == [made.decision()]
        assert ledger.approvals(candidate=made.digest(2)) == [made.approval()]
        assert ledger.alias("champion") == made.digest(2)
        assert ledger.alias("previous") == made.digest(1)
        assert ledger.alias("candidate") is None
        assert ledger.job("job-1") == made.job()
        assert ledger.artifact("artifact-1") == made.artifact()
        assert ledger.artifacts() == [made.artifact()]
        assert [event.text for _, event in ledger.events()] == ["job-1 queued: find x with 7x+3=45", "training"]


def test_what_is_not_there_is_none_or_nothing(ledger: SqliteLedger) -> None:
    assert ledger.cycle("x") is None
    assert ledger.step("x", 0) is None
    assert ledger.checkpoint("abcdef") is None
    assert ledger.evaluation("x") is None
    assert ledger.alias("champion") is None
    assert ledger.job("x") is None
    assert ledger.next_job() is None
    assert ledger.artifact("x") is None
    assert ledger.rollouts() == []
    assert ledger.rollout_counts("x") == {}
    ledger.put_rollouts([])
    assert ledger.rollouts() == []


# exactly once
deliveries = st.lists(st.integers(0, 3), min_size=1, max_size=12)


@settings(max_examples=15, deadline=None)
@given(deliveries)
def test_however_often_steps_are_sent_each_rollout_counts_once(
    tmp_path_factory: pytest.TempPathFactory, sent: list[int]
) -> None:
    with SqliteLedger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite3") as ledger:
        for step in sent:
            ledger.commit_step(made.step_record(step, rollouts=3))
        steps = sorted(set(sent))
        assert ledger.recorded_steps("night-1") == steps
        assert ledger.rollout_counts("night-1") == {"train": 3 * len(steps)}
        assert all(ledger.step("night-1", step) == made.step_record(step, rollouts=3) for step in steps)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6))
def test_however_often_rollouts_are_sent_and_in_whatever_batches_each_counts_once(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]]
) -> None:
    with SqliteLedger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite3") as ledger:
        for batch in batches:
            ledger.put_rollouts([made.judged(f"r{i}", purpose=Purpose.EVALUATION) for i in batch])
        distinct = {f"r{i}" for batch in batches for i in batch}
        stored = ledger.rollouts(limit=1000)
        assert sorted(one.rollout.id for one in stored) == sorted(distinct)


def test_a_step_that_is_sampled_again_after_a_restart_leaves_the_first_as_it_is(ledger: SqliteLedger) -> None:
    ledger.commit_step(made.step_record())
    ledger.commit_step(made.step_record(prefix="again/", rollouts=9))
    assert ledger.step("night-1", 0) == made.step_record()
    assert ledger.rollout_counts("night-1") == {"train": 4}


def test_a_step_with_a_rollout_that_is_counted_elsewhere_is_refused_whole(ledger: SqliteLedger) -> None:
    record = made.step_record()
    ledger.put_rollouts([record.judged[2]])
    with pytest.raises(LedgerError, match="outside this step"):
        ledger.commit_step(record)
    assert ledger.recorded_steps("night-1") == []
    assert len(ledger.rollouts()) == 1


def test_a_step_that_holds_one_rollout_twice_is_refused(ledger: SqliteLedger) -> None:
    record = made.step_record()
    twice = record.model_copy(update={"judged": (*record.judged, record.judged[0])})
    with pytest.raises(LedgerError, match="twice"):
        ledger.commit_step(twice)
    assert ledger.rollouts() == []


def test_the_same_record_again_changes_nothing_and_another_under_its_key_is_refused(ledger: SqliteLedger) -> None:
    evaluation, decision, artifact = made.evaluation(), made.decision(), made.artifact()
    for _ in range(2):
        ledger.put_checkpoint(made.checkpoint())
        ledger.put_evaluation(evaluation)
        ledger.put_decision(decision)
        ledger.put_approval(made.approval())
        ledger.put_artifact(artifact)
        ledger.put_sealed_set("s", {"items": 4})
    assert len(ledger.checkpoints()) == len(ledger.decisions()) == len(ledger.approvals()) == 1
    refused = [
        lambda: ledger.put_checkpoint(made.checkpoint(step=11)),
        lambda: ledger.put_evaluation(evaluation.model_copy(update={"sealed_set": "other"})),
        lambda: ledger.put_decision(decision.model_copy(update={"reason": "because"})),
        lambda: ledger.put_artifact(artifact.model_copy(update={"answer": "7"})),
        lambda: ledger.put_sealed_set("s", {"items": 5}),
    ]
    for put in refused:
        with pytest.raises(LedgerError, match="different record") as caught:
            put()
        assert caught.value.hint
    assert ledger.checkpoint(made.digest(1)) == made.checkpoint()
    assert ledger.sealed_sets() == {"s": {"items": 4}}


def test_two_people_and_two_words_of_one_person_are_all_kept(ledger: SqliteLedger) -> None:
    approvals = [made.approval(), made.approval("grace"), made.approval().model_copy(update={"verdict": "reject"})]
    for approval in approvals:
        ledger.put_approval(approval)
    assert ledger.approvals(candidate=made.digest(2)) == approvals[::-1]


# order and filters
def test_updates_keep_a_cycle_and_a_job_in_their_place(ledger: SqliteLedger) -> None:
    for name in ("a", "b"):
        ledger.put_cycle(made.cycle(name))
        ledger.put_job(made.job(name))
    ledger.put_cycle(made.cycle("a", state=CycleState.DONE))
    ledger.put_job(made.job("a", JobState.RUNNING))
    assert [cycle.id for cycle in ledger.cycles()] == ["b", "a"]
    assert ledger.cycle("a") == made.cycle("a", state=CycleState.DONE)
    assert [job.id for job in ledger.jobs()] == ["b", "a"]


def test_an_event_says_when_a_job_reaches_a_state_and_why(ledger: SqliteLedger) -> None:
    ledger.put_job(made.job())
    for _ in range(3):  # a worker reports often
        ledger.put_job(made.job(state=JobState.RUNNING))
    for state in (JobState.UNSOLVED, JobState.CANCELLED):
        ledger.put_job(made.job(state=state).model_copy(update={"reason": "16 attempts\nfailed" + 200 * "x"}))
    assert [(event.kind, event.text) for _, event in ledger.events()] == [
        ("job", "job-1 queued: find x with 7x+3=45"),
        ("job", "job-1 running"),
        ("job", "job-1 unsolved: 16 attempts failed" + 62 * "x"),
    ]


def test_the_next_job_is_the_most_urgent_that_has_not_ended_and_the_oldest_of_those(ledger: SqliteLedger) -> None:
    asked = {
        "a": (5, JobState.SOLVED),
        "b": (5, JobState.RUNNING),
        "c": (9, JobState.QUEUED),
        "d": (9, JobState.QUEUED),
    }
    for name, (priority, state) in asked.items():
        ledger.put_job(made.job(name, state).model_copy(update={"priority": priority}))
    order = []
    while (job := ledger.next_job()) is not None:
        order.append(job.id)
        ledger.put_job(job.model_copy(update={"state": JobState.UNSOLVED}))
    assert order == ["c", "d", "b"]
    assert ledger.job_counts() == {"solved": 1, "unsolved": 3}


def test_people_s_jobs_come_before_replays_of_earlier_ones_whatever_their_priority(ledger: SqliteLedger) -> None:
    ledger.put_job(made.job("replay").model_copy(update={"priority": 9, "replay_of": "earlier"}))
    ledger.put_job(made.job("asked").model_copy(update={"priority": 0}))
    found = ledger.next_job()
    assert found is not None
    assert found.id == "asked"


def test_without_a_model_those_that_the_solvers_have_tried_wait(ledger: SqliteLedger) -> None:
    ledger.put_job(made.job("tried").model_copy(update={"solvers_done": True}))
    ledger.put_job(made.job("new"))
    assert ledger.next_job().id == "tried"
    assert ledger.next_job(part="solvers").id == "new"


def test_a_job_that_has_ended_stays_as_it_ended(ledger: SqliteLedger) -> None:
    ledger.put_job(made.job())
    cancelled = ledger.put_job(made.job(state=JobState.CANCELLED))
    late = made.job(state=JobState.SOLVED).model_copy(update={"artifact": "artifact-1"})
    assert ledger.put_job(late) == cancelled == ledger.job("job-1")


def test_work_on_a_job_changes_nothing_of_what_was_asked(ledger: SqliteLedger) -> None:
    ledger.put_job(made.job())
    meaning = Validation(verdict="meant", shown="0", person="ada", created=made.AT, key="k", envelope="{}")
    ledger.put_validation("job-1", meaning)
    stale = made.job(state=JobState.RUNNING).model_copy(
        update={"step": "attempt 2", "question": "another", "priority": 9}
    )
    updated = ledger.put_job(stale)
    assert (updated.state, updated.step, updated.validation) == (JobState.RUNNING, "attempt 2", meaning)
    assert (updated.question, updated.priority) == (made.job().question, 5)


def test_a_cycle_that_has_ended_stays_as_it_ended(ledger: SqliteLedger) -> None:
    begun = made.cycle().model_copy(update={"state": CycleState.RUNNING})
    ended = begun.model_copy(update={"state": CycleState.CANCELLED})
    for written in (begun, ended, begun, begun.model_copy(update={"state": CycleState.DONE})):
        ledger.put_cycle(written)
    assert ledger.cycle(begun.id) == ended


def test_files_of_all_jobs_are_known(ledger: SqliteLedger) -> None:
    file = JobFile(name="a.csv", sha256=made.digest(1), bytes=3)
    ledger.put_job(made.job())
    for name in ("a", "b"):
        ledger.put_job(made.job(name).model_copy(update={"files": (file,)}))
    assert ledger.job_files() == {made.digest(1)}


def test_rollouts_are_found_by_cycle_job_purpose_and_step_newest_first(ledger: SqliteLedger) -> None:
    ledger.commit_step(made.step_record(0, rollouts=2))
    ledger.commit_step(made.step_record(1, rollouts=2))
    ledger.put_rollouts(
        [made.judged("v", purpose=Purpose.VALIDATION, step=1), made.judged("j", in_cycle="job-1", purpose=Purpose.JOB)]
    )

    def names(limit: int = 50, **filters: object) -> list[str]:
        return [one.rollout.id for one in ledger.rollouts(RolloutFilter(**filters), limit=limit)]  # type: ignore[arg-type]

    assert names() == ["j", "v", "night-1/1/1", "night-1/1/0", "night-1/0/1", "night-1/0/0"]
    assert names(limit=2) == ["j", "v"]
    assert names(job="job-1") == ["j"]
    assert names(job="night-1") == []
    assert names(cycle="night-1", step=1) == ["v", "night-1/1/1", "night-1/1/0"]
    assert names(cycle="night-1", purpose=Purpose.TRAIN, step=0) == ["night-1/0/1", "night-1/0/0"]
    assert names(before="v") == ["night-1/1/1", "night-1/1/0", "night-1/0/1", "night-1/0/0"]
    assert names(before="none") == []
    family, outcome = made.judged("j").family, made.judged("j").verdict.outcome
    assert names(family=family, outcome=outcome) == names()
    assert names(family="another") == names(outcome=Outcome.HACK_SUSPECTED) == []
    assert ledger.rollout_counts("night-1") == {"train": 4, "validation": 1}


def test_events_are_numbered_and_read_on_from_where_one_was(ledger: SqliteLedger) -> None:
    for text in ("one", "two", "three"):
        ledger.put_event(Event(kind="note", text=text, created=made.AT))
    first = ledger.events(limit=1)
    assert [event.text for _, event in first] == ["one"]
    assert [event.text for _, event in ledger.events(after=first[-1][0])] == ["two", "three"]


def test_a_checkpoint_is_found_by_six_digits_unless_two_begin_so(ledger: SqliteLedger) -> None:
    twin = made.checkpoint(manifest=made.digest(1)[:8] + made.digest(2)[8:])
    ledger.put_checkpoint(made.checkpoint())
    assert ledger.checkpoint(made.digest(1)[:6].upper()) == made.checkpoint()
    assert ledger.checkpoint(made.digest(1)[:5]) is None
    assert ledger.checkpoint("%" * 6) is None
    ledger.put_checkpoint(twin)
    with pytest.raises(LedgerError, match="more than one") as caught:
        ledger.checkpoint(made.digest(1)[:7])
    assert "more digits" in caught.value.hint
    assert twin.manifest in str(caught.value)
    assert made.digest(1) in str(caught.value)
    assert caught.value.exit_code == 2
    assert ledger.checkpoint(twin.manifest) == twin


def test_a_job_is_found_by_six_digits_unless_two_begin_so(ledger: SqliteLedger) -> None:
    for digits in ("0ab4d958f481", "0ab4d9aaaaaa", "77aa00112233"):
        ledger.put_job(made.job(f"job-{digits}"))
    ledger.put_job(made.job("replay-77aa00-job-77aa00112233"))
    for name in ("job-77aa00112233", "77aa00112233", "77aa00", "job-77aa00", "77AA0011"):
        found = ledger.find_job(name)
        assert found is not None
        assert found.id == "job-77aa00112233"
    for name in ("77aa0", "job-77aa0", "77aa01", "job-", "", "job-%77aa0", "replay-77aa00"):
        assert ledger.find_job(name) is None
    with pytest.raises(LedgerError, match="more than one job begins with job-0ab4d9: job-0ab4d958f481, job-0ab4d9aaa"):
        ledger.find_job("0ab4d9")


def test_a_rollout_is_found_by_what_it_alone_begins_with(ledger: SqliteLedger) -> None:
    cycle = "night-20260501t020000-7c1e"
    ids = [f"{cycle}.evaluation.{run}.5be1.0" for run in (0, 1)]
    ledger.put_rollouts([made.judged(name) for name in ids])
    for typed, name in {f"{cycle}.evaluation.0": ids[0], f"{cycle}.EVALUATION.1.5b": ids[1], ids[1]: ids[1]}.items():
        found = ledger.find_rollout(typed)
        assert found is not None
        assert found.rollout.id == name
    for typed in ("night-20260", "", "%", f"{cycle}.evaluation.2", f"{cycle}.evaluation._"):
        assert ledger.find_rollout(typed) is None
    with pytest.raises(LedgerError, match="more than one rollout begins with night-202605: "):
        ledger.find_rollout("night-202605")


def test_rollouts_are_listed_of_a_cycle_by_the_beginning_of_its_name(ledger: SqliteLedger) -> None:
    names = ("night-20260501t020000-7c1e", "night-20260502t020000-0a0b")
    for name in names:
        ledger.put_cycle(made.cycle(name))
    ledger.put_rollouts([made.judged(f"{name}.train.0.a.0", in_cycle=name) for name in names])
    found = Rollouts(ledger).rollout_views(RolloutFilter(cycle="night-20260501"), limit=5)
    assert [one.cycle for one in found] == [names[0]]
    assert Rollouts(ledger).rollout_views(RolloutFilter(cycle="night-20260503"), limit=5) == []


def test_a_cycle_is_found_by_its_kind_and_six_digits_unless_two_begin_so(ledger: SqliteLedger) -> None:
    names = ("night-20260501t020000-7c1e", "night-20260502t020000-0a0b", "training-20260501t120000-ffff", "night-1")
    for name in names:
        ledger.put_cycle(made.cycle(name))
    asked = {
        "night-20260501": names[0],
        "NIGHT-20260501T02": names[0],
        names[1]: names[1],
        "training-202605": names[2],
        "night-1": names[3],
    }
    for typed, name in asked.items():
        found = ledger.find_cycle(typed)
        assert found is not None
        assert found.id == name
    for typed in (
        "night-20260",
        "night-",
        "night",
        "",
        "20260501",
        "night-20260503",
        "night-%20260501",
        "night-2026__",
    ):
        assert ledger.find_cycle(typed) is None
    with pytest.raises(LedgerError, match=f"more than one cycle begins with night-202605: {names[0]}, {names[1]}$"):
        ledger.find_cycle("night-202605")


# what is in service
def test_aliases_move_together_and_leave_their_history(ledger: SqliteLedger) -> None:
    for seed in (1, 2):
        ledger.put_checkpoint(made.checkpoint(seed))
    ledger.set_aliases({"champion": made.digest(1)}, "first", "t1")
    ledger.set_aliases({"champion": made.digest(2), "previous": made.digest(1)}, "better", "t2")
    ledger.set_aliases({"candidate": None}, "rejected", "t3")
    assert ledger.alias_history() == [
        {"candidate": None, "reason": "rejected", "at": "t3"},
        {"champion": made.digest(2), "previous": made.digest(1), "reason": "better", "at": "t2"},
        {"champion": made.digest(1), "reason": "first", "at": "t1"},
    ]
    assert len(ledger.alias_history(limit=1)) == 1


def test_nothing_that_the_ledger_does_not_know_can_be_put_into_service(ledger: SqliteLedger) -> None:
    ledger.put_checkpoint(made.checkpoint(1))
    ledger.set_aliases({"champion": made.digest(1)}, "first", "t1")
    with pytest.raises(LedgerError, match="no such checkpoint"):
        ledger.set_aliases({"previous": made.digest(1), "champion": made.digest(2)}, "wrong", "t2")
    assert ledger.alias("champion") == made.digest(1)
    assert ledger.alias("previous") is None
    assert len(ledger.alias_history()) == 1


# what JSON cannot hold
def test_a_figure_that_is_not_finite_is_refused_before_anything_is_written(ledger: SqliteLedger) -> None:
    record = made.step_record().model_copy(update={"metrics": {"loss": float("nan")}})
    with pytest.raises(LedgerError, match="JSON cannot represent"):
        ledger.commit_step(record)
    assert ledger.recorded_steps("night-1") == []


def test_hostile_text_comes_back_as_it_was(ledger: SqliteLedger) -> None:
    text = "\x00\x1b[2J'; DROP TABLE rollouts; --\u202e\U0001f600\n"
    ledger.put_rollouts([made.judged("h", answer=text)])
    assert ledger.rollouts()[0].rollout.answer == text


def test_text_that_is_not_unicode_is_refused(ledger: SqliteLedger) -> None:
    with pytest.raises(LedgerError, match="JSON cannot represent"):
        ledger.put_rollouts([made.judged("fine"), made.judged("h", answer="\ud800")])
    assert ledger.rollouts() == []


# threads and time
def test_many_threads_write_and_read_at_once_and_nothing_is_lost(ledger: SqliteLedger) -> None:
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            for i in range(10):
                ledger.put_event(Event(kind="note", text=f"{number}/{i}", created=made.AT))
                assert any(event.text == f"{number}/{i}" for _, event in ledger.events(limit=1000))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    numbers = [number for number, _ in ledger.events(limit=1000)]
    assert numbers == list(range(1, 81))


def test_a_step_of_384_rollouts_of_60_tokens_costs_well_under_a_tenth_of_a_second_of_a_processor(
    ledger: SqliteLedger,
) -> None:
    records = [made.step_record(step, rollouts=384, tokens=60) for step in range(5)]
    seconds = []
    for record in records:
        began = time.process_time()
        ledger.commit_step(record)
        seconds.append(time.process_time() - began)
    assert min(seconds) < 0.1
    assert ledger.step("night-1", 4) == records[4]


def test_a_closed_ledger_says_so(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.sqlite3")
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        ledger.put_cycle(made.cycle())
    with pytest.raises(LedgerError, match="closed"):
        ledger.cycles()


def test_the_newest_canary_comes_first_and_is_updated_in_place(ledger: SqliteLedger) -> None:
    first, second = made.canary("canary-1", CanaryState.PASSED), made.canary("canary-2")
    ledger.put_canary(first)
    ledger.put_canary(second)
    shared = second.model_copy(update={"state": CanaryState.SHARE, "share_since": made.AT})
    ledger.put_canary(shared)
    assert ledger.canaries() == [shared, first]
    assert ledger.canaries(limit=1) == [shared]


def test_passes_are_counted_by_purpose_taskset_and_the_level_of_their_task(ledger: SqliteLedger) -> None:
    broken = made.verdict().model_copy(update={"outcome": Outcome.INFRA_ERROR})
    record = made.step_record(rollouts=4)
    first, second, third, last = record.judged
    judged = (first, second.model_copy(update={"verdict": made.verdict(passed=False)}), third)
    ledger.commit_step(record.model_copy(update={"judged": (*judged, last.model_copy(update={"verdict": broken}))}))
    ledger.commit_step(made.step_record(1, prefix="again/", rollouts=2))
    ledger.commit_step(made.step_record(in_cycle="night-2"))
    ledger.put_rollouts([made.judged("held out", purpose=Purpose.VALIDATION)])
    counts = [(one.purpose, one.family, one.level, one.rollouts, one.passed, one.broken) for one in
              ledger.pass_counts("night-1")]  # fmt: skip
    assert counts == [(Purpose.TRAIN, "divisors", 1, 5, 4, 1), (Purpose.VALIDATION, "divisors", None, 1, 1, 0)]
    assert ledger.pass_counts("night-3") == []
    asked = ledger.pass_counts("night-1", {"t": 4})
    assert [(one.purpose, one.level) for one in asked] == [(Purpose.TRAIN, 1), (Purpose.VALIDATION, 4)]


def test_what_the_interval_of_a_pass_rate_needs_is_summed_over_tasks(ledger: SqliteLedger) -> None:
    """One task has six rollouts over two steps, of which five have a verdict and four passed."""
    broken = made.verdict().model_copy(update={"outcome": Outcome.INFRA_ERROR})
    record = made.step_record(rollouts=4)
    first, second, third, last = record.judged
    wrong = second.model_copy(update={"verdict": made.verdict(passed=False)})
    ledger.commit_step(
        record.model_copy(update={"judged": (first, wrong, third, last.model_copy(update={"verdict": broken}))})
    )
    ledger.commit_step(made.step_record(1, prefix="again/", rollouts=2))
    by_task: dict[str, list[bool]] = {}
    for one in ledger.rollouts(RolloutFilter(cycle="night-1"), limit=100):
        if one.verdict.outcome is not Outcome.INFRA_ERROR:
            by_task.setdefault(one.rollout.task, []).append(one.verdict.passed)
    (found,) = ledger.pass_counts("night-1")
    assert found.sums == AttemptSums.of([(len(passed), sum(passed)) for passed in by_task.values()])
    assert (found.sums.attempts, found.sums.passed) == (5, 4)


def test_branches_do_not_count_because_they_begin_where_an_attempt_met_something_hard(ledger: SqliteLedger) -> None:
    record = made.step_record(rollouts=4)
    attempt, *others = record.judged
    branches = [
        one.model_copy(update={"rollout": one.rollout.model_copy(update={"branch_of": attempt.rollout.id})})
        for one in others
    ]
    ledger.commit_step(record.model_copy(update={"judged": (attempt, *branches)}))
    (found,) = ledger.pass_counts("night-1")
    assert (found.rollouts, found.groups) == (1, 1)


def test_groups_and_how_failures_ended_are_counted_and_what_a_model_wrote_is_no_status(ledger: SqliteLedger) -> None:
    record = made.step_record(rollouts=6)
    wrong = made.verdict(passed=False)
    fake = ToolCall(code='"status":"parse_error" "tool":"dig"', status=ToolStatus.OK)
    odd = ToolCall(code="?", status=ToolStatus.PARSE_ERROR)
    world = ToolCall(tool="dig", status=ToolStatus.OK)
    changes: list[dict[str, object]] = [
        {"nodes": _calling(record.judged[0], fake)},
        {"nodes": _calling(record.judged[1], odd), "ended": RolloutEnd.TURNS},
        {"nodes": _calling(record.judged[2], world), "ended": RolloutEnd.TOKENS},
        {"nodes": record.judged[3].rollout.nodes[:1], "ended": RolloutEnd.TOKENS},
        {"answers": 0},
    ]
    judged = [
        one.model_copy(update={"rollout": one.rollout.model_copy(update=change), "verdict": wrong})
        for one, change in zip(record.judged, changes, strict=False)
    ]
    groups = tuple(group.model_copy(update={"kept": (0, 5)}) for group in record.groups)
    ledger.commit_step(record.model_copy(update={"judged": (*judged, record.judged[5]), "groups": groups}))
    (found,) = ledger.pass_counts("night-1")
    assert (found.rollouts, found.passed, found.groups, found.learned) == (6, 1, 1, 1)
    assert (found.wrong, found.turns, found.cut, found.no_room, found.formless) == (1, 1, 1, 1, 1)
    assert (found.malformed, found.asked_world) == (1, 1)


def _calling(judged: Judged, call: ToolCall) -> tuple[Message, ...]:
    return tuple(node if node.call is None else node.model_copy(update={"call": call}) for node in judged.rollout.nodes)
