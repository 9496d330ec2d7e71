"""Commands of `assay model` for a person's decisions: approve, reject, roll back."""

from __future__ import annotations

from string import hexdigits
from typing import Annotated, Literal

import typer
from pydantic import RootModel

from appliance.cli.models.look import show_decision
from appliance.cli.shell.named import Model
from appliance.cli.shell.options import Person, api_client
from appliance.cli.shell.person import KeyOptions, confirm
from appliance.cli.show.printing import Output, for_people, prints, short, show_fields, show_line, show_lines
from appliance.client import ApiClient, ApiError, Decision
from appliance.client.messages import Approved, Rollback
from appliance.client.person_keys import login_name
from appliance.client.rollback import QUARANTINE, TAKE_IT_OUT, taking_back
from appliance.client.signing import signed_approval

Confirm = Annotated[
    str,
    typer.Option(
        "--decision",
        metavar="DIGEST",
        help="Digest of the decision you were shown, instead of typing; must be the newest.",
    ),
]
Hours = Annotated[
    float | None,
    typer.Option("--hours", min=0.01, help="Hours that your signature is valid (default: the policy's maximum)."),
]
DIGITS = 8
"""Minimum digits of a decision's digest."""
SAID = 12
EARLIER = 100
"""Decisions searched for a superseded one."""


class AliasesDocument(RootModel[dict[str, str | None]]):
    """Digest of the model in service under each name."""


@prints
def approve(model: Model, signs: KeyOptions, hours: Hours = None, decision: Confirm = "") -> Output[Approved]:
    """Put a candidate into service with your signature, if the policy then permits it (exit code 4 if not).

    Example: assay model approve candidate --as ada
    """
    return _judge(model, "approve", decision, signs, hours=hours)


@prints
def reject(model: Model, signs: KeyOptions, decision: Confirm = "") -> Output[Approved]:
    """Record, with your signature, that a candidate must not go into service.

    Example: assay model reject candidate --as ada
    """
    return _judge(model, "reject", decision, signs, hours=None)


@prints
def rollback(
    reason: Annotated[str, typer.Option("--reason", help="Recorded in the history.")] = "",
    sure: Annotated[
        str | None,
        typer.Option(
            "--confirm", metavar="DIGITS", help="First digits of the withdrawn model, instead of typing them."
        ),
    ] = None,
    person: Person = None,
) -> Output[AliasesDocument]:
    """Withdraw the canary; without one, put the previous champion back into service. Asks first.

    Example: assay model rollback
    """
    api = api_client()
    taken = taking_back(api.status().aliases)
    if taken is not None:
        if for_people():
            show_lines(taken.effects)
        confirm(TAKE_IT_OUT, taken.going, sure)
    going = "" if taken is None else taken.going
    names = api.rollback(Rollback(person=person or login_name(), reason=reason, going=going))
    lines = [f"champion is {short(names['champion'])}; previous is {short(names['previous'])}"]
    if taken is not None:
        lines.append(f"{short(taken.going)} is in quarantine: {QUARANTINE}")
    return Output(AliasesDocument(dict(names)), lines)


def _judge(
    model: str, verdict: Literal["approve", "reject"], named: str, signs: KeyOptions, *, hours: float | None
) -> Output[Approved]:
    api = api_client()
    own = signs.person_key()
    shown = _decision_to_sign(api, model, verdict, named)
    signer = signs.signer(own)
    approved = api.judge(verdict, model, signed_approval(shown, verdict, api.keys(), signer, hours=hours))
    return Output(approved, lambda: _show_approved(approved))


def _show_approved(approved: Approved) -> None:
    show_decision(approved.decision)
    show_line(f"champion is {short(approved.aliases['champion'])}")
    if approved.aliases.get("canary"):
        show_line(f"{short(approved.aliases['canary'])} is on trial beside it: follow it with `assay model ls`")
    if approved.approval.verdict == "approve":
        show_line("undo this with `assay model rollback`")


def _decision_to_sign(api: ApiClient, model: str, verdict: Literal["approve", "reject"], named: str) -> Decision:
    """Returns the newest decision about a model, after a person confirmed it. The person types the candidate's digits,
    or `named` has the decision's."""
    decisions = api.decisions(candidate=model, limit=1)
    if not decisions:
        raise ApiError(
            f"no decision about {model} to sign",
            hint="wait for a cycle to evaluate its candidate; see `assay model ls`",
            exit_code=2,
        )
    decision = decisions[0]
    digest = decision.digest()
    if named:
        _require_named(api, decision, named)
        return decision
    if not for_people():
        raise ApiError(
            "--json cannot ask for a confirmation", hint="name the decision to sign with --decision", exit_code=2
        )
    show_decision(decision)
    show_fields([("candidate", decision.candidate), ("decision", digest), ("policy", decision.policy)])
    confirm(f"{verdict} this candidate", decision.candidate, None, script=f"--decision {digest[:SAID]}")
    return decision


def _require_named(api: ApiClient, newest: Decision, named: str) -> None:
    """Raises ApiError unless `named` is a prefix of the newest decision's digest."""
    wanted, candidate = named.lower(), newest.candidate[:12]
    if len(wanted) < DIGITS or set(wanted) - set(hexdigits):
        raise ApiError(
            f"invalid decision digest {named[:12]!r}",
            hint=f"give at least the first {DIGITS} digits; `assay model show {candidate}` shows them",
            exit_code=2,
        )
    if newest.digest().startswith(wanted):
        return
    earlier = api.decisions(candidate=newest.candidate, limit=EARLIER)
    if any(one.digest().startswith(wanted) for one in earlier):
        said = f"a newer decision about {candidate} exists than {named[:12]}: {newest.reason}"
    else:
        said = (
            f"{named[:12]} is not a decision about {candidate}; the newest is {newest.digest()[:SAID]}: {newest.reason}"
        )
    raise ApiError(said, hint=f"review it with `assay model show {candidate}`, then sign again", exit_code=4)
