"""`assay rollouts` and `assay prune`: the model's attempts in its own words, and how old ones are dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.named import RolloutId
from appliance.cli.shell.options import Limit, api_client
from appliance.cli.show.printing import Output, points, prints, short, show_fields, show_line, show_table
from appliance.client.api_client import ApiClient
from appliance.client.messages import RolloutDetail, RolloutView
from appliance.records.rollouts import Purpose
from appliance.records.training import RolloutFilter
from appliance.text.printable import printable
from common.counting import counted
from verifiers.contract.verdict import Outcome

if TYPE_CHECKING:
    from appliance.client.retention import Pruned


CALL_CHARS = 400
SHOWN_ANSWER, SHOWN_QUESTION = 16, 34
"""Characters in a list."""

app = typer.Typer(help="List and show the model's attempts.", no_args_is_help=True)


@app.command("ls")
@prints
def ls(
    cycle: Annotated[str | None, typer.Option("--cycle", help="Only this cycle, by its id or a prefix.")] = None,
    job: Annotated[str | None, typer.Option("--job", help="Only this job, by its id or a prefix.")] = None,
    purpose: Annotated[Purpose | None, typer.Option("--purpose", help="Only this purpose.")] = None,
    family: Annotated[str | None, typer.Option("--family", help="Only this taskset.")] = None,
    verdict: Annotated[Outcome | None, typer.Option("--verdict", help="Only this verdict.")] = None,
    before: Annotated[str | None, typer.Option("--before", metavar="ID", help="Continue after this rollout.")] = None,
    probes: Annotated[
        bool, typer.Option("--probes", help="Also those of unsolvable questions, which fail by design.")
    ] = False,
    limit: Limit = 20,
) -> Output[Sequence[RolloutView]]:
    """List the rollouts that match all given options, newest first.

    Example: assay rollouts ls --verdict fail --family linear --limit 10
    """
    where = RolloutFilter(
        cycle=cycle, job=job, purpose=purpose, family=family, outcome=verdict, before=before, probes=probes
    )
    api = api_client()
    found = api.rollouts(where, limit=limit)
    return Output(found, lambda: _show_list(found, limit, "" if found else _nothing(api, where)))


def _show_list(found: list[RolloutView], limit: int, empty: str) -> None:
    show_table(
        ("verdict", "taskset", "calls", "answer", "question", "rollout"),
        [
            (
                _verdict(one),
                one.family,
                len(one.calls),
                printable(_answer(one), limit=SHOWN_ANSWER),
                printable(one.question, limit=SHOWN_QUESTION),
                one.id,
            )
            for one in found
        ],
        empty=empty,
        whole=True,
    )
    if len(found) == limit:
        show_line(f"for older ones add --before {found[-1].id}")


def _verdict(one: RolloutView) -> str:
    """Formats a verdict; a probe, whose check accepts no answer, fails by design."""
    return f"{one.verdict.outcome.value}{', by design' if one.is_probe else ''}"


def _nothing(api: ApiClient, where: RolloutFilter) -> str:
    """Returns the reason why a list of rollouts is empty, with the known tasksets if one was named."""
    if where in (RolloutFilter(), RolloutFilter(probes=False)):
        return "no rollout yet: start a cycle with `assay cycle start`"
    if where.family is None:
        return "no such rollout"
    newest = api.cycles(1)
    known = sorted({one.family for one in api.pass_counts(newest[0].id)}) if newest else []
    if where.family in known:
        return "no such rollout"
    names = f"the newest cycle has {', '.join(known)}" if known else "the newest cycle has none"
    return f"no rollout of taskset {where.family}: {names}"


@app.command("show")
@prints
def show(rollout: RolloutId) -> Output[RolloutDetail]:
    """Show one attempt: question, model text, tool results, and verdict.

    Example: assay rollouts show night-20261124t020000-9c1d.train.3.5be1.0
    """
    detail = api_client().rollout(rollout)
    return Output(detail, lambda: show_detail(detail))


def show_detail(detail: RolloutDetail) -> None:
    """Prints one attempt for people; text of the model and its tools is escaped."""
    one = detail.rollout
    show_fields(
        [
            ("rollout", one.id),
            ("taskset", f"{one.family}, {one.purpose.value}, step {one.step}, sample {one.sample}"),
            ("question", one.question),
            ("model", short(one.weights) if len(one.weights) == 64 else one.weights),
            ("answer", _answer(one)),
            ("verdict", f"{_verdict(one)}: {one.verdict.reason}"),
            ("score", points(one.verdict.score)),
            ("verifier", f"{one.verdict.verifier} {one.verdict.version}"),
            (
                "cost",
                f"{counted(one.turns, 'turn')}, {_tokens(one)}{counted(len(one.calls), 'call')}, {one.seconds:.2f} s",
            ),
            ("no text", detail.unread),
        ]
    )
    _show_tree(detail)
    _show_calls(one)
    for turn in detail.turns:
        typer.echo(f"\n--- {turn.role.value}" + ("" if turn.sampled else ", given"))
        typer.echo(printable(turn.text, lines=True))


def _tokens(one: RolloutView) -> str:
    """Formats the number of an attempt's tokens; empty if they were dropped."""
    return f"{one.tokens} tokens, " if one.tokens else ""


