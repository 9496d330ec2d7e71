"""Commands of `assay model` that look or start an evaluation; they load none of those that sign."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.named import Model
from appliance.cli.shell.options import Limit, api_client, data_folder
from appliance.cli.show.printing import (
    Output,
    for_people,
    points,
    prints,
    short,
    short_cycle,
    show_fields,
    show_line,
    show_table,
)
from appliance.client.failures import DaemonNotRunning
from appliance.client.gate_figures import figure_in_words
from policies.contract.decision import Decision, DecisionOutcome
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from appliance.client.messages import CheckpointView, ModelComparison
    from appliance.client.status import CanaryView, Status
    from appliance.records.cycles import Cycle


class RegisteredBase(FrozenModel):
    name: str
    folder: str


SIGNED = "is recorded, and valid for this evaluation alone: another night brings new figures to sign"


@prints
def ls(
    limit: Limit = 20,
    bases: Annotated[bool, typer.Option("--bases", help="List the registered base models only.")] = False,
) -> Output[Sequence[CheckpointView] | Annotated[list[RegisteredBase], "with --bases"] | None]:
    """List the checkpoints, newest first, with the decision about each, and the registered base models.

    Base models are listed without the daemon, too.

    Example: assay model ls --bases
    """
    registered = _registered(data_folder())
    if bases:
        return Output(registered, lambda: _show_bases(registered))
    api = api_client()
    try:
        views, canary = api.checkpoints(limit=limit), api.status().canary
    except DaemonNotRunning as error:
        if not registered or not for_people():
            raise
        _show_bases(registered)
        return Output(None, f"no checkpoints are shown: {error}")
    return Output(views, lambda: _show_models(views, canary, registered))


def _registered(data: Path) -> list[RegisteredBase]:
    from appliance.models.local_models import BASES, registered_bases

    return [RegisteredBase(name=name, folder=str(data / BASES / name)) for name in registered_bases(data)]


def _show_bases(bases: Sequence[RegisteredBase]) -> None:
    show_table(
        ("base model", "folder"),
        [(one.name, one.folder) for one in bases],
        empty="no base models: `assay model import` lists models on this machine",
        whole=True,
    )


def _show_models(views: Sequence[CheckpointView], canary: CanaryView | None, bases: Sequence[RegisteredBase]) -> None:
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
    if bases:
        show_line("")
        _show_bases(bases)


@prints
def compare(a: Model = "champion", b: Model = "candidate") -> Output[ModelComparison]:
    """Compare two models on the same sealed items.

    Example: assay model compare champion candidate
    """
    found = api_client().compare(a, b)
    return Output(found, lambda: _show_comparison(found))


def _show_comparison(found: ModelComparison) -> None:
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
        ("taskset", "items", "a passed", "b passed"),
        [(f.family, f.items, f.passed_a, f.passed_b) for f in found.families],
        empty="no taskset has an item that both answered",
    )


@prints
def show(model: Model) -> Output[Sequence[Decision]]:
    """Show the newest decision about a model, gate by gate, with the digest for --decision.

    Example: assay model show candidate
    """
    api = api_client()
    decisions = api.decisions(candidate=model, limit=1)
    return Output(decisions, lambda: _show_decided(model, decisions, api.status()))


def _show_decided(model: str, decisions: Sequence[Decision], status: Status) -> None:
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


@prints
def evaluate(model: str) -> Output[Cycle]:
    """Compare a model with the champion again on fresh questions; the policy decides on the result.

    Example: assay model evaluate candidate
    """
    cycle = api_client().evaluate(model)
    candidate = short(cycle.plan["candidate"])
    lines = [
        f"{cycle.id} compares {candidate} with {short(cycle.plan['start'])}",
        f"follow it with `assay cycle watch {cycle.id}`; then see `assay model show {candidate}`",
    ]
    return Output(cycle, lines)


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
