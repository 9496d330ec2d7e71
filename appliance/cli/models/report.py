"""`assay report` and `assay model history`: results of a cycle and of every promotion, as text, pages and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import Limit, api_client
from appliance.cli.show.printing import Output, for_people, prints, short, show_line, show_table
from appliance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from appliance.client import ApiClient
    from appliance.client.nights import PromotionView
    from appliance.records.cycles import Cycle, Event
    from appliance.reporting.as_text import ReportFigures
    from appliance.reporting.drawing import Picture
    from appliance.reporting.night_report import ChangedTask, NightReport
    from policies.contract.evidence import PairedItem


Rollouts = dict[tuple[str, str, bool], str]
"""Rollout ids by task, model, and True if passed."""
PAGE = 1000
SAMPLED = (0, 1)
"""Runs of an evaluation that decide, the champion's and the candidate's; the others are greedy."""
EVENTS = 1000
NEWEST = 100
"""Cycles searched for the newest with a result."""
MOST_PAGES = 20
"""Pages of an evaluation's rollouts searched for changed answers."""


@prints
def report(
    cycle: Annotated[
        str, typer.Argument(metavar="CYCLE", help="Id, a prefix of it, or `latest`: the newest with a result.")
    ] = "latest",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write report.html, report.md and SVG pictures into that folder, which must have none.",
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> Output[ReportFigures | None]:
    """Show a cycle's results: curves, tasksets before and after, decision, examples of changed answers.

    Example: assay report latest --out report
    """
    if sum((out is not None, markdown, not for_people())) > 1:
        raise UsageError("--out, --markdown and --json cannot be combined", "give one of them")
    api = api_client()
    made = gather(api, newest(api) if cycle == "latest" else cycle)
    if not for_people():
        from appliance.reporting.as_text import as_figures

        return Output(as_figures(made))
    if out is not None:
        return Output(None, [str(file) for file in write_report(made, out)])
    from appliance.reporting.as_text import as_markdown, as_text

    typer.echo(as_markdown(made) if markdown else as_text(made), nl=False)
    return Output(None)


def newest(api: ApiClient) -> str:
    """Returns the id of the newest done cycle, else the newest ended one, else the newest. Names later cycles without a
    result on standard error. Raises UsageError without any cycle."""
    from appliance.records.cycles import CycleState

    found = api.cycles(NEWEST)
    if not found:
        raise UsageError("no cycle yet", "start one with `assay cycle start`")
    done = next((place for place, one in enumerate(found) if one.state is CycleState.DONE), None)
    if done is None:
        return next((one for one in found if one.state.ended), found[0]).id
    later = [f"{one.id} is {one.state.value}" for one in found[:done] if one.state.rests]
    if later:
        typer.echo(f"newer ones have no result: {', '.join(later)}", err=True)
    return found[done].id


def gather(api: ApiClient, cycle: str) -> NightReport:
    """Fetches all data of the report on a cycle from the daemon, and builds the report."""
    from appliance.reporting.night_report import changed_items, evaluation_of, night_report

    detail = api.cycle(cycle)
    evaluation = evaluation_of(detail)
    changed = [] if evaluation is None else changed_items(evaluation)
    cycle = detail.cycle.id  # the beginning of one may have been given
    rollouts = _rollouts(api, cycle, {item.task for item in changed}) if changed else {}
    models = ("", "") if evaluation is None else (evaluation.champion.weights, evaluation.candidate.weights)
    examples = [_example(api, item, rollouts, *models) for item in changed]
    events = events_between(api, detail.cycle)
    return night_report(detail, api.curves(cycle).steps, examples, events, api.held_out())


def events_between(api: ApiClient, cycle: Cycle) -> list[Event]:
    """Returns the daemon's events during a cycle. The first one is found by bisection, since numbers and times ascend
    together."""
    low, high = 0, api.status().last_event
    while low < high:
        middle = (low + high) // 2
        [*found] = api.events(after=middle, limit=1)
        if found and found[0].event.created < cycle.created:
            low = found[0].number
        else:
            high = middle
    events: list[Event] = []
    while page := api.events(after=low, limit=EVENTS):
        events += [one.event for one in page if not cycle.state.ended or one.event.created <= cycle.updated]
        low = page[-1].number
        if cycle.state.ended and page[-1].event.created > cycle.updated:
            break
    return events


def _rollouts(api: ApiClient, cycle: str, tasks: set[str]) -> Rollouts:
    """Returns ids of rollouts sampled in a cycle's evaluation, by task, model and outcome; the oldest of several."""
    from appliance.records.rollouts import Purpose
    from appliance.records.training import RolloutFilter

    found: Rollouts = {}
    before = None
    for _ in range(MOST_PAGES):
        page = api.rollouts(RolloutFilter(cycle=cycle, purpose=Purpose.EVALUATION, before=before), limit=PAGE)
        for one in page:
            if one.task in tasks and one.step in SAMPLED:
                found[one.task, one.weights, one.verdict.passed] = one.id
        if len(page) < PAGE:
            break
        before = page[-1].id
    return found


def _example(api: ApiClient, item: PairedItem, rollouts: Rollouts, champion: str, candidate: str) -> ChangedTask:
    from appliance.reporting.night_report import ChangedTask

    names = (rollouts.get((item.task, champion, item.lost)), rollouts.get((item.task, candidate, item.gained)))
    before, after = (api.rollout(name) if name is not None else None for name in names)
    return ChangedTask(task=item.task, family=item.family, gained=item.gained, before=before, after=after)


def write_report(made: NightReport, folder: Path) -> list[Path]:
    """Writes a report's page, Markdown and pictures into a folder; returns the files. Raises UsageError if a report is
    already there."""
    from appliance.reporting.as_page import as_page
    from appliance.reporting.as_text import as_markdown
    from appliance.reporting.drawing import report_pictures

    page, text = folder / "report.html", folder / "report.md"
    new_folder(folder, page, text)
    pictures = write_pictures(report_pictures(made), folder)
    page.write_text(as_page(made), encoding="utf-8")
    text.write_text(as_markdown(made, [file.name for file in pictures]), encoding="utf-8")
    return [page, text, *pictures]


def new_folder(folder: Path, *pages: Path) -> None:
    """Creates the folder for a report if needed. Raises UsageError if one of the pages exists."""
    if taken := next((page for page in pages if page.exists()), None):
        raise UsageError(f"{taken} already exists", "name another folder")
    folder.mkdir(parents=True, exist_ok=True)


def write_pictures(pictures: dict[str, Picture], folder: Path) -> list[Path]:
    """Writes pictures as SVG files by name, and returns the files."""
    files = {folder / f"{name}.svg": picture.svg() for name, picture in pictures.items()}
    for file, content in files.items():
        file.write_text(content, encoding="utf-8")
    return list(files)


BLOCK, WIDTH = "█", 20


@prints
def history(
    limit: Limit = 20,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write history.html and SVG pictures into that folder.")
    ] = None,
) -> Output[Sequence[PromotionView]]:
    """Show gains and losses of every promotion by taskset, over sealed questions that both models answered. "To the
    best before" is the gain in points over the taskset's anchor, its best champion until then.

    Example: assay model history --out history
    """
    found = api_client().promotions(limit)
    return Output(found, lambda: _show_history(found, out))


