"""The program of a world of research: finds and shows the pages of corpus.json. It runs in the guest.

What always holds: a page of the blocklist, or one that holds a phrase of it, is forgotten before the index is made; no
answer names it, and links to it are cut out of the pages that are left. Nothing is changed by a call.
"""

import json
import re
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    SETUP: dict[str, Any] = {}
    ToolError = Exception

PART = 3_600
RESULTS = 8
WORDS = 32
LINK = re.compile(r"\[([^\]\n]*)\]\((p\d+)\)")


def normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", LINK.sub(r"\1", text).casefold()))


def holds(text: str, phrases: "dict[str, str]") -> bool:
    """Whether one of them is in the text; its longest word is looked for first, which is cheap."""
    bare = LINK.sub(r"\1", text).casefold()
    return any(word in bare and phrase in normal(text) for phrase, word in phrases.items())


def load() -> "tuple[dict[str, tuple[str, str]], sqlite3.Connection]":
    blocked = set(SETUP["blocked"])
    phrases = {one: max(one.split(), key=len) for one in map(normal, SETUP["phrases"]) if one}
    every = json.loads(Path("corpus.json").read_text(encoding="utf-8"))
    kept = {
        page: (title, text)
        for page, title, text in every
        if page not in blocked and not holds(f"{title} {text}", phrases)
    }
    index = sqlite3.connect(":memory:")
    index.execute("CREATE VIRTUAL TABLE pages USING fts5(id UNINDEXED, title, text, tokenize = 'porter unicode61')")
    for page, (title, text) in list(kept.items()):
        shown = LINK.sub(lambda found: found.group() if found[2] in kept else "[...]", text)
        kept[page] = (title, shown)
        index.execute("INSERT INTO pages VALUES (?, ?, ?)", (page, title, LINK.sub(r"\1", shown)))
    return kept, index


PAGES, INDEX = load()


def search(query: str) -> str:
    words = re.findall(r"\w+", query)[:WORDS]
    if not words:
        raise ToolError("the query has no words")
    found = INDEX.execute(
        "SELECT id, title, snippet(pages, 2, '', '', ' ... ', 24) FROM pages WHERE pages MATCH ?"
        " ORDER BY bm25(pages, 0, 3, 1), id LIMIT ?",
        (" OR ".join(f'"{word}"' for word in words), RESULTS),
    ).fetchall()
    lines = [f"{page} | {title} | {' '.join(snippet.split())}" for page, title, snippet in found]
    return "\n".join(lines) or "No page has any of these words."


def read_page(page: str, part: int) -> str:
    if page not in PAGES:
        raise ToolError(f"there is no page {page[:20]!r}; search gives the ids of pages, such as p0042")
    title, text = PAGES[page]
    parts = split(text)
    if not 1 <= part <= len(parts):
        raise ToolError(f"page {page} has parts 1 to {len(parts)}")
    shown = parts[part - 1]
    links = dict.fromkeys(found[2] for found in LINK.finditer(shown))
    lines = [f"{title} ({page}), part {part} of {len(parts)}", "", shown]
    if links:
        lines += ["", "Links:", *(f"{one} | {PAGES[one][0]}" for one in links)]
    return "\n".join(lines)


def split(text: str) -> "list[str]":
    """Parts of whole lines; a line that is longer than a part is cut."""
    parts = [""]
    for line in text.splitlines():
        for piece in [line[at : at + PART] for at in range(0, len(line), PART)] or [""]:
            if len(parts[-1]) + len(piece) >= PART:
                parts.append("")
            parts[-1] += piece + "\n"
    return [part.strip("\n") for part in parts if part.strip()] or [""]


def call(tool: str, arguments: "dict[str, Any]") -> str:
    if tool == "search":
        return search(arguments["query"])
    return read_page(arguments["page"], arguments.get("part", 1))
