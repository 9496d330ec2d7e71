"""Invents a week of nights for `assay tui --demo-data`: real tasks, and plausible model behaviour.

Invariants: equal seeds give equal records but for their times; nothing was measured, and nothing leaves the temporary
folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from tokenizers import Tokenizer

from appliance.records.clustered_interval import AttemptSums
from appliance.records.cycles import Cycle, CycleState, Event
from appliance.records.evaluations import Evaluation, ItemResult, ModelResults
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd, ToolCall, ToolStatus, WeightSpan
from appliance.records.training import Group, Judged, StepRecord
from appliance.rendering.markers import SEEDLING
from curriculum.contract.task import Split, Task
from curriculum.registry import CALCULATORS, make_task, taskset_named
from curriculum.seeds import seeds
from policies.contract.evidence import (
    ContaminationReport,
    DriftReport,
    HackReport,
    Measurements,
    ProbeReport,
    SelfTestReport,
)
from runtime.sandbox import Tier, Usage
from verifiers.contract.verdict import Outcome, Verdict

STEPS, TASKS, SAMPLES, LEVELS = 16, 4, 4, 3
ITEMS = 512
PHASES = {"prepare": 1.4, "training": 812.0, "evaluation": 96.0, "decision": 0.3}


@dataclass(frozen=True)
class DemoNight:
    """One made-up night; `skill` is the model's share of right answers at its first and its last step."""

    number: int
    began: datetime
    start: str
    """Digest of the model that it starts from."""
    skill: tuple[float, float]
    steps: int = STEPS

    @property
    def id(self) -> str:
        return f"night-{self.began:%Y%m%dt%H%M%S}-{self.number:04x}"

    def at(self, minutes: float) -> str:
        return (self.began + timedelta(minutes=minutes)).isoformat(timespec="milliseconds")

    def cycle(self) -> Cycle:
        return Cycle(
            id=self.id,
            kind="night",
            seed=self.number,
            plan={"start": self.start},
            phase="done",
            state=CycleState.DONE,
            created=self.at(0),
            updated=self.at(16),
            seconds=PHASES,
        )


def texts_for_tokens() -> list[str]:
    """Returns training texts for the tokenizer of the made-up models."""
    questions = [task.question for task in _tasks(Random(1), 0, 40)]
    return [
        *questions,
        "print( )\nimport math\nfrom sympy import\nThe answer is \\boxed{ }.\nNameError: name is not defined",
    ]


def _tasks(rng: Random, first: int, count: int) -> list[Task]:
    names = sorted(CALCULATORS)
    source = seeds(Split.TRAIN, first)
    made = []
    for place in range(count):
        name = names[(first + place) % len(names)]
        level = rng.randrange(LEVELS)
        made.append(make_task(name, min(level, taskset_named(name).level_count - 1), next(source), Split.TRAIN))
    return made


def training_steps(night: DemoNight, tokenizer: Tokenizer) -> Iterator[tuple[StepRecord, Event]]:
    """Invents a night's training. Yields the record of each step with its event, in order."""
    rng = Random(night.number)
    low, high = night.skill
    for step in range(night.steps):
        skill = low + (high - low) * (1 - 0.85**step) / (1 - 0.85**STEPS)
        tasks = _tasks(rng, 1000 * night.number + TASKS * step, TASKS)
        judged: list[Judged] = []
        groups = []
        for place, task in enumerate(tasks):
            own = _attempts(night, step, task, skill - 0.18 * task.level, rng, tokenizer)
            if place == 0:
                own.append(_branch(own[0], rng, tokenizer))
            judged += own
            groups.append(_group(night, step, task, own))
        metrics = _metrics(judged, step, rng)
        record = StepRecord(
            cycle=night.id,
            step=step,
            tasks=tuple(task.record() for task in tasks),
            judged=tuple(judged),
            groups=tuple(groups),
            metrics=metrics,
        )
        learned = {"learning_entropy": 0.62 * 0.965**step + 0.02 * rng.random(), "learning_seconds": 11 + rng.random()}
        figures = {**metrics, **learned, "step": float(step), "steps": float(STEPS)}
        yield (
            record,
            Event(kind="step", text=f"step {step + 1} of {STEPS}", figures=figures, created=night.at(0.7 * (step + 1))),
        )


