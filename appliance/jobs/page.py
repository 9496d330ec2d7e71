"""A bundle as a page for people: one HTML file with nothing outside of it, in which all text is only text. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape

from appliance.jobs.report import BundleReport
from appliance.jobs.report_text import facts, lineage, parts, result
from appliance.printable import printable
from verifiers.contract.verdict import Verdict

SHOWN = 200_000
"""Characters of one text. What is longer is read in the bundle itself."""
_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.55 system-ui,sans-serif;max-width:54rem;margin:2rem auto;padding:0 1rem;color:#1c2026;"
    "background:#fff}"
    "h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f2f4f6;padding:.8rem;border-radius:.3rem;"
    "font-size:.9rem;max-height:40rem;overflow:auto}"
    "table{border-collapse:collapse;width:100%}th,td{padding:.3rem .8rem .3rem 0;vertical-align:top;text-align:left;"
    "border-bottom:1px solid #d9dde2;overflow-wrap:anywhere}td:first-child{min-width:8.5rem}th{font-weight:600}"
    ".good{color:#11663a}.bad{color:#a1171f}.quiet{color:#59636e;font-size:.9rem}"
    "@media(prefers-color-scheme:dark){body{background:#15181c;color:#e3e6ea}pre{background:#20252b}"
    "th,td{border-color:#343b43}.good{color:#6fd39b}.bad{color:#ff8d8d}.quiet{color:#9aa5b1}}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Nothing is loaded and nothing runs, whatever is in the text."""


def page(report: BundleReport) -> str:
    """What a check of the bundle found. Everything in it is hostile and escaped."""
    title = "verified" if report.ok else "not decided" if report.undecided else "not verified"
    parts = [
        f'<h1 class="{"good" if report.ok else "bad"}">{title}</h1><p>{_text(result(report))}</p>',
        _section("Why not", _table([], [[reason] for reason in report.reasons])) if report.reasons else "",
        _section("Question", _block(report.question)),
        _section("Answer", _block(report.answer)),
        _section("Check", _block(_json(report.spec.model_dump(mode="json")))) if report.spec is not None else "",
        _section("What it says, and what carries it", _statement(report)) if report.statement_now else "",
        _section("Not checked here", _pairs((one.what, one.why) for one in report.not_checked))
        if report.not_checked
        else "",
        _section("Facts", _pairs(facts(report))),
        _section("Evidence", _evidence(report.verdict_now or report.verdict_then)),
        _section("Made with (stated by the maker)", _pairs(lineage(report))) if report.made_with else "",
        _section("Transcript", _transcript(report)) if report.transcript else "",
        _section("Files", _table(["file", "", ""], [[f.name, f.state.value, f.detail] for f in report.files])),
        _section("Notes", _table([], [[note] for note in report.notes])) if report.notes else "",
    ]
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body>{''.join(parts)}"
        '<p class="quiet">This page shows a check and is none: run <code>assay verify</code> on the bundle itself.</p>'
        "</body></html>\n"
    )


def _statement(report: BundleReport) -> str:
    rows = [[one.now + (f" (it says: {one.then})" if one.differs else ""), one.part, one.by] for one in parts(report)]
    return _table(["assurance", "part", "by, or why not"], rows)


def _transcript(report: BundleReport) -> str:
    """Folded, because it is long and proves nothing."""
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


def _section(title: str, content: str) -> str:
    return f"<h2>{escape(title)}</h2>{content}"


def _block(text: str | None) -> str:
    return "<p>(not readable)</p>" if text is None else f"<pre>{_text(text)}</pre>"


def _text(text: str) -> str:
    return escape(printable(text, limit=SHOWN, lines=True))


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    return _table([], [list(row) for row in rows])


def _table(headings: list[str], rows: list[list[str]]) -> str:
    head = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in headings)}</tr>" if headings else ""
    cells = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{head}{cells}</table>"
