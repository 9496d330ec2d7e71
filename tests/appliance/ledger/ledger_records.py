"""Records to fill a ledger with: small, complete, and different for different arguments."""

from __future__ import annotations

import inspect
from random import Random

from appliance.ledger.grants import Grant
from appliance.ledger.ledger import Ledger
from appliance.records.cycles import Checkpoint, Cycle, CycleState
from appliance.records.evaluations import Approval, Evaluation, ItemResult, ModelResults
from appliance.records.jobs import Artifact, Job, JobState
from appliance.records.nights import Canary, CanaryState
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd, ToolCall, ToolStatus, WeightSpan
from appliance.records.training import Group, Judged, StepRecord
from curriculum.contract.task import Split, Task, asked
from policies.contract.decision import Decision, DecisionOutcome, GateFinding, GateOutcome
from policies.policy import load
from runtime.sandbox import Tier
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.predicate.spec import PredicateSpec

AT = "2026-03-01T02:00:00+00:00"


EVERYTHING = Grant(
    "a test",
    {
        name: lambda request, ledger: True
        for name, _ in inspect.getmembers(Ledger, inspect.isfunction)
        if name[0] != "_"
    },
)
"""For tests of the line itself."""


def digest(seed: int) -> str:
    return f"{Random(seed).getrandbits(256):064x}"


def cycle(name: str = "night-1", **changes: object) -> Cycle:
    made = Cycle(
        id=name, kind="night", seed=7, plan={}, phase="prepare", state=CycleState.RUNNING, created=AT, updated=AT
    )
    return made.model_copy(update=changes)


def verdict(*, passed: bool = True) -> Verdict:
    outcome = Outcome.PASS if passed else Outcome.FAIL
    return Verdict(outcome=outcome, score=float(passed), reason="6 = 6", verifier="integer", version="1", seconds=0.001)


def judged(
    name: str,
    *,
    in_cycle: str = "night-1",
    step: int = 0,
    sample: int = 0,
    purpose: Purpose = Purpose.TRAIN,
    tokens: int = 12,
    answer: str = "6",
    task: str = "t",
) -> Judged:
    rng = Random(name)
    half = tuple(rng.randrange(512) for _ in range(tokens // 2))
    call = ToolCall(
        code="print(6)", status=ToolStatus.OK, output="6\n", seconds=0.001, tier=Tier.SHARED, sandbox="box-1"
    )
    nodes = (
        Message(parent=None, role=Role.USER, ids=half, sampled=False),
        Message(
            parent=0,
            role=Role.ASSISTANT,
            ids=half,
            sampled=True,
            logprobs=tuple(-rng.random() for _ in half),
            weights=(WeightSpan(version=digest(1), start=0, end=len(half)),),
        ),
        Message(parent=1, role=Role.TOOL, ids=(1, 2), sampled=False, call=call),
    )
    rollout = Rollout(
        id=name,
        cycle=in_cycle,
        step=step,
        task=task,
        sample=sample,
        purpose=purpose,
        temperature=1.0,
        nodes=nodes,
        ended=RolloutEnd.ANSWERED,
        answer=answer,
        answers=1,
        seconds=0.5,
    )
    return Judged(rollout=rollout, verdict=verdict(), family="divisors")


def step_record(
    step: int = 0, *, in_cycle: str = "night-1", rollouts: int = 4, tokens: int = 12, prefix: str = ""
) -> StepRecord:
    task = Task(
        taskset="divisors",
        level=1,
        seed=3,
        split=Split.TRAIN,
        messages=asked("gcd of 12 and 18?"),
        spec=AnswerSpec(notation="digits", expected="6"),
    )
    names = tuple(f"{prefix}{in_cycle}/{step}/{sample}" for sample in range(rollouts))
    return StepRecord(
        cycle=in_cycle,
        step=step,
        tasks=(task.record(),),
        judged=tuple(
            judged(name, in_cycle=in_cycle, step=step, sample=sample, tokens=tokens, task=task.id)
            for sample, name in enumerate(names)
        ),
        groups=(
            Group(
                id=f"{in_cycle}/{step}/{task.id}",
                cycle=in_cycle,
                step=step,
                task=task.id,
                rollouts=names,
                rewards=(1.0,) * rollouts,
                kept=(),
                advantages=(),
                selector="roc",
                reason="every rollout passed: no signal",
            ),
        ),
        metrics={"success": 0.5, "tokens_per_second": 900.0},
    )


def checkpoint(seed: int = 1, **changes: object) -> Checkpoint:
    made = Checkpoint(
        manifest=digest(seed),
        parent=None,
        cycle="night-1",
        stage="training",
        step=10,
        recipe=digest(0),
        metrics={"validation": 0.75},
        folder=f"models/{digest(seed)}",
        created=AT,
    )
    return made.model_copy(update=changes)


def evaluation(candidate: int = 2, champion: int = 1) -> Evaluation:
    def results(seed: int, temperature: float) -> ModelResults:
        items = tuple(
            ItemResult(task=f"t{i}", family="divisors", passed=i % 2 == 0, calls=1, failed_calls=0) for i in range(4)
        )
        return ModelResults(weights=digest(seed), temperature=temperature, items=items, tokens=240, seconds=1.0)

    return Evaluation(
        id=f"evaluation-{candidate}",
        cycle="night-1",
        sealed_set=digest(99),
        candidate=results(candidate, 1.0),
        champion=results(champion, 1.0),
        candidate_greedy=results(candidate, 0.0),
        champion_greedy=results(champion, 0.0),
        created=AT,
    )


def decision(candidate: int = 2, name: str = "decision-1") -> Decision:
    finding = GateFinding(
        gate="improvement",
        outcome=GateOutcome.PASSED,
        figure=31.0,
        low=26.0,
        high=36.0,
        threshold=0.0,
        reason="31 points better",
    )
    return Decision(
        id=name,
        candidate=digest(candidate),
        champion=digest(1),
        evaluation=f"evaluation-{candidate}",
        policy=digest(50),
        outcome=DecisionOutcome.HOLD,
        findings=(finding,),
        reason="a person has to approve it",
        would_change="an approval",
        made_at=AT,
    )


def approval(person: str = "ada", *, candidate: int = 2) -> Approval:
    return Approval(
        decision=decision().digest(), candidate=digest(candidate), verdict="approve", person=person, created=AT
    )


def canary(name: str = "canary-1", state: CanaryState = CanaryState.REPLAY) -> Canary:
    return Canary(
        id=name,
        candidate=digest(2),
        champion=digest(1),
        decision="decision-1",
        rules=load().service,
        state=state,
        started=AT,
    )


def job(name: str = "job-1", state: JobState = JobState.QUEUED) -> Job:
    spec = PredicateSpec(predicate="7*x+3 == 45")
    return Job(id=name, question="find x with 7x+3=45", spec=spec, state=state, created=AT, updated=AT)


def artifact(name: str = "artifact-1") -> Artifact:
    return Artifact(
        id=name,
        job="job-1",
        folder=f"artifacts/{name}",
        manifest=digest(70),
        answer="6",
        weights=digest(1),
        verdict=verdict(),
        created=AT,
    )
