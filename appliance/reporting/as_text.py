"""A report as plain lines for a terminal, and as Markdown. Pure; every text is escaped.

In Markdown foreign text has its markup escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from appliance.client.messages import RolloutDetail
from appliance.client.nights import HeldOutNight
from appliance.records.cycles import Cycle
from appliance.reporting.night_report import ChangedTask, NightReport, share_text
from appliance.text.printable import printable
from common.counting import counted
from policies.contract.decision import Decision
from runtime.model import FrozenModel

LONGEST = 600
"""Maximum characters of an answer or a turn."""
TURNS = 4
"""Number of last model turns shown for an example."""
_MARKS = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&:@])")
TONIGHT = "Questions of this night only; the decision also counts earlier nights of the same two models."
HAPPENED = "Hosts and replaced processes (times in UTC)"
HELD_OUT = "Success on held-out questions by night, with 95 % intervals"
NIGHTS = 14
"""Newest nights listed."""
BLOCKS = "▁▂▃▄▅▆▇█"
SPARKS = 24
"""Newest points drawn of a curve."""


def as_text(report: NightReport) -> str:
    """Formats a night report for a terminal of about 100 columns."""
    lines = [printable(report.headline)]
    if report.nights:
        lines += ["", HELD_OUT]
        lines += [f"  {night}  {before}  {after}  {change}" for night, before, after, change in night_rows(report)]
    curves = [f"  {name:<31} {_spark(points)}  {_axis(points)}" for name, points in report.curves.items() if points]
    lines += ["", "curves, from the lowest to the highest figure", *curves] if curves else []
    if report.rollouts:
        lines += ["", f"rollouts: {rollouts_text(report)}"]
    if report.seconds:
        lines += ["", "where the time went, in minutes"]
        lines += [f"  {printable(name):<32} {seconds / 60:8.1f}" for name, seconds in report.seconds.items()]
    if report.families:
        lines += ["", TONIGHT, f"{'taskset':<26} {'items':>5}  {'before':<17} {'after':<17} change, points [95 %]"]
        for one in report.families:
            low, high = one.interval
            before, after = one.share(one.before), one.share(one.after)
            name = printable(one.name, limit=26)
            lines.append(
                f"{name:<26} {one.items:>5}  {before:<17} {after:<17} {one.change:+.1f} [{low:+.1f}, {high:+.1f}]"
            )
    if report.unmeasured:
        lines += ["", report.unmeasured]
    if report.happened:
        lines += ["", HAPPENED[0].lower() + HAPPENED[1:]]
        lines += [f"  {when}  {text}" for when, text in happened_lines(report)]
    if report.decision is not None:
        lines += ["", printable(f"decision: {report.decision.outcome.value}: {report.decision.reason}")]
        lines += [printable(f"  {one.outcome.value:<9} {one.gate}: {one.reason}") for one in report.findings]
        if report.decision.would_change:
            lines.append(printable(f"  would change it: {report.decision.would_change}"))
    for sort, changed in _sorts(report.changed):
        lines += ["", sort]
        for task in changed:
            lines.append(printable(f"  {task.family}: {task.task}", limit=LONGEST))
            lines += [f"    {line}" for line in _told(task)]
    return "\n".join(lines) + "\n"


def as_markdown(report: NightReport, pictures: Sequence[str] = ()) -> str:
    """Formats a night report as Markdown; `pictures` are names of files beside it."""
    lines = [f"# {_escaped(report.cycle.id)}", "", _escaped(report.headline), ""]
    lines += [f"![{_escaped(name)}]({name})" for name in pictures]
    if report.nights:
        lines += ["", f"## {HELD_OUT}", ""]
        lines += [f"- {_escaped(', '.join(row))}" for row in night_rows(report)]
    if report.families:
        lines += ["", "## Tasksets, before and after", "", TONIGHT, ""]
        lines += ["| taskset | items | before | after | change, points [95 %] |", "|---|---|---|---|---|"]
        for one in report.families:
            low, high = one.interval
            row = (_escaped(one.name), str(one.items), one.share(one.before), one.share(one.after))
            lines.append(f"| {' | '.join(row)} | {one.change:+.1f} [{low:+.1f}, {high:+.1f}] |")
    if report.unmeasured:
        lines += ["", report.unmeasured]
    if report.decision is not None:
        lines += [
            "",
            "## Decision",
            "",
            f"{_escaped(report.decision.outcome.value)}: {_escaped(report.decision.reason)}",
            "",
        ]
        lines += ["| gate | finding | reason |", "|---|---|---|"]
        lines += [f"| {_escaped(g.gate)} | {g.outcome.value} | {_escaped(g.reason)} |" for g in report.findings]
    if report.rollouts:
        lines += ["", f"Rollouts: {rollouts_text(report)}"]
    if report.seconds:
        lines += ["", "## Where the time went", ""]
        lines += [f"- {_escaped(name)}: {seconds / 60:.1f} minutes" for name, seconds in report.seconds.items()]
    if report.happened:
        lines += ["", f"## {HAPPENED}", ""]
        lines += [f"- {when} {_escaped(text)}" for when, text in happened_lines(report)]
    for sort, changed in _sorts(report.changed):
        lines += ["", f"## {sort}", ""]
        for task in changed:
            lines.append(f"- {_escaped(task.family)}, {_escaped(task.task)}")
            lines += [f"{'  ' * line.startswith(' ')}  - {_escaped(line.strip())}" for line in _told(task)]
    return "\n".join(lines) + "\n"


def rollouts_text(report: NightReport) -> str:
    """Lists the number of a report's rollouts by purpose, in one line."""
    return ", ".join(f"{printable(name)} {count:,}" for name, count in report.rollouts.items())


