"""Chooses a job's next attempts, or that there are none: by expected success per sampled token. Pure.

The chance that an attempt succeeds falls with every failure before it (`success_model`), so for independent attempts
that stop at the first success the best next one has the highest chance per cost (the index of Weitzman, Econometrica
47, 1979; 2510.01394 uses it for sampling). Two arms compete: fresh attempts, and branches that go on from before an
attempt's failed call, which cost less and are worth less after each other.

Attempts are made together, twice as many each time, so that a batch costs about the time of a few. A step has at most
as many attempts as are worth their cost. After the first step, which is always made, work ends when a further attempt
is not worth its cost, or when all that are left are hopeless.

Invariants: equal records and equal steps give equal choices, at any time and for any order of ended attempts.
An attempt that met a failure of the infrastructure says nothing and counts in no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from appliance.jobs.success_model import ASSUMED, SuccessModel, Tries, fitted
from appliance.records.jobs import JobStep

FIRST = 2
"""Attempts of the first step."""
WORTH = 8
"""Value of a verified answer, in budgets: a person who allows n attempts would pay for eight times n."""
LEAST = 0.02
"""Chance that one of all attempts left succeeds, below which they are hopeless."""
ASSUMED_BRANCH_COST = 0.6
"""Cost of a branch before any was made, in attempts."""
MOST_TESTED = 16
"""Maximum attempts where tests decide: more of them find more answers that pass by luck (2411.17501)."""


@dataclass(frozen=True)
class Experience:
    """Expectations for the attempts at a job, from earlier jobs with the same kind of check."""

    attempt: SuccessModel = ASSUMED
    branch: SuccessModel = ASSUMED
    cost: float = 0.0
    """Mean sampled tokens of an attempt; 0 if unknown."""
    branch_cost: float = 0.0

    @classmethod
    def of(cls, jobs: Sequence[Sequence[JobStep]], weights: str) -> Experience:
        """Learns from the steps of ended jobs: first from those of other weights, then, with the result as its prior,
        from those of these."""
        other = [[one for one in each if one.weights != weights] for each in jobs]
        same = [[one for one in each if one.weights == weights] for each in jobs]
        found = cls()
        for some in (other, same):
            found = found._after(some)
        return found

    def _after(self, jobs: Sequence[Sequence[JobStep]]) -> Experience:
        cost, branch_cost = self._costs([step for each in jobs for step in each])
        return Experience(
            fitted((_attempts(each) for each in jobs), self.attempt),
            fitted((_branches(each) for each in jobs), self.branch),
            cost,
            branch_cost,
        )

    def _costs(self, steps: Sequence[JobStep]) -> tuple[float, float]:
        """Returns the mean sampled tokens of an attempt and of a branch in these steps, or else the known ones."""
        made = sum(step.passed + step.failed for step in steps)
        branches = sum(step.branches_passed + step.branches_failed for step in steps)
        branch_tokens = sum(step.branch_tokens for step in steps)
        tokens = sum(step.tokens for step in steps) - branch_tokens
        return tokens / made if made else self.cost, branch_tokens / branches if branches else self.branch_cost


def _attempts(steps: Sequence[JobStep]) -> Tries:
    failed = sum(step.failed for step in steps if not step.passed)
    return Tries(failed, next((max(1, step.attempts - step.lost) for step in steps if step.passed), 0))


def _branches(steps: Sequence[JobStep]) -> Tries:
    return Tries(sum(step.branches_failed for step in steps), int(any(step.branches_passed for step in steps)))


def next_step(
    known: Experience, before: Sequence[JobStep], *, weights: str, attempts: int, left: int, tokens: int | None
) -> JobStep | str:
    """Returns the job's next step, or why there is none, as a clause for people; empty if its attempts are used up.

    `before` are the job's steps with these weights, all ended; `attempts` is its budget, of which `left` are not made;
    `tokens` is what is left of its budget in sampled tokens, None without one.
    """
    if tokens is not None and tokens <= 0:
        return "its budget of tokens is used up"
    if left <= 0:
        return ""
    cost, branch_cost = known._costs(before)
    count = max(FIRST, sum(step.attempts for step in before))
    if tokens is not None and cost:
        count = min(count, max(1, int(tokens / cost)))
    failed, branches_failed = _attempts(before).failed, _branches(before).failed
    if before:
        if (chance := known.attempt.success_within(failed, left)) < LEAST:
            return f"all {left} attempts left together would succeed with a chance of {_percent(chance)}"
        worth = sum(WORTH * attempts * known.attempt.next_success(failed + more) >= 1 for more in range(left))
        if not worth:
            chance = known.attempt.next_success(failed)
            return f"the next attempt would succeed with a chance of {_percent(chance)}, less than its cost is worth"
        count = min(count, worth)
    count = min(count, left)
    share = branch_cost / cost if branch_cost and cost else ASSUMED_BRANCH_COST
    branch = known.branch.next_success(branches_failed) / share
    return JobStep(
        weights=weights,
        attempts=count,
        branches=branch >= known.attempt.next_success(failed + count) and WORTH * attempts * branch >= 1,
        expected=min(1.0, max(0.0, known.attempt.success_within(failed, count))),
        cost=round(cost, 1),
    )


def _percent(chance: float) -> str:
    return f"{100 * chance:.1f} %" if chance >= 0.001 else "less than 0.1 %"