def _show_tree(detail: RolloutDetail) -> None:
    if not detail.tree:
        return
    typer.echo("\n--- the attempt and its branches")
    for one in detail.tree:
        where = f"  from turn {one.leaves_at}, {one.shared_tokens} tokens shared" if one.leaves_at is not None else ""
        own = "" if one.advantage is None else f", advantage {one.advantage:+.3f}"
        shared = "" if one.shared_advantage is None else f" ({one.shared_advantage:+.3f} of what they share)"
        here = "  <- this one" if one.id == detail.rollout.id else ""
        indent = "" if one.leaves_at is None else "  +- "
        typer.echo(f"{indent}{one.id}: {one.outcome.value}{where}, {one.sampled_tokens} sampled{own}{shared}{here}")


def _show_calls(one: RolloutView) -> None:
    """Prints a line per tool call with its status, if any call asks the attempt's world. Python calls show only the
    code's length, because the code is already part of its turn."""
    if any(call.asks_world for call in one.calls):
        typer.echo("\n--- calls")
        for call in one.calls:
            asked = call.asked if call.asks_world else f"{call.tool}, {counted(len(call.code), 'character')} of code"
            if not one.tokens:  # its words are not kept any more
                asked = call.tool
            typer.echo(printable(f"{call.status.value}: {asked}")[:CALL_CHARS])


def _answer(one: RolloutView) -> str:
    return one.answer if one.answer is not None else f"none: {one.answers} final answers, ended by {one.ended.value}"


NIGHTS = 30
PRUNE_SECONDS = 3_600.0
"""Time limit for the daemon's answer, in seconds: it rewrites every rollout that it drops."""


@prints
def prune(
    nights: Annotated[
        int, typer.Option("--nights", min=1, max=100_000, help="Number of newest cycles that keep everything.")
    ] = NIGHTS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be dropped, and drop nothing.")] = False,
) -> Output[Pruned]:
    """Drop the tokens of old training rollouts from the ledger.

    Code and results of their calls go with them. Verdicts, answers, evaluations, decisions, approvals, bundles and the
    audit log stay. The file keeps its size; the space is reused for new records. `retention.training_nights` does this
    after each cycle. `assay curriculum audit` can no longer compare dropped tool results; it reports that and is not
    clean.

    Example: assay prune --nights 30 --dry-run
    """
    from appliance.client.retention import Prune

    found = api_client(timeout_seconds=PRUNE_SECONDS).prune(Prune(nights=nights, dry_run=dry_run))
    verb = "would be dropped" if dry_run else "are dropped"
    of = f"{counted(found.rollouts, 'rollout')} of {counted(len(found.cycles), 'cycle')}"
    return Output(found, f"the tokens of {of} {verb}: {found.bytes / 2**20:.1f} MiB")
