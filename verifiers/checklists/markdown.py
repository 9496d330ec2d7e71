"""A text as blocks: headings, list items, tables, code, paragraphs. Every string is some document; reading never fails.

It reads the Markdown that answers are written in (CommonMark's blocks and the tables of GitHub), line by line and in
time linear in the text. What a reader does not see is no part of a block: comments, tags, addresses of links and
images.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from verifiers.checklists.claims import without_claims
from verifiers.checklists.disguise import visible

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
ITEM = re.compile(r"[ \t]*(?:[-*+\u2022]|\d{1,9}[.)])[ \t]+(?=\S)")
RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
IMAGE = re.compile(r"!\[[^\[\]]*\]\([^()\s]*\)")
LINK = re.compile(r"\[([^\[\]]*)\]\(([^()\s]*)(?:[ \t]+\"[^\"]*\")?\)")
ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>\"'\u201d)\]}]+", re.IGNORECASE)
TAG = re.compile(r"</?[A-Za-z][^<>]{0,2000}>")
DEFINITION = re.compile(r" {0,3}\[([^\[\]]{1,200})\]:[ \t]*(\S+)[ \t]*(.*)$")
"""`[key]: address (title)`: of no use to a reader; with a title nothing but a comment."""
SIGNS = re.compile(r"[*_~`\\]|-\n")
EMPHASIS = re.compile(r"(?<!\w)[*_~]{1,3}(?=\S)|(?<=\S)[*_~]{1,3}(?!\w)")

PROSE = ("item", "paragraph")
Kind = Literal["heading", "item", "table", "code", "paragraph"]


@dataclass(frozen=True)
class Block:
    kind: Kind
    text: str
    """As a reader sees it; of code the source, of a table nothing."""
    level: int = 0
    language: str = ""
    closed: bool = True
    """Of code: whether its fence is closed."""
    rows: tuple[tuple[str, ...], ...] = ()
    """Of a table: its header and its rows."""
    quoted: bool = False
    """Of a paragraph: whether it is a quotation set apart with `>`."""


@dataclass(frozen=True)
class Document:
    raw: str
    claims: bool = True
    """Whether sentences count in which the text speaks of itself."""

    @cached_property
    def uncommented(self) -> str:
        return without_comments(self.raw)[0]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        found = _blocks(visible(self.uncommented).splitlines())
        if self.claims:
            return tuple(found)
        told = (replace(block, text=without_claims(block.text)) if block.kind in PROSE else block for block in found)
        return tuple(block for block in told if block.text or block.kind not in PROSE)

    def of(self, kind: Kind) -> tuple[Block, ...]:
        return tuple(block for block in self.blocks if block.kind == kind)

    @cached_property
    def prose(self) -> str:
        """Headings, list items and paragraphs, one a line."""
        return "\n".join(block.text for block in self.blocks if block.kind in ("heading", "item", "paragraph"))

    @cached_property
    def shown(self) -> str:
        """The prose and the cells of tables: all that a reader reads, apart from code."""
        return "\n".join("\n".join(" | ".join(row) for row in block.rows) or block.text for block in self._reading)

    @cached_property
    def without_signs(self) -> str:
        """All of it, code too, without whatever a page does not show: for finding words that signs cut into pieces."""
        seen = LINK.sub(r"\1", IMAGE.sub("", html.unescape(TAG.sub("", self.uncommented))))
        return SIGNS.sub("", TAG.sub("", seen))

    @property
    def outside_code(self) -> str:
        return "\n".join(_outside_code(self.raw))

    @property
    def _reading(self) -> tuple[Block, ...]:
        return tuple(block for block in self.blocks if block.kind != "code")

    @cached_property
    def addresses(self) -> tuple[str, ...]:
        """Web addresses outside code, as written, without the full stop of a sentence."""
        outside = "\n".join(_outside_code(self.uncommented))
        found = [*(match[2] for match in LINK.finditer(outside)), *ADDRESS.findall(LINK.sub(" ", outside))]
        return tuple(address.rstrip(".,;:!?*_") for address in found if address)


def without_comments(text: str) -> tuple[str, list[str]]:
    """The text without HTML comments outside code, and what they said. One that is not closed hides the rest."""
    code = _code_spans(text)
    kept, said, at = [], [], 0
    while (start := text.find("<!--", at)) >= 0:
        inside = next((end for begin, end in code if begin <= start < end), None)
        if inside is not None:
            kept.append(text[at:inside])
            at = inside
            continue
        kept.append(text[at:start])
        end = text.find("-->", start + 4)
        said.append(text[start + 4 : end if end >= 0 else len(text)])
        at = end + 3 if end >= 0 else len(text)
    return "".join([*kept, text[at:]]), said


def inline(text: str) -> str:
    """A line as a reader sees it: links by their text, no images, tags, addresses or marks of emphasis."""
    seen = LINK.sub(r"\1", IMAGE.sub("", text))
    seen = ADDRESS.sub("", html.unescape(TAG.sub("", seen))).replace("`", "")
    return visible(EMPHASIS.sub("", seen)).strip()


def _code_spans(text: str) -> list[tuple[int, int]]:
    """Where fenced code and code in a line lie: from and to, ascending."""
    spans, at, begin, fence = [], 0, 0, ""
    for line in text.splitlines(keepends=True):
        match = FENCE.match(line.rstrip("\r\n"))
        if not fence and match:
            begin, fence = at, match[1]
        elif fence and _closes(line, fence):
            spans.append((begin, at + len(line)))
            fence = ""
        elif not fence and "`" in line:
            spans += [(at + found.start(), at + found.end()) for found in re.finditer(r"`[^`\n]+`", line)]
        at += len(line)
    return [*spans, (begin, at)] if fence else spans


def _outside_code(text: str) -> list[str]:
    lines, fence = [], ""
    for line in text.splitlines():
        match = FENCE.match(line)
        if not fence and match:
            fence = match[1]
        elif fence:
            fence = "" if _closes(line, fence) else fence
        else:
            lines.append(line)
    return lines


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(fence) and mark == fence[0] * len(mark)


def _cells(line: str) -> tuple[str, ...]:
    inside = line.strip().removeprefix("|").removesuffix("|").replace("\\|", "\x00")
    return tuple(inline(cell).replace("\x00", "|") for cell in inside.split("|"))


def _is_delimiter(line: str) -> bool:
    if "|" not in line or "-" not in line:
        return False
    return all(re.fullmatch(r":?-+:?", cell) for cell in _cells(line))


def _blocks(lines: list[str]) -> list[Block]:
    blocks: list[Block] = []
    gathered: list[str] = []
    quoted = False

    def close() -> None:
        if not gathered:
            return
        text = inline(" ".join(gathered))
        if text:
            blocks.append(Block("paragraph", text, quoted=quoted))
        gathered.clear()

    at = 0
    while at < len(lines):
        line = lines[at].removeprefix(">")
        if quoted != (line != lines[at]):
            close()
            quoted = not quoted
        at += 1
        if not line:
            close()
        elif fence := FENCE.match(line):
            close()
            start = at
            while at < len(lines) and not _closes(lines[at], fence[1]):
                at += 1
            closed = at < len(lines)
            blocks.append(Block("code", "\n".join(lines[start:at]), language=fence[2].lower(), closed=closed))
            at += 1
        elif heading := HEADING.match(line):
            close()
            title = (heading[2] or "").rstrip().rstrip("#").rstrip()
            blocks.append(Block("heading", inline(title), level=len(heading[1])))
        elif "|" in line and at < len(lines) and _is_delimiter(lines[at]):
            close()
            rows = [_cells(line)]
            at += 1
            while at < len(lines) and "|" in lines[at] and lines[at].strip():
                rows.append(_cells(lines[at]))
                at += 1
            blocks.append(Block("table", "", rows=tuple(rows)))
        elif len(gathered) == 1 and UNDERLINE.match(line) and line.strip():
            title = inline(gathered.pop())
            blocks.append(Block("heading", title, level=1 if "=" in line else 2))
        elif not line.strip() or RULE.match(line) or (not gathered and DEFINITION.match(line)):
            close()
        elif ITEM.match(line):
            close()
            text = [ITEM.sub("", line, count=1)]
            while at < len(lines) and lines[at][:2] in ("  ", "\t") and lines[at].strip() and not ITEM.match(lines[at]):
                text.append(lines[at].strip())
                at += 1
            blocks.append(Block("item", inline(" ".join(text))))
        else:
            gathered.append(line.strip())
    close()
    return blocks
