"""Figures and lines of a job's attempts: what is left of its budget, what a step came to, what failed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from appliance.jobs.solver_round import on_one_line
from appliance.records.jobs import Job, JobStep
from appliance.records.rollouts import RolloutEnd
from appliance.records.training import Judged
from verifiers.contract.verdict import Outcome

SHOWN_ATTEMPTS = 12
"""Maximum number of distinct failures listed for an unsolved job."""


def tokens_left(job: Job, judged: Sequence[Judged], spent: int) -> int | None:
    """Returns the rest of a job's budget in sampled tokens, after those of `judged` and `spent` others; None if it has
    no such budget."""
    if job.budget_tokens is None:
        return None
    return max(0, job.budget_tokens - spent - sum(one.rollout.sampled_tokens for one in judged))


def step_result(step: JobStep, judged: Sequence[Judged], names: Collection[str], *, ended: bool) -> JobStep:
    """Returns the step with the results of its attempts, which have these ids, and of their branches."""
    mine = [one for one in judged if {one.rollout.id, one.rollout.branch_of} & set(names)]
    said = [one for one in mine if one.verdict.outcome is not Outcome.INFRA_ERROR]
    passed = Counter((one.rollout.branch_of is not None, one.verdict.passed) for one in said)
    return step.model_copy(
        update={
            "passed": passed[False, True],
            "failed": passed[False, False],
            "branches_passed": passed[True, True],
            "branches_failed": passed[True, False],
            "lost": len(mine) - len(said),
            "tokens": sum(one.rollout.sampled_tokens for one in said),
            "branch_tokens": sum(one.rollout.sampled_tokens for one in said if one.rollout.branch_of is not None),
            "ended": ended,
        }
    )


@dataclass(frozen=True)
class Tally:
    """Number of attempts at a job and of their branches, which are not independent of the attempts they left."""

    attempts: int
    branches: int

    @property
    def branches_summary(self) -> str:
        return f"{self.branches} {'branch' if self.branches == 1 else 'branches'}"

    @property
    def summary(self) -> str:
        attempts = f"{self.attempts} {'attempt' if self.attempts == 1 else 'attempts'}"
        return f"{attempts} and {self.branches_summary}" if self.branches else attempts


def tally_of(judged: Sequence[Judged]) -> Tally:
    branches = sum(one.rollout.branch_of is not None for one in judged)
    return Tally(len(judged) - branches, branches)


def tried(judged: Sequence[Judged]) -> list[str]:
    """Returns the distinct failures of a job's attempts with counts, the most common first. Contains hostile text."""
    counts: Counter[str] = Counter()
    for one in judged:
        answered = one.rollout.ended is RolloutEnd.ANSWERED and one.rollout.answer
        answer = f"answer {on_one_line(one.rollout.answer or '')}: " if answered else ""
        counts[f"{answer}{one.verdict.reason}"] += 1
    return [f"{count} x {line}" for line, count in counts.most_common(SHOWN_ATTEMPTS)]
