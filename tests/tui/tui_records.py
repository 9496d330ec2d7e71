"""A night's records, such as a cycle leaves them: enough of each kind to fill the screen."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from good_evidence import good_measurements

from appliance.learning.folders import write_by_digest
from appliance.ledger.ledger import Ledger
from appliance.promotion.evidence import decision_on
from appliance.records.cycles import Checkpoint, Cycle, CycleState, Event
from appliance.records.evaluations import Evaluation, ItemResult, ModelResults
from appliance.records.jobs import Job, JobState
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd, ToolCall, ToolStatus, WeightSpan
from appliance.records.training import Judged, StepRecord
from curriculum.contract.task import Split
from curriculum.registry import CALCULATORS, make_task
from curriculum.seeds import seeds
from policies.contract.decision import Decision
from policies.policy import load
from runtime.sandbox import Tier
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.predicate.spec import PredicateSpec

NOW = datetime.now(UTC)
CYCLE = "night-20260301t020000-7c1e"
PASSPHRASE = "correct horse"


def at(minutes: float) -> str:
    """Minutes from now, as records write it."""
    return (NOW + timedelta(minutes=minutes)).isoformat(timespec="milliseconds")


def verdict(outcome: Outcome, reason: str = "6 = 6") -> Verdict:
    score = 1.0 if outcome is Outcome.PASS else 0.0
    return Verdict(outcome=outcome, score=score, reason=reason, verifier="integer", version="1", seconds=0.0004)


def judged(
    name: str,
    *,
    question_id: str = "t",
    family: str = "divisors",
    step: int = 0,
    outcome: Outcome = Outcome.PASS,
    calls: tuple[ToolCall, ...] = (),
    answer: str | None = "6",
    reason: str = "6 = 6",
    purpose: Purpose = Purpose.TRAIN,
    cycle: str = CYCLE,
) -> Judged:
    nodes = [Message(parent=None, role=Role.USER, ids=tuple(range(24)), sampled=False)]
    for call in calls:
        nodes.append(Message(parent=len(nodes) - 1, role=Role.TOOL, ids=(1, 2, 3), sampled=False, call=call))
    drawn = (WeightSpan(version=f"{CYCLE}@{step}", start=0, end=2),)
    nodes.append(
        Message(
            parent=len(nodes) - 1, role=Role.ASSISTANT, ids=(4, 5), sampled=True, logprobs=(-0.1, -0.2), weights=drawn
        )
    )
    rollout = Rollout(
        id=name,
        cycle=cycle,
        step=step,
        task=question_id,
        sample=0,
        purpose=purpose,
        temperature=1.0,
        nodes=tuple(nodes),
        ended=RolloutEnd.ANSWERED,
        answer=answer,
        answers=0 if answer is None else 1,
        seconds=0.41,
    )
    return Judged(rollout=rollout, verdict=verdict(outcome, reason), family=family)


def call(code: str, output: str = "", status: ToolStatus = ToolStatus.OK, error: str = "") -> ToolCall:
    tier = Tier.SHARED if status is ToolStatus.OK else Tier.PROCESS
    return ToolCall(code=code, status=status, output=output, error=error, seconds=0.0006, tier=tier, sandbox="shared-1")


def step_metrics(step: int, success: float) -> dict[str, float]:
    return {
        "success": success,
        "tool_errors_in_correct": max(0.0, 0.24 - 0.007 * step),
        "tokens": 11_300.0,
        "tool_calls": 520.0,
        "sampling_seconds": 1.21,
    }


def training_step(step: int, *, success: float, rollouts: int = 24) -> StepRecord:
    rng = Random(step)
    tasks, made = [], []
    for index in range(rollouts):
        family = sorted(CALCULATORS)[index % len(CALCULATORS)]
        task = make_task(family, 0, next(seeds(Split.TRAIN, 1000 * step + index)), Split.TRAIN)
        expected = str(getattr(task.spec, "expected", "6"))
        tasks.append(task.record())
        passed = rng.random() < success
        calls = [call(f"print({expected})", f"{expected}\n")]
        if rng.random() < 0.25:
            calls.insert(0, call("print(gcd(12))", "", ToolStatus.EXCEPTION, "NameError: name 'gcd' is not defined"))
        answer = expected if passed else str(rng.randrange(100))
        made.append(
            judged(
                f"{CYCLE}.train.{step}.{task.id}.{index}",
                question_id=task.id,
                family=family,
                step=step,
                outcome=Outcome.PASS if passed else Outcome.FAIL,
                calls=tuple(calls),
                answer=answer,
                reason=f"{answer} {'=' if passed else '≠'} {expected}",
            )
        )
    return StepRecord(
        cycle=CYCLE, step=step, tasks=tuple(tasks), judged=tuple(made), groups=(), metrics=step_metrics(step, success)
    )


def cycle(phase: str = "training", state: CycleState = CycleState.RUNNING, **changes: object) -> Cycle:
    made = Cycle(
        id=CYCLE,
        kind="night",
        seed=7,
        plan={},
        phase=phase,
        state=state,
        created=at(-9),
        updated=at(0),
        seconds={"prepare": 1.2, "warm_start": 88.0, "training": 64.0},
    )
    return made.model_copy(update=changes)


def checkpoint(data: Path, name: str, *, parent: str | None, stage: str, step: int) -> Checkpoint:
    """With a real folder: its digest is its manifest's, as governance checks it."""
    digest = write_by_digest(data / "models", {"weights.txt": name.encode()})
    return Checkpoint.model_validate(
        {
            "manifest": digest,
            "parent": parent,
            "cycle": CYCLE,
            "stage": stage,
            "step": step,
            "recipe": "00" * 32,
            "metrics": {"watch_success": 0.81},
            "folder": f"models/{digest}",
            "created": at(-1),
        }
    )


