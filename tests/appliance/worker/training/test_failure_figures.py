"""Figures of a step: how rollouts went wrong in worlds that name failures, and success with its interval."""

from __future__ import annotations

from appliance.records.clustered_interval import AttemptSums
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd, ToolCall, ToolStatus
from appliance.records.training import Judged
from appliance.worker.evaluation.evaluate import success_figures
from appliance.worker.training.failure_figures import failure_figures
from curriculum.contract.task import Task
from curriculum.registry import make_draft, task_of
from verifiers.contract.verdict import Outcome, Verdict

CALLS = (
    ToolCall(tool="list_tools", status=ToolStatus.OK, sandbox="s"),
    ToolCall(tool="call_tool", arguments={"server": "nowhere", "tool": "x"}, status=ToolStatus.EXCEPTION, sandbox="s"),
    ToolCall(tool="call_tool", arguments={"thing": 1}, status=ToolStatus.EXCEPTION),
    ToolCall(code="1 + 1", status=ToolStatus.OK, sandbox="p"),
)


def task(taskset: str) -> Task:
    return task_of(make_draft(taskset, 0, 5), taskset, 0, 5)


def judged(of: Task, outcome: Outcome = Outcome.FAIL) -> Judged:
    nodes = [Message(parent=0, role=Role.TOOL, ids=(1,), sampled=False, call=call) for call in CALLS]
    rollout = Rollout(
        id="r",
        cycle="c",
        step=0,
        task=of.id,
        sample=0,
        purpose=Purpose.TRAIN,
        temperature=1.0,
        nodes=(Message(parent=None, role=Role.USER, ids=(1,), sampled=False), *nodes),
        ended=RolloutEnd.ANSWERED,
        answer="1",
        answers=1,
        seconds=0.0,
    )
    verdict = Verdict(outcome=outcome, score=0.0, reason="made", verifier="t", version="1", seconds=0.0)
    return Judged(rollout=rollout, verdict=verdict, family=of.taskset)


def test_modes_are_summed_over_the_rollouts_that_have_a_verdict() -> None:
    asked = task("orchestration")
    branch = judged(asked)
    branch = branch.model_copy(update={"rollout": branch.rollout.model_copy(update={"branch_of": "r"})})
    figures = failure_figures([asked], [judged(asked), judged(asked), branch, judged(asked, Outcome.INFRA_ERROR)])
    assert len(figures) == 7
    assert {name: times for name, times in figures.items() if times} == {
        "failures_wrong_tool": 2,
        "failures_syntactic_errors": 2,
        "failures_overconfident_self_solving": 2,
    }


def test_a_step_without_such_a_world_has_no_such_figures() -> None:
    asked = task("arithmetic")
    assert failure_figures([asked], [judged(asked)]) == {}


def test_success_has_the_interval_of_its_tasks_and_says_of_how_many_attempts() -> None:
    """Four tasks, of which two are always passed; what the infrastructure lost is in no count."""
    rollouts = []
    for seed in range(4):
        asked = task_of(make_draft("arithmetic", 0, seed), "arithmetic", 0, seed)
        rollouts += [judged(asked, Outcome.PASS if seed < 2 else Outcome.FAIL)] * 8
        rollouts.append(judged(asked, Outcome.INFRA_ERROR))
    figures = success_figures(rollouts)
    low, high = AttemptSums.of([(8, 8), (8, 8), (8, 0), (8, 0)]).interval
    assert figures == {"success": 0.5, "attempts": 32.0, "success_low": low, "success_high": high}
    assert low < 0.1
    assert success_figures(rollouts[8:9]) == {"success": 0.0, "attempts": 0.0}
