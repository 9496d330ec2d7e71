"""Figures of an evaluation (pass@1 and pass@k, intervals clustered by question), and one HTML file of them. Pure.

pass@k is the unbiased estimate of 2107.03374 (section 2.1) for each question with at least k judged attempts, then the
mean over questions. Intervals are from `appliance.records.clustered_interval`. Lost attempts only appear in their own
count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from pydantic import Field

from appliance.evaluation.plan import EvaluationAttempt, EvaluationPlan
from appliance.records.clustered_interval import clustered
from appliance.text.html_page import document, section, shown_text, table
from curriculum.difficulty import Place
from runtime.model import FrozenModel

SCHEMA = "assay-evaluation/1"
INTERVAL = "95 %, Wilson with the effective number of questions; clustered by question"


class EvaluationScore(FrozenModel):
    """Mean of an evaluation's pass@k over questions with its interval; all three from 0 to 1."""

    value: float
    low: float
    high: float
    questions: int
    """Number of questions in the mean."""


class EvaluationRow(FrozenModel):
    """Figures of a group of an evaluation's attempts."""

    name: str
    questions: int
    """Questions with at least one judged attempt."""
    attempts: int
    right: int
    wrong: int
    lost: int
    """Lost to infrastructure errors; neither right nor wrong."""
    pass_at: dict[str, EvaluationScore]
    """Scores by k."""
    tokens: float
    """Mean tokens per judged attempt."""
    calls: float
    failed_calls: float
    """Share of calls that failed."""


class EvaluationResults(FrozenModel):
    """Results of an evaluation. docs/evaluation.md describes each field."""

    form: str = SCHEMA
    plan: EvaluationPlan
    plan_digest: str
    created: str
    interval: str = INTERVAL
    complete: bool
    """True if every attempt of the plan was judged."""
    planned: int
    left_out: dict[str, str]
    """Tasksets that could not be asked, each with the reason."""
    all: EvaluationRow
    domains: tuple[EvaluationRow, ...]
    tasksets: tuple[EvaluationRow, ...]
    levels: tuple[EvaluationRow, ...] = Field(description="`taskset/level`")
    topics: tuple[EvaluationRow, ...] = Field(description="`taskset/level/topic`")
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
    """Computes all figures of an evaluation from its attempts: in total, by domain and by taskset."""
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
        topics=rows(lambda one: Place(one.taskset, one.level, one.topic).key),
        seeds=rows(lambda one: str(one.seed)),
    )


def row(name: str, attempts: Sequence[EvaluationAttempt], ks: Sequence[int]) -> EvaluationRow:
    """Computes the figures of a group of attempts, which must be sorted by question."""
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
    """Returns the probability that at least one of k sampled attempts is right. Requires `k <= attempts`.

    >>> pass_at(4, 1, 1), pass_at(4, 1, 4)
    (0.25, 1.0)
    """
    return 1.0 - math.comb(attempts - right, k) / math.comb(attempts, k)


def score_of(counts: Sequence[tuple[int, int]], k: int) -> EvaluationScore | None:
    """Returns the mean pass@k over questions with at least k attempts; None without any. `counts` has (attempts, right)
    of each question."""
    enough = [(made, right) for made, right in counts if made >= k]
    return score([pass_at(made, right, k) for made, right in enough], sum(made for made, _ in enough))


def score(values: Sequence[float], attempts: int) -> EvaluationScore | None:
    """Returns the mean of per-question values with its interval; None without values. `attempts` is the total number
    behind them."""
    if not values:
        return None
    count, mean = len(values), math.fsum(values) / len(values)
    spread = math.fsum((value - mean) ** 2 for value in values)
    variance = spread / (count - 1) / count if count > 1 else 0.0
    low, high = clustered(mean, variance, count, attempts)
    return EvaluationScore(value=round(mean, 6), low=round(low, 6), high=round(high, 6), questions=count)


NOTE = (
    "Questions come from the validation split, which neither training nor sealed sets use. A promotion is decided "
    "by a cycle's own evaluation, not by this page."
)


def uncalled(found: EvaluationResults) -> str:
    """Returns what to do if no attempt called a tool; empty if one did, or for fewer than eight attempts."""
    if found.all.calls or not found.plan.max_calls or found.all.right + found.all.wrong < 8:
        return ""
    return "no attempt called a tool: teach calls with SFT before RL, as `assay train --recipe rstar2-agent` does"


def page(found: EvaluationResults) -> str:
    """Returns an evaluation's results as one HTML file."""
    plan = found.plan
    title = f"Evaluation of {plan.model[:40]}"
    facts = [
        ["model", plan.model],
        ["engine", plan.engine],
        ["made", found.created],
        ["asked", f"{plan.items} questions of each taskset and seed, {plan.repeats} attempts at each"],
        ["seeds", ", ".join(map(str, plan.seeds))],
        ["temperature", f"{plan.temperature:g}"],
        ["budget", f"{plan.max_tokens} tokens, {plan.max_calls} calls"],
        ["intervals", found.interval],
        ["plan", found.plan_digest],
        ["complete", "yes" if found.complete else f"no: {found.all.right + found.all.wrong} of {found.planned} judged"],
    ]
    body = [
        f"<h1>{shown_text(title)}</h1>",
        table([], facts),
        section("All and by domain", figures([found.all, *found.domains])),
        section("By taskset", figures(found.tasksets)),
        section("By level", figures(found.levels)),
        section("By seed", figures(found.seeds)),
    ]
    if advice := uncalled(found):
        body.append(f"<p>{shown_text(advice)}</p>")
    if found.left_out:
        body.append(section("Not asked", table(["taskset", "why"], [[a, b] for a, b in found.left_out.items()])))
    return document(title, "".join(body), shown_text(NOTE))


def figures(rows: Sequence[EvaluationRow]) -> str:
    """Renders rows of an evaluation's figures as an HTML table."""
    ks = list(dict.fromkeys(k for row in rows for k in row.pass_at))
    return table(headings(ks), [cells(row, ks) for row in rows])


def headings(ks: Sequence[str]) -> list[str]:
    return ["", *(f"pass@{k}, %" for k in ks), "questions", "right", "wrong", "lost", "tokens", "calls"]


def cells(row: EvaluationRow, ks: Sequence[str]) -> list[str]:
    """Formats one row of an evaluation's figures as cell texts."""
    counts = [row.questions, row.right, row.wrong, row.lost]
    scores = [shown_score(row.pass_at.get(k)) for k in ks]
    return [row.name, *scores, *map(str, counts), f"{row.tokens:.0f}", f"{row.calls:.2f}"]


def shown_score(found: EvaluationScore | None) -> str:
    """Formats an evaluation's score and its interval in percent; `-` for None."""
    if found is None:
        return "-"
    return f"{100 * found.value:.1f} ({100 * found.low:.1f} to {100 * found.high:.1f})"
