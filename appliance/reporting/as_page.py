"""A report as one self-contained HTML file: inline pictures, escaped text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.client.messages import RolloutDetail
from appliance.client.nights import PromotionView
from appliance.reporting.as_text import HAPPENED, HELD_OUT, TONIGHT, happened_lines, night_rows
from appliance.reporting.drawing import Picture, history_pictures, report_pictures
from appliance.reporting.night_report import ChangedTask, FamilyChange, NightReport
from appliance.text.html_page import document, section, shown_text, table

NOTE = (
    "Items lost to infrastructure errors count for neither model. Intervals are at 95 %: Wilson's for a share, Tango's "
    "for a change. Model text is shown as plain text and proves nothing."
)


def as_page(report: NightReport) -> str:
    """Returns a night report as one HTML file."""
    title = f"Report on {report.cycle.id}"
    body = [f"<h1>{shown_text(title)}</h1><p>{shown_text(report.headline)}</p>"]
    drawn = report_pictures(report)
    if report.nights:
        nights = table(["night", "before", "after", "change, points [95 %]"], night_rows(report))
        body.append(section(HELD_OUT, _picture(drawn.get("nights")) + nights))
    if report.families:
        rows = [_family(one) for one in report.families]
        content = f"<p>{TONIGHT}</p>{_picture(drawn.get('families'))}" + table(
            ["taskset", "items", "before", "after", "change, points [95 %]"], rows
        )
        body.append(section("Tasksets, before and after", content))
    if report.unmeasured:
        body.append(f"<p>{shown_text(report.unmeasured)}</p>")
    if report.decision is not None:
        made = report.decision
        said = f"<p>{shown_text(f'{made.outcome.value}: {made.reason}')}</p>"
        gates = table(["gate", "finding", "reason"], [[g.gate, g.outcome.value, g.reason] for g in report.findings])
        would = f"<p>{shown_text(f'Would change it: {made.would_change}')}</p>" if made.would_change else ""
        body.append(section("Decision", said + gates + would))
    curves = "".join(_picture(drawn.get(name)) for name in ("success", "entropy", "lengths"))
    body += [section("Curves", curves)] if curves else []
    if "time" in drawn:
        body.append(section("Where the time went", _picture(drawn["time"])))
    if report.happened:
        body.append(section(HAPPENED, table(["at", "what"], [list(one) for one in happened_lines(report)])))
    for sort, gained in (("Gained: the champion failed", True), ("Lost: the champion passed", False)):
        if changed := [one for one in report.changed if one.gained is gained]:
            body.append(section(sort, "".join(map(_changed, changed))))
    facts = [[name, f"{count:,}"] for name, count in report.rollouts.items()]
    body += [section("Rollouts", table(["purpose", "rollouts"], facts))] if facts else []
    return document(title, "".join(body), shown_text(NOTE))


def history_page(promotions: Sequence[PromotionView]) -> str:
    """Returns the gains and losses of each promotion as one HTML file."""
    body = ["<h1>Gains and losses of promotions</h1>"]
    body += [] if promotions else ["<p>No model was promoted yet.</p>"]
    for one, drawn in zip(
        sorted(promotions, key=lambda made: made.at), history_pictures(promotions).values(), strict=True
    ):
        taken = f"<p class='bad'>{shown_text(f'taken back: {one.taken_back}')}</p>" if one.taken_back else ""
        rows = [[f.family, str(f.items), str(f.gained), str(f.lost), f.to_anchor] for f in one.families]
        content = taken + drawn.svg() + table(["taskset", "items", "gained", "forgot", "to the best before"], rows)
        body.append(section(f"{one.at[:10]}: {one.candidate[:12]} after {one.champion[:12]}", content))
    return document("Gains and losses of promotions", "".join(body), shown_text(NOTE))


def _family(one: FamilyChange) -> list[str]:
    low, high = one.interval
    change = f"{one.change:+.1f} [{low:+.1f}, {high:+.1f}]"
    return [one.name, str(one.items), one.share(one.before), one.share(one.after), change]


def _picture(drawn: Picture | None) -> str:
    return "" if drawn is None else f"<p>{drawn.svg()}</p>"


def _changed(one: ChangedTask) -> str:
    sides = "".join(_side(who, detail) for who, detail in (("champion", one.before), ("candidate", one.after)))
    asked = f"<pre>{shown_text(one.question)}</pre>" if one.question else ""
    return f"<details open><summary>{shown_text(f'{one.family}: {one.task}')}</summary>{asked}{sides}</details>"


def _side(who: str, detail: RolloutDetail | None) -> str:
    if detail is None:
        return f"<p class='quiet'>{who}: no rollout on record</p>"
    one = detail.rollout
    answer = one.answer if one.answer is not None else "none"
    said = f"{who}: {one.verdict.outcome.value}, {one.verdict.reason}; answer: {answer}"
    turns = "".join(
        f"<p class='quiet'>{turn.role.value}</p><pre>{shown_text(turn.text)}</pre>" for turn in detail.turns
    )
    unread = f"<p class='quiet'>{shown_text(detail.unread)}</p>" if detail.unread else ""
    return f"<p>{shown_text(said)}</p>{turns}{unread}"