def _attempts(night: DemoNight, step: int, task: Task, skill: float, rng: Random, tokenizer: Tokenizer) -> list[Judged]:
    expected = str(getattr(task.spec, "expected", "6"))
    made = []
    for sample in range(SAMPLES):
        right = rng.random() < skill
        answer = expected if right else str(rng.randrange(2, 400))
        calls = [_call(f"print({answer})", f"{answer}\n", rng)]
        if rng.random() < 0.3 - 0.01 * step:
            failed = ToolCall(
                code="print(gcd(84, 36))",
                status=ToolStatus.EXCEPTION,
                error="NameError: name 'gcd' is not defined",
                seconds=0.0004,
                tier=Tier.SHARED,
                sandbox="shared-1",
            )
            calls.insert(0, failed)
        name = f"{night.id}.train.{step}.{task.id}.{sample}"
        verdict = _verdict(Outcome.PASS if right or answer == expected else Outcome.FAIL, answer, expected)
        if rng.random() < 0.006:
            verdict = verdict.model_copy(
                update={"outcome": Outcome.INFRA_ERROR, "score": 0.0, "reason": "the sandbox died on its own"}
            )
        made.append(_judged(night, step, task, name, sample, calls, answer, verdict, tokenizer, rng))
    return made


def _judged(
    night: DemoNight,
    step: int,
    task: Task,
    name: str,
    sample: int,
    calls: Sequence[ToolCall],
    answer: str,
    verdict: Verdict,
    tokenizer: Tokenizer,
    rng: Random,
) -> Judged:
    marks = SEEDLING
    nodes = [_node(None, Role.USER, f"{marks.user}{task.question}{marks.assistant}", tokenizer)]
    span = f"{night.id}@{step}"
    for call in calls:
        nodes.append(_node(len(nodes) - 1, Role.ASSISTANT, f"{marks.tool}{call.code}{marks.end}", tokenizer, span))
        said = f"{marks.result}{call.output or call.error}{marks.assistant}"
        nodes.append(_node(len(nodes) - 1, Role.TOOL, said, tokenizer, call=call))
    last = f"The answer is \\boxed{{{answer}}}.{marks.end}"
    nodes.append(_node(len(nodes) - 1, Role.ASSISTANT, last, tokenizer, span))
    rollout = Rollout(
        id=name,
        cycle=night.id,
        step=step,
        task=task.id,
        sample=sample,
        purpose=Purpose.TRAIN,
        temperature=1.0,
        nodes=tuple(nodes),
        ended=RolloutEnd.ANSWERED,
        answer=answer,
        answers=1,
        seconds=0.3 + rng.random(),
        usage=Usage(calls=len(calls), seconds=0.002, output_bytes=sum(len(call.output) for call in calls)),
    )
    return Judged(rollout=rollout, verdict=verdict, family=task.taskset)


def _branch(one: Judged, rng: Random, tokenizer: Tokenizer) -> Judged:
    """Returns a made-up branch of the attempt, with a different last turn."""
    rollout = one.rollout
    answer = str(rng.randrange(2, 400))
    last = _node(
        len(rollout.nodes) - 2, Role.ASSISTANT, f"It is \\boxed{{{answer}}}.{SEEDLING.end}", tokenizer, rollout.weights
    )
    branched = rollout.model_copy(
        update={
            "id": f"{rollout.id}.b1",
            "sample": rollout.sample + SAMPLES,
            "nodes": (*rollout.nodes[:-1], last),
            "answer": answer,
            "branch_of": rollout.id,
            "branch_at": len(rollout.nodes) - 1,
            "usage": Usage(),
        }
    )
    verdict = _verdict(Outcome.FAIL, answer, "another number")
    return Judged(rollout=branched, verdict=verdict, family=one.family)


def _node(
    parent: int | None, role: Role, text: str, tokenizer: Tokenizer, weights: str = "", call: ToolCall | None = None
) -> Message:
    ids = tuple(tokenizer.encode(text).ids)
    drawn = (WeightSpan(version=weights, start=0, end=len(ids)),) if weights else ()
    return Message(
        parent=parent,
        role=role,
        ids=ids,
        sampled=bool(weights),
        logprobs=(-0.2,) * len(ids) if weights else (),
        weights=drawn,
        call=call,
    )


def _group(night: DemoNight, step: int, task: Task, own: Sequence[Judged]) -> Group:
    judged = [one for one in own if one.verdict.outcome is not Outcome.INFRA_ERROR]
    rewards = [one.verdict.score for one in judged]
    mean = sum(rewards) / max(1, len(rewards))
    kept = tuple(range(len(judged))) if len(set(rewards)) > 1 else ()
    return Group(
        id=f"{night.id}.{step}.{task.id}",
        cycle=night.id,
        step=step,
        task=task.id,
        rollouts=tuple(one.rollout.id for one in judged),
        rewards=tuple(rewards),
        kept=kept,
        advantages=tuple(rewards[place] - mean for place in kept),
        selector="roc",
        reason="" if kept else "all rewards are equal",
    )


