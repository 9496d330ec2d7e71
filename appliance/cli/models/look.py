"""Commands of `assay model` that look or start an evaluation; they load none of those that sign."""

from __future__ import annotations

import typer

from appliance.cli.shell.named import Model
from appliance.cli.shell.options import Data, Json, Limit, client_of
from appliance.cli.show.printing import points, short, short_cycle, show_fields, show_json, show_line, show_table
from appliance.client.gate_figures import figure_in_words
from policies.contract.decision import Decision, DecisionOutcome

SIGNED = "is recorded, and valid for this evaluation alone: another night brings new figures to sign"


def ls(context: typer.Context, limit: Limit = 20, data: Data = None, as_json: Json = False) -> None:
    """List the checkpoints, newest first, with the decision about each."""
    api = client_of(context, data)
    views, canary = api.checkpoints(limit=limit), api.status().canary
    if as_json:
        show_json(views)
        return
    show_table(
        ("model", "in service as", "stage", "step", "cycle", "decision", "reason"),
        [
            (
                short(view.checkpoint.manifest),
                ", ".join(view.aliases),
                view.checkpoint.stage,
                view.checkpoint.step,
                view.checkpoint.cycle,
                view.decision.outcome.value if view.decision else "",
                view.decision.reason if view.decision else "",
            )
            for view in views
        ],
        empty="no model yet: make the first one with `assay cycle start`",
        narrow={"cycle": short_cycle, "reason": None, "stage": None},
    )
    if canary is not None:
        show_fields([("canary", f"{short(canary.canary.candidate)} {canary.summary}")])


def compare(
    context: typer.Context, a: Model = "champion", b: Model = "candidate", data: Data = None, as_json: Json = False
) -> None:
    """Compare two models on the same sealed items.

    Example: assay model compare champion candidate
    """
    found = client_of(context, data).compare(a, b)
    if as_json:
        show_json(found)
        return
    items = max(found.items, 1)
    show_fields(
        [
            ("a", f"{short(found.a)}  {points(found.passed_a / items)} sampled, {points(found.greedy_a)} greedy"),
            ("b", f"{short(found.b)}  {points(found.passed_b / items)} sampled, {points(found.greedy_b)} greedy"),
            ("items", f"{found.items} of sealed set {short(found.sealed_set)}"),
            ("b against a", f"{found.gained} gained, {found.lost} lost"),
            ("evaluation", found.evaluation),
        ]
    )
    show_table(
        ("family", "items", "a passed", "b passed"),
        [(f.family, f.items, f.passed_a, f.passed_b) for f in found.families],
        empty="no taskset has an item that both answered",
    )


def show(context: typer.Context, model: Model, data: Data = None, as_json: Json = False) -> None:
    """Show the newest decision about a model, gate by gate, with the digest for --decision.

    Example: assay model show candidate
    """
    api = client_of(context, data)
    decisions = api.decisions(candidate=model, limit=1)
    if as_json:
        show_json(decisions)
        return
    status = api.status()
    canary, candidate = status.canary, status.aliases["candidate"]
    if decisions:
        show_decision(decisions[0])
        beside = canary is not None and canary.canary.candidate == decisions[0].candidate
        tried = canary.summary if canary is not None and beside else ""
        waits = status.candidate_waits_for if decisions[0].candidate == candidate else ""
        signed = SIGNED if decisions[0].outcome is DecisionOutcome.HOLD else ""
        digest = decisions[0].digest()
        show_fields([("beside the champion", tried), ("now", waits), ("a signature", signed), ("digest", digest)])
        return
    asked = candidate is not None and (model == "candidate" or candidate.startswith(model.lower()))
    waits = status.candidate_waits_for if asked else "a cycle evaluates its candidate and decides"
    show_fields([("decision", f"none yet: {waits}")])


def evaluate(context: typer.Context, model: str, data: Data = None, as_json: Json = False) -> None:
    """Compare a model with the champion again on fresh questions; the policy decides on the result.

    Example: assay model evaluate candidate
    """
    cycle = client_of(context, data).evaluate(model)
    if as_json:
        show_json(cycle)
    else:
        candidate = short(cycle.plan["candidate"])
        show_line(f"{cycle.id} compares {candidate} with {short(cycle.plan['start'])}")
        show_line(f"follow it with `assay cycle watch {cycle.id}`; then see `assay model show {candidate}`")


def show_decision(decision: Decision) -> None:
    """Prints a decision about a candidate: every gate's figure and reason, then the outcome."""
    show_table(
        ("gate", "outcome", "figure [gate's level]", "reason"),
        [
            (finding.gate, finding.outcome.value, figure_in_words(finding), finding.reason)
            for finding in decision.findings
        ],
        empty="no gate was asked",
        whole=True,
    )
    show_fields(
        [("decision", decision.outcome.value), ("reason", decision.reason), ("would change it", decision.would_change)]
    )
