"""Self-contained HTML files: no script, nothing loaded, and all foreign text escaped. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from appliance.text.printable import printable

LONG_WORD = 32
"""Characters beyond which a word in a table may be broken."""
SHOWN = 200_000
"""Maximum characters of one text; the bundle itself has the rest."""
_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.55 system-ui,sans-serif;max-width:54rem;margin:2rem auto;padding:0 1rem;color:#1c2026;"
    "background:#fff}"
    "h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f2f4f6;padding:.8rem;border-radius:.3rem;"
    "font-size:.9rem;max-height:40rem;overflow:auto}"
    "h1,p{overflow-wrap:break-word}"
    "table{border-collapse:collapse;width:100%}th,td{padding:.3rem .8rem .3rem 0;vertical-align:top;text-align:left;"
    "border-bottom:1px solid #d9dde2}td:first-child{min-width:8.5rem}th{font-weight:600}"
    ".long{overflow-wrap:anywhere;min-width:8.5rem}"
    ".good{color:#11663a}.bad{color:#a1171f}.quiet{color:#59636e;font-size:.9rem}"
    "@media(prefers-color-scheme:dark){body{background:#15181c;color:#e3e6ea}pre{background:#20252b}"
    "th,td{border-color:#343b43}.good{color:#6fd39b}.bad{color:#ff8d8d}.quiet{color:#9aa5b1}}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Content security policy: nothing is loaded and nothing runs, regardless of the text."""


def document(title: str, body: str, note: str) -> str:
    """Builds a whole HTML file. `title` is text; `body` and `note` are trusted HTML."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
        f"<title>{shown_text(title)}</title><style>{_STYLE}</style></head><body>{body}"
        f'<p class="quiet">{note}</p></body></html>\n'
    )


def section(title: str, content: str) -> str:
    """Returns an HTML heading with its content; `content` is trusted HTML."""
    return f"<h2>{escape(title)}</h2>{content}"


def shown_text(text: str) -> str:
    """Escapes any text for HTML; control characters become visible and a long text is cut."""
    return escape(printable(text, limit=SHOWN, lines=True))


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns an HTML table with these headings and rows; cells are escaped."""
    head = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in headings)}</tr>" if headings else ""
    cells = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table>{head}{cells}</table>"


def _cell(text: str) -> str:
    """Returns a table cell. Only one with a word that no page has room for, such as a digest, may break inside it."""
    kind = ' class="long"' if any(len(word) > LONG_WORD for word in text.split()) else ""
    return f"<td{kind}>{shown_text(text)}</td>"
