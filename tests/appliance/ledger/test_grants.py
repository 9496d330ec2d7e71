"""A worker writes what its phase makes: who trains does not evaluate, who evaluates does not train, nobody decides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace

import ledger_records as made
import pytest

from appliance.ledger.grants import grant_of
from appliance.ledger.ledger import Ledger, LedgerError
from appliance.ledger.remote import RemoteLedger, serve_ledger
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import KEPT_ROLLOUTS, SEALED, CycleState, Event
from appliance.records.evaluations import Evaluation
from appliance.records.jobs import Artifact, JobState
from appliance.records.rollouts import Purpose
from appliance.records.training import Judged
from verifiers.contract.verdict import Outcome

Call = Callable[[Ledger], object]
NIGHT = "night-1"
TRAINED = f"trained by {NIGHT}"
NAMES = {"recipe": {"tasksets": ["digits", "linear"]}}
EXAM = {"again": None, "tasksets": ["digits"], "left_out": {"linear": "no tool"}, SEALED: made.digest(99)}
FIXED = {**NAMES, **EXAM, "start": made.digest(1)}
PLAN = {**FIXED, "candidate": made.digest(2)}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    """With a night that has a champion and a candidate, another night, an open job and one that has ended."""
    with SqliteLedger(tmp_path / "ledger.sqlite3") as opened:
        opened.put_cycle(made.cycle(plan=PLAN))
        opened.put_sealed_set(made.digest(99), {"items": 4})
        opened.put_cycle(made.cycle("night-2", plan=NAMES))
        opened.put_cycle(made.cycle("night-3", plan=FIXED))
        opened.put_cycle(made.cycle("night-4", plan={**FIXED, "again": made.digest(3)}))
        opened.put_cycle(made.cycle("night-5", plan={**NAMES, **EXAM}))
        opened.put_checkpoint(made.checkpoint(1, stage="warm_start", cycle="night-0"))
        opened.put_checkpoint(made.checkpoint(2, parent=made.digest(1)))
        opened.put_checkpoint(made.checkpoint(3, cycle="night-0"))
        opened.put_checkpoint(made.checkpoint(6, cycle="night-0", parent=made.digest(1)))
        opened.set_aliases({"champion": made.digest(1)}, "first", made.AT)
        opened.put_job(made.job("open"))
        opened.put_job(made.job("ended"))
        opened.put_job(made.job("ended", state=JobState.UNSOLVED))
        yield opened


@contextmanager
def at_work(ledger: Ledger, *work: str) -> Iterator[Ledger]:
    ours, theirs = Pipe()
    thread = threading.Thread(target=serve_ledger, args=(ours, ledger, grant_of(work)))
    thread.start()
    with theirs:
        yield RemoteLedger(theirs)
    thread.join(timeout=120)


def planned(name: str, plan: dict[str, object], **changes: object) -> Call:
    return lambda to: to.put_cycle(made.cycle(name, plan=plan, **changes))


def rollout(work: str, purpose: Purpose, name: str = "") -> Judged:
    return made.judged(name or f"{work}.{purpose.value}.0.t.0", in_cycle=work, purpose=purpose)


def examined(**changes: object) -> Evaluation:
    return made.evaluation().model_copy(update={"id": f"{NIGHT}.evaluation", **changes})


def bundle(**changes: object) -> Artifact:
    return made.artifact("open").model_copy(update={"job": "open", **changes})


ALLOWED: dict[str, tuple[tuple[str, ...], Call]] = {
    "a step": (("train", NIGHT), lambda to: to.commit_step(made.step_record(prefix=f"{NIGHT}.train."))),
    "held-out answers": (("train", NIGHT), lambda to: to.put_rollouts([rollout(NIGHT, Purpose.VALIDATION)])),
    "a checkpoint": (("train", NIGHT), lambda to: to.put_checkpoint(made.checkpoint(4, parent=made.digest(1)))),
    "its candidate": (("train", NIGHT), lambda to: to.set_aliases({"candidate": made.digest(2)}, TRAINED, made.AT)),
    "a candidate that an earlier night made from the same model": (
        ("train", "night-3"),
        lambda to: to.set_aliases({"candidate": made.digest(6)}, "trained by night-3", made.AT),
    ),
    "how far it is": (("train", NIGHT), lambda to: to.put_cycle(made.cycle(plan=PLAN, phase="training"))),
    "an exam": (("prepare", "night-2"), planned("night-2", FIXED)),
    "an exam of a candidate that was held": (
        ("prepare", "night-2"),
        lambda to: to.put_cycle(made.cycle("night-2", plan={**FIXED, "again": to.alias("candidate")})),
    ),
    "a sealed set": (("prepare", "night-2"), lambda to: to.put_sealed_set(made.digest(98), {"items": 3})),
    "the candidate's name": (("train", "night-3"), planned("night-3", {**FIXED, "candidate": made.digest(6)})),
    "that nothing was learned": (("train", "night-3"), planned("night-3", {**FIXED, "candidate": made.digest(1)})),
    "the candidate asked again": (
        ("train", "night-4"),
        planned("night-4", {**FIXED, "again": made.digest(3), "candidate": made.digest(3)}),
    ),
    "how a stage ended": (("train", "night-3"), planned("night-3", {**FIXED, "stage_1": {}, "difficulty_1": {}})),
    "the digests of what it keeps": (
        ("train", "night-2"),
        lambda to: [to.put_cycle(made.cycle("night-2", plan={**NAMES, KEPT_ROLLOUTS: [one * 64]})) for one in "ab"],
    ),
    "an event": (("train", NIGHT), lambda to: to.put_event(Event(kind="note", text="x", created=made.AT))),
    "answers to sealed questions": (
        ("evaluate", NIGHT),
        lambda to: to.put_rollouts([rollout(NIGHT, Purpose.EVALUATION)]),
    ),
    "the evaluation": (("evaluate", NIGHT), lambda to: to.put_evaluation(examined())),
    "an attempt": (("jobs",), lambda to: to.put_rollouts([rollout("open", Purpose.JOB, "open.0")])),
    "how a job goes": (("jobs",), lambda to: to.put_job(made.job("open", state=JobState.RUNNING))),
    "a bundle": (("jobs",), lambda to: to.put_artifact(bundle())),
}
REFUSED: dict[str, tuple[tuple[str, ...], Call]] = {
    **{
        f"who trains chooses {name}": (("train", "night-2"), planned("night-2", {**NAMES, name: value}))
        for name, value in FIXED.items()
        if name not in NAMES
    },
    **{
        f"who trains changes {name}": (("train", NIGHT), planned(NIGHT, {**PLAN, name: value}))
        for name, value in {"again": made.digest(3), "tasksets": ["linear"], "left_out": {}, SEALED: "0" * 64}.items()
    },
    **{
        f"{who} names a sealed set": ((who, NIGHT), lambda to: to.put_sealed_set("f" * 64, {"items": 1}))
        for who in ("train", "evaluate")
    },
    **{
        f"an exam with {name} {str(value)[:20]!r}": (("prepare", "night-2"), planned("night-2", {**FIXED, name: value}))
        for name, value in [
            ("start", made.digest(2)),
            ("start", None),
            ("again", made.digest(3)),
            (SEALED, "f" * 64),
            (SEALED, [1]),
            ("tasksets", []),
            ("tasksets", ["linear"]),
            ("tasksets", ["digits", 1]),
            ("tasksets", ["digits", "letters"]),
            ("left_out", {}),
            ("left_out", ["linear"]),
            ("left_out", {"digits": "too hard", "linear": ""}),
            ("candidate", made.digest(2)),
            ("stage_1", {}),
        ]
    },
    "half an exam": (("prepare", "night-2"), planned("night-2", {**NAMES, "tasksets": ["digits"]})),
    "an exam that is fixed": (("prepare", NIGHT), planned(NIGHT, {**PLAN, "tasksets": ["linear"]})),
    "who prepares ends the cycle": (("prepare", "night-2"), planned("night-2", FIXED, state=CycleState.DONE)),
    "who prepares trains": (("prepare", NIGHT), lambda to: to.commit_step(made.step_record(prefix=f"{NIGHT}.train."))),
    "a candidate without an exam": (("train", "night-2"), planned("night-2", {**NAMES, "candidate": made.digest(2)})),
    "a candidate that somebody else made": (
        ("train", "night-3"),
        planned("night-3", {**FIXED, "candidate": made.digest(3)}),
    ),
    "a candidate that is nowhere": (("train", "night-3"), planned("night-3", {**FIXED, "candidate": made.digest(9)})),
    "a candidate by a part of its name": (
        ("train", "night-3"),
        planned("night-3", {**FIXED, "candidate": made.digest(6)[:12]}),
    ),
    "another candidate than the one asked again": (
        ("train", "night-4"),
        planned("night-4", {**FIXED, "again": made.digest(3), "candidate": made.digest(6)}),
    ),
    "a start beside the champion": (
        ("train", "night-5"),
        planned("night-5", {**NAMES, **EXAM, "start": made.digest(3)}),
    ),
    "another candidate once one is named": (
        ("train", NIGHT),
        lambda to: to.set_aliases({"candidate": made.digest(6)}, TRAINED, made.AT),
    ),
    "a checkpoint of an unknown parent": (
        ("train", NIGHT),
        lambda to: to.put_checkpoint(made.checkpoint(4, parent=made.digest(3))),
    ),
    "a checkpoint without a parent": (("train", NIGHT), lambda to: to.put_checkpoint(made.checkpoint(4))),
    "a first model beside the champion": (
        ("train", NIGHT),
        lambda to: to.put_checkpoint(made.checkpoint(4, stage="warm_start")),
    ),
    "an evaluation with a base that the champion does not come from": (
        ("evaluate", NIGHT),
        lambda to: to.put_evaluation(examined(base=examined().candidate)),
    ),
    "an evaluation of other questions": (
        ("evaluate", NIGHT),
        lambda to: to.put_evaluation(examined(sealed_set="0" * 64)),
    ),
    "an evaluation before its cycle": (
        ("evaluate", NIGHT),
        lambda to: to.put_evaluation(examined(created="2026-02-28T23:59:59+00:00")),
    ),
    "an evaluation at no time": (("evaluate", NIGHT), lambda to: to.put_evaluation(examined(created="late"))),
    "who evaluates ends the cycle": (("evaluate", NIGHT), planned(NIGHT, PLAN, state=CycleState.DONE)),
    "who evaluates says that it failed": (("evaluate", NIGHT), planned(NIGHT, PLAN, failure="cancelled by a person")),
    "who trains evaluates": (("train", NIGHT), lambda to: to.put_evaluation(examined())),
    "who trains answers the sealed questions": (
        ("train", NIGHT),
        lambda to: to.put_rollouts([rollout(NIGHT, Purpose.EVALUATION)]),
    ),
    "who trains takes the place of such an answer": (
        ("train", NIGHT),
        lambda to: to.put_rollouts([rollout(NIGHT, Purpose.VALIDATION, f"{NIGHT}.evaluation.0.t.0")]),
    ),
    "who trains takes it within a step": (
        ("train", NIGHT),
        lambda to: to.commit_step(made.step_record(prefix=f"{NIGHT}.evaluation.")),
    ),
    "who trains decides": (("train", NIGHT), lambda to: to.put_decision(made.decision())),
    "who trains approves": (("train", NIGHT), lambda to: to.put_approval(made.approval())),
    "who trains starts a canary": (("train", NIGHT), lambda to: to.put_canary(made.canary())),
    "who trains asks for a job": (("train", NIGHT), lambda to: to.put_job(made.job("own"))),
    "who trains replaces the champion": (
        ("train", NIGHT),
        lambda to: to.set_aliases({"champion": made.digest(2)}, TRAINED, made.AT),
    ),
    "who trains takes the champion away": (
        ("train", NIGHT),
        lambda to: to.set_aliases({"champion": None}, TRAINED, made.AT),
    ),
    "who trains names what was before": (
        ("train", NIGHT),
        lambda to: to.set_aliases({"previous": made.digest(2)}, TRAINED, made.AT),
    ),
    "who trains names a canary": (
        ("train", NIGHT),
        lambda to: to.set_aliases({"canary": made.digest(2)}, TRAINED, made.AT),
    ),
    "who trains names two at once": (
        ("train", NIGHT),
        lambda to: to.set_aliases({"candidate": made.digest(2), "champion": made.digest(2)}, TRAINED, made.AT),
    ),
    "a candidate of another night": (
        ("train", NIGHT),
        lambda to: to.set_aliases({"candidate": made.digest(3)}, TRAINED, made.AT),
    ),
    "a move that looks like a person's": (
        ("train", NIGHT),
        lambda to: to.set_aliases({"candidate": made.digest(2)}, "approve by ada", made.AT),
    ),
    **{
        f"an event of kind {kind}": (
            ("train", NIGHT),
            lambda to, kind=kind: to.put_event(Event(kind=kind, text="ada: approve", created=made.AT)),
        )
        for kind in ("governance", "canary", "daemon", "worker")
    },
    "a checkpoint outside": (
        ("train", NIGHT),
        lambda to: to.put_checkpoint(made.checkpoint(4, folder="models/../../etc")),
    ),
    "a checkpoint in another's folder": (
        ("train", NIGHT),
        lambda to: to.put_checkpoint(made.checkpoint(4, folder=f"models/{made.digest(1)}")),
    ),
    "a checkpoint without a digest": (
        ("train", NIGHT),
        lambda to: to.put_checkpoint(made.checkpoint(4, manifest="..", folder="models/..")),
    ),
    "a checkpoint of another night": (
        ("train", NIGHT),
        lambda to: to.put_checkpoint(made.checkpoint(4, cycle="night-2")),
    ),
    "a step of another night": (
        ("train", NIGHT),
        lambda to: to.commit_step(made.step_record(in_cycle="night-2", prefix="night-2.")),
    ),
    "another night": (("train", NIGHT), lambda to: to.put_cycle(made.cycle("night-2", phase="done"))),
    "a new night": (("train", NIGHT), lambda to: to.put_cycle(made.cycle("night-6"))),
    "another seed": (("train", NIGHT), lambda to: to.put_cycle(made.cycle(plan=PLAN, seed=8))),
    "another plan": (("train", NIGHT), lambda to: to.put_cycle(made.cycle(plan={**PLAN, "candidate": made.digest(3)}))),
    "digests that are none": (
        ("train", NIGHT),
        lambda to: to.put_cycle(made.cycle(plan={**PLAN, KEPT_ROLLOUTS: ["x"]})),
    ),
    "digests while it evaluates": (
        ("evaluate", NIGHT),
        lambda to: to.put_cycle(made.cycle(plan={**PLAN, KEPT_ROLLOUTS: ["a" * 64]})),
    ),
    "a shorter plan": (("train", NIGHT), lambda to: to.put_cycle(made.cycle(plan={}))),
    "a plan with more than training says": (
        ("train", NIGHT),
        lambda to: to.put_cycle(made.cycle(plan={**PLAN, "recipes": {}})),
    ),
    "who evaluates trains": (("evaluate", NIGHT), lambda to: to.commit_step(made.step_record())),
    "who evaluates makes a checkpoint": (("evaluate", NIGHT), lambda to: to.put_checkpoint(made.checkpoint(4))),
    "who evaluates moves an alias": (
        ("evaluate", NIGHT),
        lambda to: to.set_aliases({"candidate": made.digest(2)}, "", made.AT),
    ),
    "who evaluates decides": (("evaluate", NIGHT), lambda to: to.put_decision(made.decision())),
    "who evaluates plans": (
        ("evaluate", "night-2"),
        lambda to: to.put_cycle(made.cycle("night-2", plan={"candidate": made.digest(3)})),
    ),
    "the evaluation of another night": (
        ("evaluate", NIGHT),
        lambda to: to.put_evaluation(examined(id="night-2.evaluation", cycle="night-2")),
    ),
    "a second evaluation": (("evaluate", NIGHT), lambda to: to.put_evaluation(examined(id=f"{NIGHT}.again"))),
    "an evaluation of another candidate": (
        ("evaluate", NIGHT),
        lambda to: to.put_evaluation(examined(candidate=made.evaluation(3).candidate)),
    ),
    "an evaluation against another champion": (
        ("evaluate", NIGHT),
        lambda to: to.put_evaluation(examined(champion=made.evaluation(champion=3).champion)),
    ),
    "an evaluation against another anchor": (
        ("evaluate", NIGHT),
        lambda to: to.put_evaluation(examined(anchored={"linear": made.digest(5)})),
    ),
    "who works on jobs asks for one": (("jobs",), lambda to: to.put_job(made.job("own"))),
    "who works on jobs names a model": (
        ("jobs",),
        lambda to: to.set_aliases({"candidate": made.digest(2)}, "", made.AT),
    ),
    "an attempt at a job that has ended": (
        ("jobs",),
        lambda to: to.put_rollouts([rollout("ended", Purpose.JOB, "ended.0")]),
    ),
    "an attempt under a night's name": (("jobs",), lambda to: to.put_rollouts([rollout(NIGHT, Purpose.EVALUATION)])),
    "a bundle of a job that has ended": (
        ("jobs",),
        lambda to: to.put_artifact(bundle(id="ended", job="ended", folder="artifacts/ended")),
    ),
    "a bundle under another's name": (("jobs",), lambda to: to.put_artifact(bundle(id="another"))),
    "a bundle in another's folder": (("jobs",), lambda to: to.put_artifact(bundle(folder="artifacts/another"))),
    "a bundle without a pass": (
        ("jobs",),
        lambda to: to.put_artifact(bundle(verdict=bundle().verdict.model_copy(update={"outcome": Outcome.FAIL}))),
    ),
    "solved without a bundle": (
        ("jobs",),
        lambda to: to.put_job(made.job("open", state=JobState.SOLVED).model_copy(update={"artifact": "open"})),
    ),
    "a bundle outside": (("jobs",), lambda to: to.put_artifact(bundle(folder="artifacts/../../etc"))),
    "what people approved": (("jobs",), lambda to: to.approvals()),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_a_phase_makes_is_written(ledger: SqliteLedger, name: str) -> None:
    work, call = ALLOWED[name]
    before = everything(ledger)
    with at_work(ledger, *work) as remote:
        call(remote)
    assert everything(ledger) != before


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_phase_does_not_make_is_refused_and_changes_nothing(ledger: SqliteLedger, name: str) -> None:
    work, call = REFUSED[name]
    before = everything(ledger)
    with at_work(ledger, *work) as remote:
        with pytest.raises(LedgerError) as refused:
            call(remote)
        assert refused.value.hint
        assert remote.alias("champion") == made.digest(1), "the line goes on"
    assert everything(ledger) == before


@pytest.mark.parametrize("work", ["train", "evaluate"])
def test_no_worker_names_the_first_champion(ledger: SqliteLedger, work: str) -> None:
    ledger.put_checkpoint(made.checkpoint(5, stage="imported"))
    ledger.set_aliases({"champion": None}, "nothing is in service", made.AT)
    for digest in (made.digest(2), made.digest(5)):
        with at_work(ledger, work, NIGHT) as remote, pytest.raises(LedgerError):
            remote.set_aliases({"champion": digest}, "the first", made.AT)
    assert ledger.alias("champion") is None


def test_without_a_champion_training_names_the_first_model(ledger: SqliteLedger) -> None:
    ledger.set_aliases({"champion": None}, "nothing is in service", made.AT)
    with at_work(ledger, "train", "night-5") as remote:
        remote.put_checkpoint(made.checkpoint(5, stage="imported", cycle="night-5"))
        for wrong in (made.digest(9), made.digest(5)[:12], None, ["x"]):
            with pytest.raises(LedgerError):
                remote.put_cycle(made.cycle("night-5", plan={**NAMES, **EXAM, "start": wrong}))
        remote.put_cycle(made.cycle("night-5", plan={**NAMES, **EXAM, "start": made.digest(5)}))
        with pytest.raises(LedgerError):
            remote.put_cycle(made.cycle("night-5", plan={**NAMES, **EXAM, "start": made.digest(1)}))


def test_a_first_model_may_be_the_warm_start_of_an_imported_one_and_of_no_other(ledger: SqliteLedger) -> None:
    ledger.set_aliases({"champion": None}, "nothing is in service", made.AT)
    with at_work(ledger, "train", "night-5") as remote:
        remote.put_checkpoint(made.checkpoint(5, stage="imported", cycle="night-5"))
        for wrong in (made.digest(1), made.digest(9)):
            with pytest.raises(LedgerError):
                remote.put_checkpoint(made.checkpoint(4, parent=wrong, stage="warm_start", cycle="night-5"))
        with pytest.raises(LedgerError):
            remote.put_checkpoint(made.checkpoint(4, parent=made.digest(5), stage="imported", cycle="night-5"))
        remote.put_checkpoint(made.checkpoint(4, parent=made.digest(5), stage="warm_start", cycle="night-5"))
        remote.put_cycle(made.cycle("night-5", plan={**NAMES, **EXAM, "start": made.digest(4)}))


def test_nothing_is_written_to_a_night_that_has_ended(ledger: SqliteLedger) -> None:
    ledger.put_cycle(made.cycle(plan=PLAN, state=CycleState.DONE))
    calls: list[tuple[str, Call]] = [(who, planned(NIGHT, PLAN)) for who in ("prepare", "train", "evaluate")]
    calls += [(work[0], call) for work, call in ALLOWED.values() if work[1:] == (NIGHT,)]
    for who, call in calls:
        if call is ALLOWED["an event"][1]:
            continue
        with at_work(ledger, who, NIGHT) as remote, pytest.raises(LedgerError, match="is not running"):
            call(remote)


def test_a_job_is_solved_with_its_bundle(ledger: SqliteLedger) -> None:
    with at_work(ledger, "jobs") as remote:
        remote.put_artifact(bundle())
        solved = made.job("open", state=JobState.SOLVED)
        with pytest.raises(LedgerError):
            remote.put_job(solved.model_copy(update={"artifact": "another"}))
        assert remote.put_job(solved.model_copy(update={"artifact": "open"})).state is JobState.SOLVED


def test_a_job_that_has_ended_stays_as_it_ended(ledger: SqliteLedger) -> None:
    with at_work(ledger, "jobs") as remote:
        assert remote.put_job(made.job("ended", state=JobState.QUEUED)).state is JobState.UNSOLVED


def everything(ledger: SqliteLedger) -> list[object]:
    return [
        ledger.cycles(100),
        ledger.checkpoints(),
        ledger.evaluations(),
        ledger.decisions(),
        ledger.approvals(),
        ledger.canaries(),
        ledger.alias_history(),
        ledger.jobs(),
        ledger.artifacts(),
        ledger.rollouts(limit=1000),
        ledger.recorded_steps(NIGHT),
        ledger.events(),
        ledger.recorded_steps("night-2"),
        ledger.sealed_sets(),
    ]


@pytest.mark.parametrize("work", [("train", NIGHT), ("evaluate", NIGHT), ("jobs", "any")], ids=lambda work: work[0])
def test_a_call_without_a_rule_is_refused(ledger: SqliteLedger, work: tuple[str, ...]) -> None:
    for call in ("put_decision", "no_such_call"):
        assert grant_of(work).refusal(SimpleNamespace(call=call), ledger)
