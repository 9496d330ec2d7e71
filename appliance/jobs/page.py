"""Renders a bundle as one self-contained HTML file in which all text is escaped. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

from appliance.jobs.report import BundleReport
from appliance.jobs.report_text import facts, lineage, parts, result
from appliance.text.html_page import SHOWN, document, section, shown_text, table
from verifiers.contract.verdict import Verdict


def page(report: BundleReport) -> str:
    """Renders the report of a bundle check as an HTML page. All text in it is hostile and escaped."""
    title = "verified" if report.ok else "not decided" if report.undecided else "not verified"
    parts = [
        f'<h1 class="{"good" if report.ok else "bad"}">{title}</h1><p>{shown_text(result(report))}</p>',
        section("Why not", table([], [[reason] for reason in report.reasons])) if report.reasons else "",
        section("Question", _block(report.question)),
        section("Answer", _block(report.answer)),
        section("Check", _block(_json(report.spec.model_dump(mode="json")))) if report.spec is not None else "",
        section("What it says, and what carries it", _statement(report)) if report.statement_now else "",
        section("Not checked here", _pairs((one.what, one.why) for one in report.not_checked))
        if report.not_checked
        else "",
        section("Facts", _pairs(facts(report))),
        section("Evidence", _evidence(report.verdict_now or report.verdict_then)),
        section("Made with (stated by the maker)", _pairs(lineage(report))) if report.made_with else "",
        section("Transcript", _transcript(report)) if report.transcript else "",
        section("Files", table(["file", "", ""], [[f.name, f.state.value, f.detail] for f in report.files])),
        section("Notes", table([], [[note] for note in report.notes])) if report.notes else "",
    ]
    note = "This page only shows a check: run <code>assay verify</code> on the bundle itself."
    return document(title, "".join(parts), note)


def _statement(report: BundleReport) -> str:
    rows = [[one.now + (f" (it says: {one.then})" if one.differs else ""), one.part, one.by] for one in parts(report)]
    return table(["assurance", "part", "by, or why not"], rows)


def _transcript(report: BundleReport) -> str:
    """Renders a bundle's transcript as a collapsed part of the page, since it is long and proves nothing."""
    shown: list[str] = []
    room = SHOWN
    for entry in report.transcript:
        text = entry.text if entry.call is None else f"{entry.call.asked}\n-- {entry.call.status.value}\n{entry.text}"
        if len(text) > room:
            shown.append(f"<p>... {len(report.transcript) - len(shown)} more parts are in the bundle</p>")
            break
        room -= len(text)
        shown.append(f'<p class="quiet">{entry.role.value}</p>{_block(text)}')
    return f"<details><summary>{report.nodes} parts, {report.calls} tool calls</summary>{''.join(shown)}</details>"


def _evidence(verdict: Verdict | None) -> str:
    if verdict is None:
        return "<p>none</p>"
    tools = ", ".join(f"{name} {version}" for name, version in verdict.tools.items())
    shown = _pairs([("tools", tools)]) if tools else ""
    if verdict.evidence:
        shown += _block(_json(verdict.evidence))
    return shown or "<p>none</p>"


def _json(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)


def _block(text: str | None) -> str:
    return "<p>(not readable)</p>" if text is None else f"<pre>{shown_text(text)}</pre>"


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    return table([], [list(row) for row in rows])
