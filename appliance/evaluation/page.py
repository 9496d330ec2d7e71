"""An evaluation as one HTML file, with all text escaped. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.evaluation.figures import EvaluationResults, EvaluationRow, EvaluationScore
from appliance.text.html_page import document, section, shown_text, table

NOTE = (
    "Questions come from the validation split, which neither training nor sealed sets use. A promotion is decided "
    "by a cycle's own evaluation, not by this page."
)


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
