"""Runs in a world's sandbox: a mailbox in SQLite's full-text index, which is searched and read.

What always holds: keywords are words and never the index's own language, an answer is bounded, and no call changes
anything.
"""

from __future__ import annotations

import json
import re
import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from curriculum.worlds.guest import ToolError  # defined in the sandbox before this runs

MOST_WORDS, MOST_FOUND, FOUND, SNIPPET, PART = 12, 20, 10, 12, 3_600
DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


def loaded() -> sqlite3.Connection:
    index = sqlite3.connect(":memory:")
    index.execute(
        "CREATE VIRTUAL TABLE mail USING fts5(subject, body, sender, recipient, day UNINDEXED, tokenize='unicode61')"
    )
    with open("mails.jsonl", encoding="utf-8") as file:  # noqa: PTH123 - in a sandbox's own folder
        rows = [json.loads(line) for line in file]
    index.executemany(
        "INSERT INTO mail(rowid, day, sender, recipient, subject, body) VALUES (?, ?, ?, ?, ?, ?)",
        [(number, *row) for number, row in enumerate(rows, 1)],
    )
    index.commit()
    return index


INDEX = loaded()


def call(tool: str, arguments: dict[str, Any]) -> str:
    return search(**arguments) if tool == "search_inbox" else read(**arguments)


def search(
    keywords: str = "", sender: str = "", recipient: str = "", after: str = "", before: str = "", limit: int = FOUND
) -> str:
    wanted = [words("{subject body} : ", keywords), words("sender : ", sender), words("recipient : ", recipient)]
    match = " AND ".join(one for one in wanted if one)
    if not match:
        raise ToolError("say at least one word in keywords, sender or recipient")
    for name, day in (("after", after), ("before", before)):
        if day and not DAY.match(day):
            raise ToolError(f"`{name}` is a date such as 2025-03-14")
    rows = INDEX.execute(
        "SELECT rowid, day, sender, recipient, subject, snippet(mail, 1, '', '', '...', ?) FROM mail WHERE mail MATCH ?"
        " AND day >= ? AND day <= ? ORDER BY rank, rowid LIMIT ?",
        (SNIPPET, match, after or "0", before or "9", MOST_FOUND + 1),
    ).fetchall()
    if not rows:
        return "no message matches all of these words"
    shown = [
        f"{number}. {day} from {who} to {whom}: {subject} | {' '.join(text.split())}"
        for number, day, who, whom, subject, text in rows[: min(limit, MOST_FOUND)]
    ]
    more = "\nmore messages match: say more words" if len(rows) > len(shown) else ""
    return "\n".join(shown) + more


def read(number: int, part: int = 1) -> str:
    row = INDEX.execute("SELECT day, sender, recipient, subject, body FROM mail WHERE rowid = ?", (number,)).fetchone()
    if row is None:
        raise ToolError(f"there is no message {number}")
    day, who, whom, subject, body = row
    parts = split(body)
    if not 1 <= part <= len(parts):
        raise ToolError(f"message {number} has parts 1 to {len(parts)}")
    head = f"message {number}, part {part} of {len(parts)}\ndate: {day}\nfrom: {who}\nto: {whom}\nsubject: {subject}"
    return f"{head}\n\n{parts[part - 1]}"


def split(text: str) -> list[str]:
    """Parts of whole lines."""
    parts = [""]
    for line in text.split("\n"):
        if parts[-1] and len(parts[-1]) + len(line) >= PART:
            parts.append("")
        parts[-1] += line + "\n"
    return [part.strip("\n") for part in parts]


def words(column: str, text: str) -> str:
    """A condition of the index that all of these words stand there."""
    found = re.findall(r"\w+", text)
    if len(found) > MOST_WORDS:
        raise ToolError(f"say at most {MOST_WORDS} words")
    return " AND ".join(f'{column}"{word}"' for word in found)
