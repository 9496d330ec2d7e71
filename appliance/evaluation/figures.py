"""Figures of an evaluation: pass@1 and pass@k, with intervals that know that attempts at one question are alike. Pure.

pass@k is the unbiased estimate of 2107.03374 (section 2.1), question by question, over those with at least k attempts
that were judged; then the mean over questions. Intervals are of 95 %: Wilson's, with the effective number of questions
in place of their number, m (1 - m) divided by the variance of the mean over questions (Korn and Graubard, Survey
Methodology 24, 1998; clustered by question as in 2411.00640, section 2.2). As there, it is less where few questions
tell that variance (Student's t, one degree of freedom fewer than questions); and never more than the attempts. Attempts
that were lost are in no figure but their own count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from statistics import NormalDist

from pydantic import Field

from appliance.evaluation.attempts import EvaluationAttempt
from appliance.evaluation.plan import EvaluationPlan
from runtime.model import FrozenModel

SCHEMA = "assay-evaluation/1"
ALPHA = 0.05
NORMAL_FROM = 1_000
"""Degrees of freedom from which Student's t is the normal distribution, to a thousandth."""
INTERVAL = "95 %, Wilson with the effective number of questions; clustered by question"


class EvaluationScore(FrozenModel):
    """A mean over questions with its interval; all three from 0 to 1."""

    value: float
    low: float
    high: float
    questions: int
    """Over how many."""


class EvaluationRow(FrozenModel):
    """The figures of some attempts."""

    name: str
    questions: int
    """With at least one attempt that was judged."""
    attempts: int
    right: int
    wrong: int
    lost: int
    """By the infrastructure; neither right nor wrong."""
    pass_at: dict[str, EvaluationScore]
    """By k."""
    tokens: float
    """Mean of an attempt that was judged."""
    calls: float
    failed_calls: float
    """Of all calls, the share that failed."""


class EvaluationResults(FrozenModel):
    """What an evaluation came to. docs/evaluation.md describes each field."""

    form: str = SCHEMA
    plan: EvaluationPlan
    plan_digest: str
    created: str
    interval: str = INTERVAL
    complete: bool
    """Whether every attempt of the plan was judged."""
    planned: int
    left_out: dict[str, str]
    """Tasksets that could not be asked, each with the reason."""
    all: EvaluationRow
    domains: tuple[EvaluationRow, ...]
    tasksets: tuple[EvaluationRow, ...]
    levels: tuple[EvaluationRow, ...] = Field(description="`taskset/level`")
    seeds: tuple[EvaluationRow, ...]


def results(
    plan: EvaluationPlan,
    attempts: Iterable[EvaluationAttempt],
    *,
    planned: int,
    left_out: Mapping[str, str],
    domain_of: Callable[[str], str],
    created: str,
) -> EvaluationResults:
    """All figures of these attempts."""
    made = sorted(attempts, key=lambda one: (one.taskset, one.question, one.repeat))
    ks = [k for k in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if k <= plan.repeats]
    ks += [plan.repeats] if plan.repeats not in ks else []

    def rows(key: Callable[[EvaluationAttempt], str]) -> tuple[EvaluationRow, ...]:
        names = sorted({key(one) for one in made})
        return tuple(row(name, [one for one in made if key(one) == name], ks) for name in names)

    judged = sum(one.outcome != "lost" for one in made)
    return EvaluationResults(
        plan=plan,
        plan_digest=plan.digest,
        created=created,
        complete=judged == planned,
        planned=planned,
        left_out=dict(left_out),
        all=row("all", made, ks),
        domains=rows(lambda one: domain_of(one.taskset)),
        tasksets=rows(lambda one: one.taskset),
        levels=rows(lambda one: f"{one.taskset}/{one.level}"),
        seeds=rows(lambda one: str(one.seed)),
    )


def row(name: str, attempts: Sequence[EvaluationAttempt], ks: Sequence[int]) -> EvaluationRow:
    """The figures of these attempts, which are in the order of their questions."""
    judged = [one for one in attempts if one.outcome != "lost"]
    counts = [
        (len(members), sum(one.outcome == "right" for one in members))
        for _, group in groupby(judged, key=lambda one: (one.taskset, one.question))
        for members in [list(group)]
    ]
    right, calls = sum(count[1] for count in counts), sum(one.calls for one in judged)
    scores = {str(k): score_of(counts, k) for k in ks}
    return EvaluationRow(
        name=name,
        questions=len(counts),
        attempts=len(attempts),
        right=right,
        wrong=len(judged) - right,
        lost=len(attempts) - len(judged),
        pass_at={k: found for k, found in scores.items() if found is not None},
        tokens=round(sum(one.tokens for one in judged) / max(1, len(judged)), 3),
        calls=round(calls / max(1, len(judged)), 3),
        failed_calls=round(sum(one.failed_calls for one in judged) / max(1, calls), 6),
    )


def pass_at(attempts: int, right: int, k: int) -> float:
    """The chance that one of k of these attempts is right. Needs `k <= attempts`.

    >>> pass_at(4, 1, 1), pass_at(4, 1, 4)
    (0.25, 1.0)
    """
    return 1.0 - math.comb(attempts - right, k) / math.comb(attempts, k)


def score_of(counts: Sequence[tuple[int, int]], k: int) -> EvaluationScore | None:
    """pass@k over the questions with at least k attempts, of which these were made and right; None without one."""
    enough = [(made, right) for made, right in counts if made >= k]
    return score([pass_at(made, right, k) for made, right in enough], sum(made for made, _ in enough))


def score(values: Sequence[float], attempts: int) -> EvaluationScore | None:
    """The mean of questions' values, from so many attempts in all, with its interval; None without a question."""
    if not values:
        return None
    count, mean = len(values), math.fsum(values) / len(values)
    spread = math.fsum((value - mean) ** 2 for value in values)
    variance = spread / (count - 1) / count if count > 1 else 0.0
    z = NormalDist().inv_cdf(1 - ALPHA / 2)
    effective = float(count)
    if variance > 0:
        known = mean * (1 - mean) / variance * (z / student_t(count - 1)) ** 2
        effective = min(max(1.0, known), float(attempts))
    weight = 1 + z**2 / effective
    middle = (mean + z**2 / (2 * effective)) / weight
    half = z * math.sqrt(mean * (1 - mean) / effective + z**2 / (4 * effective**2)) / weight
    low = 0.0 if mean == 0 else max(0.0, middle - half)
    high = 1.0 if mean == 1 else min(1.0, middle + half)
    return EvaluationScore(value=round(mean, 6), low=round(low, 6), high=round(high, 6), questions=count)


@lru_cache(maxsize=10_000)
def student_t(degrees: int) -> float:
    """The end of Student's two-sided 95 % interval; the normal one's with many degrees of freedom.

    >>> round(student_t(1), 3), round(student_t(4), 3), round(student_t(30), 3)
    (12.706, 2.776, 2.042)
    """
    if degrees > NORMAL_FROM:
        return NormalDist().inv_cdf(1 - ALPHA / 2)
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < 1 - ALPHA else (low, middle)
    return (low + high) / 2


def _within(t: float, degrees: int) -> float:
    """The chance that Student's t lies between -t and t (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, square, odd = math.sin(angle), math.cos(angle) ** 2, degrees % 2
    term = total = math.cos(angle) if odd else 1.0
    for n in range(2 + odd, degrees - 1, 2):
        term *= square * (n - 1) / n
        total += term
    if not odd:
        return sine * total
    return 2 / math.pi * (angle + (sine * total if degrees > 1 else 0.0))