def happened_lines(report: NightReport) -> list[tuple[str, str]]:
    """Returns minute and text of each event in a report; the number of omitted events comes last."""
    lines = [(one.created[11:16], printable(one.text, limit=LONGEST)) for one in report.happened]
    left = report.more_happened
    return [*lines, ("", f"and {left} more: `assay logs daemon`")] if left else lines


def _sorts(changed: Sequence[ChangedTask]) -> list[tuple[str, list[ChangedTask]]]:
    gained, lost = ([one for one in changed if one.gained is which] for which in (True, False))
    named = [("The champion failed, the candidate passed", gained), ("The champion passed, the candidate failed", lost)]
    return [(name, found) for name, found in named if found]


def _told(task: ChangedTask) -> list[str]:
    """Formats a question on which two models differ: the question, and each side's answer with the model's turns
    indented below."""
    asked = [printable(f"asked: {task.question}", limit=LONGEST)] if task.question else []
    return [*asked, *_side("champion", task.before), *_side("candidate", task.after)]


def _side(who: str, detail: RolloutDetail | None) -> list[str]:
    if detail is None:
        return []
    one = detail.rollout
    answer = one.answer if one.answer is not None else "no answer"
    said = [turn for turn in detail.turns if turn.sampled]
    left = [f"  {counted(len(said) - TURNS, 'turn')} before: assay rollouts show {one.id}"] if len(said) > TURNS else []
    lines = [
        f"{who}: {answer} ({one.verdict.outcome.value}: {one.verdict.reason})",
        *left,
        *(f"  wrote: {turn.text}" for turn in said[-TURNS:]),
        *([f"  {detail.unread}"] if detail.unread else []),
    ]
    return [printable(line, limit=LONGEST) for line in lines]


def _spark(points: Sequence[tuple[float, float]]) -> str:
    values = [value for _, value in points][-SPARKS:]
    low, high = min(values), max(values)
    return "".join(BLOCKS[round((value - low) / ((high - low) or 1.0) * (len(BLOCKS) - 1))] for value in values)


def _axis(points: Sequence[tuple[float, float]]) -> str:
    """Returns a curve's lowest, highest and last figure with the first and last training step that are drawn."""
    drawn = points[-SPARKS:]
    values = [value for _, value in drawn]
    steps = f"steps {drawn[0][0]:.0f} to {drawn[-1][0]:.0f}"
    return f"{min(values):.3g} to {max(values):.3g}, last {values[-1]:.3g}, {steps}"


def night_rows(report: NightReport) -> list[tuple[str, str, str, str]]:
    """Returns date, the champion's and the candidate's success with intervals, and the change for each night."""
    rows = []
    for one in report.nights[-NIGHTS:]:
        before, after = (share_text(passed, one.items) for passed in (one.before, one.after))
        low, high = one.interval
        rows.append(
            (one.at[:10], f"champion {before}", f"candidate {after}", f"{one.change:+.1f} [{low:+.1f}, {high:+.1f}]")
        )
    return rows


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", printable(text, limit=LONGEST))


class FamilyFigures(FrozenModel):
    family: str
    items: int
    passed_before: int
    passed_after: int
    gained: int
    lost: int
    change_points: float
    interval_points: tuple[float, float]


class ChangedFigures(FrozenModel):
    task: str
    family: str
    question: str
    """Text of the question; empty if not kept."""
    gained: bool
    champion: str | None
    """Id of the rollout."""
    candidate: str | None


class HappenedFigures(FrozenModel):
    at: str
    kind: str
    text: str


class ReportFigures(FrozenModel):
    """Night report as JSON, without the examples' conversations, which `assay rollouts show` prints."""

    cycle: Cycle
    rollouts: dict[str, int]
    curves: dict[str, tuple[tuple[float, float], ...]]
    """(step, value) by name."""
    seconds: dict[str, float]
    nights: tuple[HeldOutNight, ...]
    """Held-out success up to this night, oldest first."""
    families: tuple[FamilyFigures, ...]
    decision: Decision | None
    changed: tuple[ChangedFigures, ...]
    happened: tuple[HappenedFigures, ...]
    """Events on other machines: placement, ended or lost processes, and replacements."""


def as_figures(made: NightReport) -> ReportFigures:
    """Converts a night report to its JSON form."""
    return ReportFigures(
        cycle=made.cycle,
        rollouts=dict(made.rollouts),
        curves=dict(made.curves),
        seconds=dict(made.seconds),
        nights=made.nights,
        families=tuple(
            FamilyFigures(
                family=one.name,
                items=one.items,
                passed_before=one.before,
                passed_after=one.after,
                gained=one.gained,
                lost=one.lost,
                change_points=one.change,
                interval_points=one.interval,
            )
            for one in made.families
        ),
        decision=made.decision,
        changed=tuple(
            ChangedFigures(
                task=one.task,
                family=one.family,
                question=one.question,
                gained=one.gained,
                champion=one.before.rollout.id if one.before is not None else None,
                candidate=one.after.rollout.id if one.after is not None else None,
            )
            for one in made.changed
        ),
        happened=tuple(HappenedFigures(at=one.created, kind=one.kind, text=one.text) for one in made.happened),
    )
