"""Commands of `assay model`: what is in service, what could be, and a person's decision about it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from appliance.cli.model_options import parameters_of, read_options, with_options
from appliance.cli.named import Model
from appliance.cli.options import Data, Json, Limit, Person, client_of
from appliance.cli.person import SigningOptions, confirm
from appliance.cli.show import points, short, show_fields, show_json, show_line, show_table
from appliance.client import ApiClient, ApiError, Decision
from appliance.client.login import login_name
from appliance.client.signing import signed_approval

Confirm = Annotated[
    str,
    typer.Option(
        "--decision",
        metavar="DIGEST",
        help="The decision that you were shown, instead of typing; refused unless it is the newest.",
    ),
]
Hours = Annotated[
    float | None,
    typer.Option("--hours", min=0.01, help="How long your signature counts; as long as the policy allows."),
]
SIGNING = parameters_of(SigningOptions, leave_out=["confirm"])
QUARANTINE = "only a new evaluation (`assay model evaluate`) and an approval of the decision on that bring it back"
DIGITS = 8
"""Of a decision's digest, at least."""


def ls(context: typer.Context, limit: Limit = 20, data: Data = None, as_json: Json = False) -> None:
    """The checkpoints, newest first, with the decision about each."""
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
        empty="no model yet: `assay cycle start` makes the first one",
    )
    if canary is not None:
        show_fields([("canary", f"{short(canary.canary.candidate)} {canary.summary}")])


def compare(
    context: typer.Context, a: Model = "champion", b: Model = "candidate", data: Data = None, as_json: Json = False
) -> None:
    """Two models on the same sealed items.

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
        empty="no family has an item that both answered",
    )


def show(context: typer.Context, model: Model, data: Data = None, as_json: Json = False) -> None:
    """The newest decision about a model, gate by gate, with the digest that --decision takes.

    Example: assay model show candidate
    """
    api = client_of(context, data)
    decisions, canary = api.decisions(candidate=model, limit=1), api.status().canary
    if as_json:
        show_json(decisions)
    elif decisions:
        show_decision(decisions[0])
        beside = canary is not None and canary.canary.candidate == decisions[0].candidate
        tried = canary.summary if canary is not None and beside else ""
        show_fields([("beside the champion", tried), ("--decision", decisions[0].digest())])
    else:
        show_fields([("decision", "none yet: a cycle evaluates its candidate and decides")])


@with_options(SIGNING)
def approve(
    context: typer.Context,
    model: Model,
    hours: Hours = None,
    decision: Confirm = "",
    data: Data = None,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Put a candidate into service with your signature, if the policy then admits it (exit code 4 if not).

    Example: assay model approve candidate --as ada
    """
    signs, api = read_options(SigningOptions, values), client_of(context, data)
    _judge(api, model, "approve", decision, signs, hours=hours, as_json=as_json)


