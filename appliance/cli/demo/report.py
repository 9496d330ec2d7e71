"""Figures at the end of the demonstration, computed from the ledger's records alone, so a second look gives the
same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from appliance.agent.loop import calls_outside_sandbox
from appliance.learning.signal.comparison import Share, by_family, compare
from appliance.ledger.ledger import Ledger
from appliance.records.cycles import Cycle
from appliance.records.jobs import Job
from appliance.records.rollouts import Purpose
from appliance.records.training import RolloutFilter
from policies.contract.decision import GateFinding
from runtime.model import FrozenModel

MOST_ROLLOUTS = 1_000_000


class FamilyRow(FrozenModel):
    family: str
    items: int
    base: float | None
    """Success before the warm start; None for the embedded model, which begins with it."""
    before: float
    after: float


class DemoReport(FrozenModel):
    """The demonstration's night in figures. Shares are from 0 to 1, gains in percentage points, times in seconds."""

    cycle: str
    seed: int
    seconds: float
    seconds_by_phase: dict[str, float]
    seconds_in_training: dict[str, float]
    """Seconds for sampling (engine and tools), verifying, and learning with all records and checks."""
    sealed_items: int
    sealed_set: str
    success_base: float | None
    """Success of the pretrained model before its warm start; None for the embedded one."""
    success_base_low: float | None
    success_base_high: float | None
    success_before: float
    success_before_low: float
    success_before_high: float
    success_after: float
    success_after_low: float
    success_after_high: float
    greedy_before: float
    greedy_after: float
    gain: float
    gain_low: float
    gain_high: float
    families: tuple[FamilyRow, ...]
    tool_errors_in_correct_before: float
    tool_errors_in_correct_after: float
    tokens_per_second: float
    """Tokens sampled in training, per second of sampling."""
    tool_calls_per_second: float
    tool_calls: int
    tool_calls_outside_sandbox: int
    rollouts: dict[str, int]
    champion: str
    candidate: str
    decision: str
    decision_reason: str
    would_change: str
    findings: tuple[GateFinding, ...]
    job: str
    question: str
    job_state: str
    job_reason: str
    answer: str
    """Hostile text: escape it."""
    bundle: str
    bundle_manifest: str
    verified: bool
    """True if `assay verify` accepted the bundle in its own process."""


def report(ledger: Ledger, cycle: Cycle, job: Job, *, bundle: str, verified: bool, seconds: float) -> DemoReport:
    """Computes the demonstration's figures from the ledger's records of its cycle and job."""
    evaluation = ledger.evaluation(f"{cycle.id}.evaluation")
    assert evaluation is not None
    candidate = evaluation.candidate.weights
    decision = next(one for one in ledger.decisions(candidate=candidate) if one.evaluation == evaluation.id)
    artifact = ledger.artifact(job.artifact) if job.artifact else None
    steps = ledger.step_metrics(cycle.id)
    examined = [
        *ledger.rollouts(RolloutFilter(cycle=cycle.id, purpose=Purpose.EVALUATION), limit=MOST_ROLLOUTS),
        *ledger.rollouts(RolloutFilter(cycle=cycle.id, purpose=Purpose.VALIDATION), limit=MOST_ROLLOUTS),
        *ledger.rollouts(RolloutFilter(job=job.id), limit=MOST_ROLLOUTS),
    ]
    sampled = compare(evaluation.candidate, evaluation.champion)
    greedy = compare(evaluation.candidate_greedy, evaluation.champion_greedy)
    families = by_family(evaluation.candidate, evaluation.champion)
    base = None if evaluation.base is None else compare(evaluation.champion, evaluation.base).champion
    bases = {} if evaluation.base is None else by_family(evaluation.champion, evaluation.base)
    sampling = _sum(steps, "sampling_seconds")
    outside = calls_outside_sandbox([one.rollout for one in examined])
    return DemoReport(
        cycle=cycle.id,
        seed=cycle.seed,
        seconds=seconds,
        seconds_by_phase=dict(cycle.seconds),
        seconds_in_training=_training_seconds(cycle, steps),
        sealed_items=sampled.items,
        sealed_set=evaluation.sealed_set,
        **_interval("success_base", base),
        **_interval("success_before", sampled.champion),
        **_interval("success_after", sampled.candidate),
        greedy_before=greedy.champion.value,
        greedy_after=greedy.candidate.value,
        **_interval("gain", sampled.gain, 100.0),
        families=tuple(
            FamilyRow(
                family=name,
                items=found.items,
                base=bases[name].champion.value if name in bases else None,
                before=found.champion.value,
                after=found.candidate.value,
            )
            for name, found in families.items()
        ),
        tool_errors_in_correct_before=sampled.champion_errors,
        tool_errors_in_correct_after=sampled.candidate_errors,
        tokens_per_second=_sum(steps, "tokens") / sampling if sampling else 0.0,
        tool_calls_per_second=_sum(steps, "tool_calls") / sampling if sampling else 0.0,
        tool_calls=int(_sum(steps, "tool_calls")) + sum(len(one.rollout.calls) for one in examined),
        tool_calls_outside_sandbox=int(_sum(steps, "tool_calls_outside_sandbox")) + outside,
        rollouts=dict(ledger.rollout_counts(cycle.id)),
        champion=evaluation.champion.weights,
        candidate=candidate,
        decision=decision.outcome.value,
        decision_reason=decision.reason,
        would_change=decision.would_change,
        findings=decision.findings,
        job=job.id,
        question=job.question,
        job_state=job.state.value,
        job_reason=job.reason,
        answer=artifact.answer if artifact else "",
        bundle=bundle,
        bundle_manifest=artifact.manifest if artifact else "",
        verified=verified,
    )


def _interval(name: str, share: Share | None, unit: float = 1.0) -> dict[str, Any]:
    if share is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    return {name: unit * share.value, f"{name}_low": unit * share.low, f"{name}_high": unit * share.high}


def _sum(steps: Sequence[Mapping[str, float]], name: str) -> float:
    return sum(step.get(name, 0.0) for step in steps)


def _training_seconds(cycle: Cycle, steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    parts = {"sampling": _sum(steps, "sampling_seconds"), "verifying": _sum(steps, "verifying_seconds")}
    whole = cycle.seconds.get("training", 0.0)
    return {**parts, "learning and records": max(0.0, whole - sum(parts.values()))}
