"""A bundle as a page for people: one HTML file with nothing outside of it, in which all text is only text. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from appliance.client.printable import printable
from appliance.jobs.check import BundleReport

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1c2026}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f4f5f7;padding:.8rem}"
    "table{border-collapse:collapse}td{padding:.2rem .8rem .2rem 0;vertical-align:top}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Nothing is loaded and nothing runs, whatever is in the text."""


def page(report: BundleReport) -> str:
    """What a check of the bundle found. Everything in it is hostile and escaped."""
    title = "verified" if report.ok else "not verified"
    then, now = report.verdict_then, report.verdict_now
    rows = [
        ("result", title),
        ("manifest", report.manifest or "none"),
        ("verdict then", f"{then.outcome.value}: {then.reason} ({then.verifier} {then.version})" if then else "none"),
        ("verdict now", f"{now.outcome.value}: {now.reason} ({now.verifier} {now.version})" if now else "none"),
        *(("why not", reason) for reason in report.reasons),
    ]
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<h2>Question</h2><pre>{_text(report.question)}</pre><h2>Answer</h2><pre>{_text(report.answer)}</pre>"
        f"<h2>Evidence</h2>{_table(rows)}<h2>Files</h2>"
        f"{_table((file.name, f'{file.state.value} {file.detail}') for file in report.files)}"
        "<p>This page shows a check and is none: run <code>assay verify</code> on the bundle itself.</p>"
        "</body></html>\n"
    )


def _text(text: str | None) -> str:
    return "(not readable)" if text is None else escape(printable(text, lines=True))


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><td>{_text(name)}</td><td>{_text(value)}</td></tr>" for name, value in rows)
    return f"<table>{cells}</table>"