@with_options(SIGNING)
def reject(
    context: typer.Context,
    model: Model,
    decision: Confirm = "",
    data: Data = None,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Put on record, with your signature, that a candidate must not go into service.

    Example: assay model reject candidate --as ada
    """
    signs, api = read_options(SigningOptions, values), client_of(context, data)
    _judge(api, model, "reject", decision, signs, hours=None, as_json=as_json)


def evaluate(context: typer.Context, model: str, data: Data = None, as_json: Json = False) -> None:
    """Compare a model with the champion once more, on fresh questions; the policy decides on what comes out.

    Example: assay model evaluate candidate
    """
    cycle = client_of(context, data).evaluate(model)
    if as_json:
        show_json(cycle)
    else:
        candidate = short(cycle.plan["candidate"])
        show_line(f"{cycle.id} compares {candidate} with {short(cycle.plan['start'])}")
        show_line(f"`assay cycle watch {cycle.id}` follows it; `assay model show {candidate}` then has the decision")


def rollback(
    context: typer.Context,
    reason: Annotated[str, typer.Option("--reason", help="Kept in the history.")] = "",
    sure: Annotated[
        str | None,
        typer.Option("--confirm", metavar="DIGITS", help="The first digits of what goes, instead of typing them."),
    ] = None,
    person: Person = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Take the canary out, or put the previous champion back into service where there is none. Asks first.

    Example: assay model rollback
    """
    api = client_of(context, data)
    aliases = api.status().aliases
    going = aliases.get("canary") or aliases["champion"]
    if going is not None and (aliases.get("canary") or aliases["previous"]):
        if not as_json:
            back = "the champion stays" if aliases.get("canary") else f"{short(aliases['previous'])} comes back"
            show_line(f"{short(going)} goes out of service, and {back}.")
            show_line(f"{short(going)} is then in quarantine: {QUARANTINE}.")
        confirm("take it out of service", going, sure)
    names = api.rollback(person or login_name(), reason)
    if as_json:
        from appliance.cli.documents.models import AliasesDocument

        show_json(AliasesDocument(dict(names)))
    else:
        show_line(f"champion is {short(names['champion'])}; previous is {short(names['previous'])}")
        show_line(f"{short(going)} is in quarantine: {QUARANTINE}")


def show_decision(decision: Decision) -> None:
    """Every gate's figure and reason, then what follows."""
    show_table(
        ("gate", "outcome", "figure", "interval", "reason"),
        [
            (
                finding.gate,
                finding.outcome.value,
                "" if finding.figure is None else f"{finding.figure:.4g}",
                "" if finding.low is None or finding.high is None else f"{finding.low:.2f} to {finding.high:.2f}",
                finding.reason,
            )
            for finding in decision.findings
        ],
        empty="no gate was asked",
    )
    show_fields(
        [("decision", decision.outcome.value), ("reason", decision.reason), ("would change it", decision.would_change)]
    )


def _judge(
    api: ApiClient,
    model: str,
    verdict: Literal["approve", "reject"],
    named: str,
    signs: SigningOptions,
    *,
    hours: float | None,
    as_json: bool,
) -> None:
    shown = _decision_to_sign(api, model, verdict, named, as_json=as_json)
    signer = signs.signer()
    approved = api.judge(verdict, model, signed_approval(shown, verdict, api.keys(), signer, hours=hours))
    if as_json:
        show_json(approved)
        return
    show_decision(approved.decision)
    show_line(f"champion is {short(approved.aliases['champion'])}")
    if approved.aliases.get("canary"):
        show_line(f"{short(approved.aliases['canary'])} is tried beside it: `assay model ls` says how it does")
    if approved.approval.verdict == "approve":
        show_line("`assay model rollback` takes it out of service again")


def _decision_to_sign(
    api: ApiClient, model: str, verdict: Literal["approve", "reject"], named: str, *, as_json: bool
) -> Decision:
    """The newest decision, shown with its digests and confirmed: typed, or by its digest in `named`."""
    decisions = api.decisions(candidate=model, limit=1)
    if not decisions:
        raise ApiError(
            f"there is no decision about {model} to sign",
            hint="a cycle evaluates its candidate and decides; see `assay model ls`",
            exit_code=2,
        )
    decision = decisions[0]
    digest = decision.digest()
    if named:
        if len(named) < DIGITS or not digest.startswith(named.lower()):
            raise ApiError(
                f"there is a newer decision about {decision.candidate[:12]} than {named[:12]}: {decision.reason}",
                hint="look at it (`assay model show`), then sign again",
                exit_code=4,
            )
        return decision
    if as_json:
        raise ApiError(
            "with --json nothing is asked and nothing shown",
            hint="name the decision that you sign with --decision",
            exit_code=2,
        )
    show_decision(decision)
    show_fields([("candidate", decision.candidate), ("decision", digest), ("policy", decision.policy)])
    confirm(f"{verdict} this candidate", decision.candidate, None)
    return decision
