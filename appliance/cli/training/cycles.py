"""`assay cycle`: nights, by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.named import CycleId, CycleOrNewest
from appliance.cli.shell.options import Limit, Seed, api_client, data_folder
from appliance.cli.show.logs import event_lines
from appliance.cli.show.printing import Output, cycle_state, points, prints, records, short, show_fields, show_table
from appliance.client.api_client import ApiClient
from appliance.client.messages import CycleDetail, StartCycle
from appliance.client.taskset_outcomes import TasksetOutcome, outcomes_of
from appliance.errors import ExitCode, UsageError
from appliance.records.cycles import CycleState

if TYPE_CHECKING:
    from appliance.records.cycles import Cycle

POLL_SECONDS = 0.5
RECENT = 5
"""Events shown of a cycle that `watch` begins to follow."""
SEARCHED = 10
"""Newest cycles that `show` searches for one that did something."""
ENDS = {
    CycleState.DONE: ExitCode.OK,
    CycleState.CANCELLED: ExitCode.FAILED_VERDICT,
    CycleState.FAILED: ExitCode.INFRASTRUCTURE,
    CycleState.SET_ASIDE: ExitCode.INFRASTRUCTURE,
}

app = typer.Typer(help="Start, list, show, watch, cancel and resume cycles.", no_args_is_help=True)


@app.command("start")
@prints
def start(
    seed: Seed = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Start even while a candidate only waits for a person's approval.")
    ] = False,
) -> Output[Cycle]:
    """Start a night now. An unfinished cycle continues instead.

    A candidate held for lack of evidence is asked fresh questions; otherwise another one is trained.

    Example: assay cycle start --seed 7
    """
    cycle = api_client().start_cycle(StartCycle(seed=seed, anew=anew))
    lines = [f"cycle {cycle.id} is running (seed {cycle.seed}, phase {cycle.phase}); see `assay status`"]
    named = cycle.plan.get("recipe", {}).get("tasksets", ())
    if any(name.startswith("own/") for name in named):
        from appliance.curriculum.own_sizes import small_tasksets

        lines += [f"{name}: {sentence}" for name, sentence in small_tasksets(data_folder(), named).items()]
    return Output(cycle, lines)


def _newest(api: ApiClient) -> str:
    newest = api.cycles(1)
    if not newest:
        raise UsageError("no cycle yet", "start one with `assay cycle start`")
    return newest[0].id


@app.command("watch")
@prints
def watch(cycle: CycleOrNewest = None) -> Iterator[Cycle | str]:
    """Follow a cycle to its end, from its newest events on. Exit code 0 done, 1 cancelled, 5 failed or set aside.

    Ctrl-C leaves the cycle running. With --json, print one line of JSON for each change.

    Example: assay cycle watch
    """
    api = api_client()
    name, last = cycle or _newest(api), None
    lines: Iterator[str | None] = event_lines(api, 0)
    while True:
        found = api.cycle(name).cycle
        name = found.id  # another that begins later may begin so, too
        if last is None:
            yield cycle_state(found)
            if not found.state.rests:
                status = api.status()
                yield from filter(None, (status.nights, status.worker.waits_for))
                lines = event_lines(api, RECENT, since=found.created)
        yield from takewhile(lambda line: line is not None, lines)
        if found != last:
            yield found
        if found.state.rests:
            break
        last = found
        time.sleep(POLL_SECONDS)
    yield f"{found.id} is {found.state.value}" + (f": {found.failure}" if found.failure else "")
    raise typer.Exit(ENDS[found.state])


@app.command("cancel")
@prints
def cancel(cycle: CycleId) -> Output[Cycle]:
    """Cancel a cycle. Its training stays on record, but never enters service. Exit code 4 if it has ended.

    Example: assay cycle cancel night-20261124t020000-9c1d
    """
    ended = api_client().cancel_cycle(cycle)
    return Output(ended, f"cycle {ended.id} is cancelled")


@app.command("resume")
@prints
def resume(cycle: CycleId) -> Output[Cycle]:
    """Resume a cycle that was set aside because its worker died three times in a row. Exit code 4 for any other.

    Example: assay cycle resume night-20261124t020000-9c1d
    """
    found = api_client().resume_cycle(cycle)
    return Output(found, f"cycle {found.id} continues in phase {found.phase}; see `assay status`")


class CycleDocument(CycleDetail):
    tasksets: tuple[TasksetOutcome, ...]


@app.command("show")
@prints
def show(cycle: CycleOrNewest = None) -> Output[CycleDocument]:
    """Show one cycle: state, time spent, learning, decision, and the outcome of each taskset. Without an id, the newest
    that did something.

    Example: assay cycle show --json
    """
    api = api_client()
    found, newer = (api.cycle(cycle), []) if cycle else _newest_with_work(api)
    tasksets = outcomes_of(found.cycle, api.pass_counts(found.cycle.id), found.evaluations)
    document = CycleDocument(**dict(found), tasksets=tuple(tasksets))
    return Output(document, lambda: _show(document, newer))


def _newest_with_work(api: ApiClient) -> tuple[CycleDetail, list[Cycle]]:
    """Returns the newest cycle with an attempt, step or decision, and the newer ones without; else the newest."""
    newest = api.cycle(_newest(api))
    newer: list[Cycle] = []
    for one in api.cycles(SEARCHED):
        found = api.cycle(one.id)
        if found.rollouts or found.steps or found.evaluations or found.decisions:
            return found, newer
        newer.append(one)
    return newest, []


def _show(found: CycleDocument, newer: Sequence[Cycle]) -> None:
    one, last = found.cycle, found.steps[-1] if found.steps else {}
    show_fields(
        [
            ("cycle", f"{one.id}, seed {one.seed}"),
            ("state", f"{one.state.value}" + ("" if one.phase == one.state.value else f", {one.phase}")),
            ("failure" if one.state is not CycleState.CANCELLED else "why", one.failure),
            ("newer", ", ".join(f"{cycle_state(empty)}: no attempt yet" for empty in newer)),
            ("begun", one.created[:19]),
            ("seconds", ", ".join(f"{phase} {seconds:.0f}" for phase, seconds in one.seconds.items())),
            ("rollouts", ", ".join(f"{purpose} {count}" for purpose, count in found.rollouts.items())),
            ("steps", f"{len(found.steps)}, the last with {100 * last['success']:.0f} % right" if last else ""),
            ("checkpoints", ", ".join(f"{short(made.manifest)} ({made.stage})" for made in found.checkpoints)),
            ("decision", ", ".join(f"{made.outcome.value}: {made.reason}" for made in found.decisions)),
        ]
    )
    if found.tasksets:
        typer.echo()
        headings = ("taskset", "groups", "rollouts", "passed", "sealed", "outcome")
        show_table(headings, map(_row, found.tasksets), empty="")


def _row(one: TasksetOutcome) -> tuple[str, ...]:
    asked = one.rollouts > 0
    return (
        one.name,
        f"{one.learned} of {one.groups}" if asked else "",
        str(one.rollouts) if asked else "",
        points(one.passed / one.rollouts) if asked else "",
        f"{one.champion} -> {one.candidate} of {one.sealed}" if one.sealed else "",
        one.said,
    )


@app.command("ls")
@prints
def ls(limit: Limit = 20) -> Output[Sequence[Cycle]]:
    """List the cycles, newest first.

    Example: assay cycle ls --limit 7
    """
    return records(
        api_client().cycles(limit),
        ("cycle", "kind", "seed", "state", "phase", "seconds", "failure"),
        lambda c: (c.id, c.kind, c.seed, c.state.value, c.phase, f"{sum(c.seconds.values()):.0f}", c.failure),
        empty="no cycle yet: start one with `assay cycle start`",
        narrow={"seed": None, "kind": None, "seconds": None, "phase": None},
    )