def evaluation(candidate: str, champion: str, *, better: bool = True) -> Evaluation:
    """512 questions; the candidate answers about 30 points more of them when it is `better`."""
    rng = Random(3)
    families = sorted(CALCULATORS)
    before = [rng.random() < 0.49 for _ in range(512)]
    after = [old or (better and rng.random() < 0.62) for old in before]

    def results(weights: str, passed: list[bool], temperature: float) -> ModelResults:
        items = tuple(
            ItemResult(task=f"q{i}", family=families[i % len(families)], passed=one, calls=2, failed_calls=0)
            for i, one in enumerate(passed)
        )
        return ModelResults(weights=weights, temperature=temperature, items=items, tokens=30_000, seconds=3.4)

    return Evaluation(
        id=f"{CYCLE}.evaluation.{candidate[:6]}",
        cycle=CYCLE,
        sealed_set=hashlib.sha256("\n".join(f"q{i}" for i in range(512)).encode()).hexdigest(),
        candidate=results(candidate, after, 1.0),
        champion=results(champion, before, 1.0),
        candidate_greedy=results(candidate, after, 0.0),
        champion_greedy=results(champion, before, 0.0),
        measurements=good_measurements(at(-1)),
        created=at(-1),
    )


def put_candidate(ledger: Ledger, data: Path, *, better: bool = True) -> Decision:
    """A champion, a candidate that was evaluated against it, and what the packaged policy says before any word."""
    champion = checkpoint(data, "warm start", parent=None, stage="warm_start", step=450)
    candidate = checkpoint(data, f"trained {better}", parent=champion.manifest, stage="training", step=60)
    found = evaluation(candidate.manifest, champion.manifest, better=better)
    for one in (champion, candidate):
        ledger.put_checkpoint(one)
    ledger.set_aliases({"champion": champion.manifest, "candidate": candidate.manifest}, "trained", at(-1))
    ledger.put_evaluation(found)
    decision = decision_on(
        found, load(), in_service=champion.manifest, history=[], id=f"{found.id}.decision", made_at=at(0)
    )
    ledger.put_decision(decision)
    return decision


def job(name: str, state: JobState, question: str = "find x with 7x+3=45", **changes: object) -> Job:
    made = Job(
        id=f"job-{name}",
        question=question,
        spec=PredicateSpec(predicate="7*x+3 == 45"),
        state=state,
        created=at(-2),
        updated=at(-1),
    )
    return made.model_copy(update=changes)


def put_night(ledger: Ledger, data: Path, *, steps: int = 31) -> Decision:
    """A night in the middle of its training, after a first night left a candidate that waits for a word."""
    decision = put_candidate(ledger, data)
    ledger.put_cycle(cycle())
    ledger.put_event(Event(kind="phase", text="training", created=at(-5)))
    for step in range(steps):
        success = 0.49 + 0.37 * (1 - 0.93**step) + 0.02 * Random(step).uniform(-1, 1)
        if step >= steps - 2:
            ledger.commit_step(training_step(step, success=success))
        figures = {"step": float(step), "steps": 60.0, **step_metrics(step, success)}
        ledger.put_event(Event(kind="step", text=f"step {step + 1} of 60", figures=figures, created=at(-4)))
    ledger.put_job(job("5f0c21", JobState.SOLVED, artifact="artifact-81aa", reason="the third attempt passed"))
    tried = ("5: 7*5+3 = 38, not 45", "none: no final answer")
    ledger.put_job(job("a9d3e7", JobState.UNSOLVED, "n with n*n == 2", reason="16 attempts failed", tried=tried))
    ledger.put_job(job("c04b11", JobState.QUEUED, "the largest divisor of 360 below 50"))
    return decision
