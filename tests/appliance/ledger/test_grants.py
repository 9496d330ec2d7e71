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
from appliance.records.cycles import KEPT_ROLLOUTS, CycleState, Event
from appliance.records.evaluations import Evaluation
from appliance.records.jobs import Artifact, JobState
from appliance.records.rollouts import Purpose
from appliance.records.training import Judged
from verifiers.contract.verdict import Outcome

NIGHT = "night-1"
PLAN = {"recipe": {}, "start": made.digest(1), "candidate": made.digest(2)}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    """With a night that has a champion and a candidate, another night, an open job and one that has ended."""
    with SqliteLedger(tmp_path / "ledger.sqlite3") as opened:
        opened.put_cycle(made.cycle(plan=PLAN))
        opened.put_cycle(made.cycle("night-2"))
        opened.put_checkpoint(made.checkpoint(1, stage="warm_start", cycle="night-0"))
        opened.put_checkpoint(made.checkpoint(2))
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


def rollout(work: str, purpose: Purpose, name: str = "") -> Judged:
    return made.judged(name or f"{work}.{purpose.value}.0.t.0", in_cycle=work, purpose=purpose)


def examined(**changes: object) -> Evaluation:
    return made.evaluation().model_copy(update={"id": f"{NIGHT}.evaluation", **changes})


def bundle(**changes: object) -> Artifact:
    return made.artifact("open").model_copy(update={"job": "open", **changes})


Call = Callable[[Ledger], object]
ALLOWED: dict[str, tuple[tuple[str, ...], Call]] = {
    "a step": (("train", NIGHT), lambda to: to.commit_step(made.step_record(prefix=f"{NIGHT}.train."))),
    "held-out answers": (("train", NIGHT), lambda to: to.put_rollouts([rollout(NIGHT, Purpose.VALIDATION)])),
    "a checkpoint": (("train", NIGHT), lambda to: to.put_checkpoint(made.checkpoint(4))),
    "its candidate": (("train", NIGHT), lambda to: to.set_aliases({"candidate": made.digest(2)}, "trained", made.AT)),
    "a candidate that an earlier night made from the same model": (
        ("train", NIGHT),
        lambda to: to.set_aliases({"candidate": made.digest(6)}, "trained", made.AT),
    ),
    "how far it is": (("train", NIGHT), lambda to: to.put_cycle(made.cycle(plan=PLAN, phase="training"))),
    "what is left out": (("train", "night-2"), lambda to: to.put_cycle(made.cycle("night-2", plan={"left_out": {}}))),
    "the digests of what it keeps": (
        ("train", "night-2"),
        lambda to: [to.put_cycle(made.cycle("night-2", plan={KEPT_ROLLOUTS: [one * 64]})) for one in "ab"],
    ),
    "a longer plan": (("train", "night-2"), lambda to: to.put_cycle(made.cycle("night-2", plan={"start": "x"}))),
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
        lambda to: to.set_aliases({"champion": made.digest(2)}, "", made.AT),
    ),
    "who trains takes the champion away": (
        ("train", NIGHT),
        lambda to: to.set_aliases({"champion": None}, "", made.AT),
    ),
    "who trains names what was before": (
        ("train", NIGHT),
        lambda to: to.set_aliases({"previous": made.digest(2)}, "", made.AT),
    ),
    "who trains names a canary": (("train", NIGHT), lambda to: to.set_aliases({"canary": made.digest(2)}, "", made.AT)),
    "who trains names two at once": (
        ("train", NIGHT),
        lambda to: to.set_aliases({"candidate": made.digest(2), "champion": made.digest(2)}, "", made.AT),
    ),
    "a candidate of another night": (
        ("train", NIGHT),
        lambda to: to.set_aliases({"candidate": made.digest(3)}, "", made.AT),
    ),
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
    "a new night": (("train", NIGHT), lambda to: to.put_cycle(made.cycle("night-3"))),
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


def test_a_night_that_has_ended_is_not_written_again(ledger: SqliteLedger) -> None:
    ledger.put_cycle(made.cycle(plan=PLAN, state=CycleState.DONE))
    for work in ("train", "evaluate"):
        with at_work(ledger, work, NIGHT) as remote, pytest.raises(LedgerError):
            remote.put_cycle(made.cycle(plan=PLAN))


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
    ]


@pytest.mark.parametrize("work", [("train", NIGHT), ("evaluate", NIGHT), ("jobs", "any")], ids=lambda work: work[0])
def test_a_call_without_a_rule_is_refused(ledger: SqliteLedger, work: tuple[str, ...]) -> None:
    for call in ("put_decision", "no_such_call"):
        assert grant_of(work).refusal(SimpleNamespace(call=call), ledger)
