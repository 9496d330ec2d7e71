"""A ledger with one night's step, of tasks that are given, and the file of what the night kept apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from appliance.curriculum.kept_files import keep_questions
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import Cycle, CycleState
from appliance.records.evaluations import Evaluation, ModelResults
from appliance.records.jobs import Artifact, Job, JobState
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd, ToolCall, ToolStatus
from appliance.records.training import Group, Judged, StepRecord
from curriculum.contract.task import Task
from curriculum.sealed import SealedSet
from curriculum.seeds import derive
from policies.contract.decision import Decision, DecisionOutcome
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.registry.spec import Spec

AT = "2026-03-01T02:00:00+00:00"


def verdict(*, passed: bool = True, version: str = "0", verifier: str = "answer") -> Verdict:
    outcome = Outcome.PASS if passed else Outcome.FAIL
    return Verdict(outcome=outcome, score=float(passed), reason="so", verifier=verifier, version=version, seconds=0.001)


def judged(
    task: Task,
    *,
    cycle: str = "night-1",
    output: str = "6\n",
    answer: str = "6",
    purpose: Purpose = Purpose.TRAIN,
    given: Verdict | None = None,
    step: int = 0,
) -> Judged:
    call = ToolCall(code="print(6)", status=ToolStatus.OK, output=output, sandbox="box-1")
    rollout = Rollout(
        id=f"{cycle}.{purpose.value}.{step}.{task.id}.0" if step else f"{cycle}.{purpose.value}.{task.id}.0",
        cycle=cycle,
        step=step,
        task=task.id,
        sample=0,
        purpose=purpose,
        temperature=1.0,
        nodes=(Message(parent=None, role=Role.TOOL, ids=(1,), sampled=False, call=call),),
        ended=RolloutEnd.ANSWERED,
        answer=answer,
        answers=1,
        seconds=0.5,
    )
    return Judged(rollout=rollout, verdict=given or verdict(), family=task.taskset)


def put_night(
    ledger: SqliteLedger,
    data: Path,
    sealed: SealedSet,
    rollouts: Sequence[Judged],
    tasks: Sequence[Task],
    tasksets: Sequence[str] = ("modular_arithmetic", "calendars"),
    notes: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """One cycle, `night-1`, whose step trained on these tasks."""
    ledger.put_cycle(
        Cycle(
            id="night-1",
            kind="night",
            seed=3,
            plan={"tasksets": tasksets, **notes},
            phase="done",
            state=CycleState.DONE,
            created=AT,
            updated=AT,
        )
    )
    ledger.put_sealed_set(sealed.digest, sealed.description)
    keep_questions(data, "night-1", sealed.tasks)
    groups = tuple(
        Group(
            id=one.rollout.id,
            cycle="night-1",
            step=0,
            task=one.rollout.task,
            rollouts=(one.rollout.id,),
            rewards=(1.0,),
            kept=(0,),
            advantages=(1.0,),
            selector="roc",
            reason="",
        )
        for one in rollouts
    )
    ledger.commit_step(
        StepRecord(
            cycle="night-1",
            step=0,
            tasks=tuple(task.record() for task in tasks),
            judged=tuple(rollouts),
            groups=groups,
            metrics={},
        )
    )


def put_decision(
    ledger: SqliteLedger,
    cycle: str,
    sealed: SealedSet,
    *,
    candidate: str = "c" * 64,
    champion: str = "c" * 64,
    at: str = AT,
) -> Decision:
    """A promotion that rests on that cycle's evaluation."""
    ours, theirs = (
        ModelResults(weights=weights, temperature=1.0, items=(), tokens=0, seconds=1.0)
        for weights in (candidate, champion)
    )
    evaluation = Evaluation(
        id=f"{cycle}.evaluation",
        cycle=cycle,
        sealed_set=sealed.digest,
        candidate=ours,
        champion=theirs,
        candidate_greedy=ours,
        champion_greedy=theirs,
        created=at,
    )
    decision = Decision(
        id=f"{cycle}.decision",
        candidate=candidate,
        champion=None,
        evaluation=evaluation.id,
        policy="p" * 64,
        outcome=DecisionOutcome.PROMOTE,
        findings=(),
        reason="better",
        would_change="",
        made_at=at,
    )
    ledger.put_evaluation(evaluation)
    ledger.put_decision(decision)
    return decision


def put_bundle(
    ledger: SqliteLedger, number: int, spec: Spec, answer: str, given: Verdict, *, created: str = AT
) -> Artifact:
    """A job that was solved, with its bundle."""
    job = Job(
        id=f"job-{number:012x}",
        question="6?",
        spec=spec,
        state=JobState.SOLVED,
        artifact=f"bundle-{number}",
        created=created,
        updated=created,
    )
    artifact = Artifact(
        id=f"bundle-{number}",
        job=job.id,
        folder="x",
        manifest="0" * 64,
        answer=answer,
        weights="",
        verdict=given,
        created=created,
    )
    ledger.put_artifact(artifact)
    ledger.put_job(job)
    return artifact


SEED = derive("sealed", 3)
"""Of the sealed set of that night."""