def _metrics(judged: Sequence[Judged], step: int, rng: Random) -> dict[str, float]:
    passed = [one for one in judged if one.verdict.outcome is Outcome.PASS]
    calls = [call for one in passed for call in one.rollout.calls]
    by_task: dict[str, list[bool]] = {}
    for one in judged:
        by_task.setdefault(one.rollout.task, []).append(one.verdict.passed)
    low, high = AttemptSums.of([(len(found), sum(found)) for found in by_task.values()]).interval
    return {
        "step": float(step),
        "success": len(passed) / len(judged),
        "success_low": low,
        "success_high": high,
        "attempts": float(len(judged)),
        "rollouts": float(len(judged)),
        "tool_errors_in_correct": sum(call.status.failed for call in calls) / max(1, len(calls)),
        "tokens": float(sum(one.rollout.sampled_tokens for one in judged)),
        "tool_calls": float(sum(len(one.rollout.own_calls) for one in judged)),
        "sampling_seconds": 21 + 4 * rng.random(),
        "verifying_seconds": 1.5 + rng.random(),
        "ledger_seconds": 0.05,
        "rollouts_shared": float(len(judged)),
    }


def _call(code: str, output: str, rng: Random) -> ToolCall:
    return ToolCall(
        code=code,
        status=ToolStatus.OK,
        output=output,
        seconds=0.0003 + 0.0008 * rng.random(),
        tier=Tier.SHARED,
        sandbox="shared-1",
    )


def _verdict(outcome: Outcome, answer: str, expected: str) -> Verdict:
    right = outcome is Outcome.PASS
    return Verdict(
        outcome=outcome,
        score=1.0 if right else 0.0,
        reason=f"{answer} {'=' if right else '≠'} {expected}",
        verifier="answer",
        version="1",
        seconds=0.0004,
        evidence={"expected": expected, "read": answer},
    )


def _item(place: int) -> str:
    return f"sealed-{place:03}"


def evaluation_of(night: DemoNight, candidate: str, champion: str) -> Evaluation:
    """Invents an evaluation of candidate and champion on the same items, as good as the night's last and first step."""
    rng = Random(100 + night.number)
    names = sorted(CALCULATORS)
    before = [rng.random() < night.skill[0] for _ in range(ITEMS)]
    lift = (night.skill[1] - night.skill[0]) / max(0.05, 1 - night.skill[0])
    after = [(old and rng.random() < 0.985) or (not old and rng.random() < lift) for old in before]

    def results(weights: str, passed: Sequence[bool], temperature: float) -> ModelResults:
        items = tuple(
            ItemResult(
                task=_item(place),
                family=names[place % len(names)],
                passed=None if place == 77 else one,
                calls=1 + place % 3,
                failed_calls=0,
            )
            for place, one in enumerate(passed)
        )
        return ModelResults(weights=weights, temperature=temperature, items=items, tokens=18_000, seconds=44.0)

    return Evaluation(
        id=f"{night.id}.evaluation",
        cycle=night.id,
        sealed_set=hashlib.sha256("\n".join(map(_item, range(ITEMS))).encode()).hexdigest(),
        candidate=results(candidate, after, 1.0),
        champion=results(champion, before, 1.0),
        candidate_greedy=results(candidate, after, 0.0),
        champion_greedy=results(champion, before, 0.0),
        measurements=_measurements(night.at(15)),
        created=night.at(15.5),
    )


def _measurements(made_at: str) -> Measurements:
    selftest = SelfTestReport(
        verifiers=("answer",),
        untested=(),
        attacks=120,
        accepted=0,
        controls=30,
        rejected=0,
        unsuspected=0,
        tested="7" * 64,
        installed="7" * 64,
        made_at=made_at,
    )
    drift = DriftReport(
        tokens=30_000,
        kl_champion=0.05,
        kl_base=0.05,
        entropy=0.2,
        entropy_champion=0.3,
        length=40.0,
        length_champion=42.0,
        calls=1.4,
        calls_champion=1.5,
    )
    return Measurements(
        selftest=selftest,
        hacks=HackReport(impossible=192, passed=0, answers=ITEMS, suspected=0),
        drift=drift,
        contamination=ContaminationReport(sealed=ITEMS, trained=STEPS * TASKS, found=0),
        egress=ProbeReport(tried=9, held=9),
    )