def _show_history(found: list[PromotionView], out: Path | None) -> None:
    if out is not None:
        from appliance.reporting.as_page import history_page
        from appliance.reporting.drawing import history_pictures

        page = out / "history.html"
        new_folder(out, page)
        page.write_text(history_page(found), encoding="utf-8")
        for file in (page, *write_pictures(history_pictures(found), out)):
            show_line(str(file))
        return
    for one in reversed(found):
        met = f", over {one.nights} nights" if one.nights > 1 else ""
        show_line(f"{one.at[:10]}  {short(one.candidate)} after {short(one.champion)}: {one.reason}{met}")
        if one.taken_back:
            show_line(f"  taken back: {one.taken_back}")
        show_table(
            ("  taskset", "items", "gained", "forgot", "to the best before", ""),
            [
                (
                    f"  {f.family}",
                    f.items,
                    f"+{f.gained}",
                    f"-{f.lost}",
                    f"{f.to_anchor} {'champion' if f.anchor == one.champion else short(f.anchor)}" if f.anchor else "",
                    _bar(f.gained, f.lost, f.items),
                )
                for f in one.families
            ],
            empty="  no question was answered by both",
            narrow={"": None},
        )
    if not found:
        show_line("no promotion yet: approve a candidate with `assay model approve candidate`")


def _bar(gained: int, lost: int, items: int) -> str:
    """Draws a taskset's losses to the left of the middle, gains to the right, as text blocks."""
    left, right = (round(WIDTH * count / max(1, items)) for count in (lost, gained))
    return f"{BLOCK * left:>{WIDTH}}|{BLOCK * right}".rstrip()
