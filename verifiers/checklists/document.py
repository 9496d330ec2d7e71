"""A text as a reader sees it: headings, list items, tables, code, paragraphs, notes; and its faults.

The text is Markdown as markdown-it-py reads it: CommonMark, GitHub's tables and strikethrough, footnotes, and a few
inline tags without attributes, not nested in themselves. Everything else that a page does not show, or that could hide
something, is a fault with its place: another tag, an attribute, a comment, a link title, an empty link, words behind
the language of a code block, a definition or footnote that nothing visible cites, a cell beyond its table, an unclosed
tag, and every character that `verifiers.checklists.words.characters` forbids.

Comments, titles, definitions and cells beyond the table never become part of a block; text between tags does. Addresses
of links and images, alternative texts and footnote names are allowed and part of no block. Reading never fails.

Finding for one item.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from verifiers.checklists.markdown import (
    PROSE,
    BlockKind,
    MarkdownBlock,
    MarkdownReader,
    TextFault,
    marked,
    quotable,
    unmarked,
)
from verifiers.checklists.spec import HardItem
from verifiers.checklists.words.characters import plain
from verifiers.checklists.words.claims import without_claims
from verifiers.checklists.words.prose import repeated_words

SIGNS = re.compile(r"[*_~`\\\[\]]|-\s")
"""Markup that may split a word which a reader sees in one piece."""
NARROW = re.compile("[\u2006-\u200a\u202f\u205f\u2800]")
"""Spaces narrow enough to do the same, and the Braille blank."""


@dataclass(frozen=True)
class Document:
    raw: str
    claims: bool = True
    """True if sentences in which the text speaks about itself count."""
    data: bool = False
    """True for data such as JSON, which is one verbatim paragraph."""
    repeats: bool = False
    """True if repetition counts towards a required length."""

    @cached_property
    def _read(self) -> MarkdownReader:
        return MarkdownReader(self.raw, self.data)

    @property
    def faults(self) -> tuple[TextFault, ...]:
        """Places that make a text unreadable, such as hidden or forbidden content, sorted by position."""
        return tuple(sorted(set(self._read.faults), key=lambda fault: (fault.line, fault.column)))

    @cached_property
    def _counted(self) -> tuple[MarkdownBlock, ...]:
        if self.claims:
            return tuple(self._read.blocks)
        without = (
            replace(block, text=without_claims(block.text)) if block.kind in PROSE else block
            for block in self._read.blocks
        )
        return tuple(block for block in without if block.text or block.kind not in PROSE)

    @cached_property
    def blocks(self) -> tuple[MarkdownBlock, ...]:
        return tuple(block.shown_by(unmarked) for block in self._counted)

    @cached_property
    def repeated(self) -> list[str]:
        """Words that only repeat others, and fill no required length."""
        return [] if self.repeats or self.data else repeated_words(self.prose)

    @cached_property
    def marked_blocks(self) -> tuple[MarkdownBlock, ...]:
        """Blocks of the text, with `[^name]` for footnote references, and with superscripts and subscripts."""
        return tuple(block.shown_by(marked) for block in self._counted)

    @cached_property
    def quotable_blocks(self) -> tuple[MarkdownBlock, ...]:
        """Blocks as in `marked_blocks`, without inline code: text that may be cited and quoted."""
        return tuple(block.shown_by(quotable) for block in self._counted if block.kind != "code")

    def of(self, *kinds: BlockKind) -> tuple[MarkdownBlock, ...]:
        return tuple(block for block in self.blocks if block.kind in kinds)

    @cached_property
    def prose(self) -> str:
        """Text of headings, list items, paragraphs and notes, one per line."""
        return "\n".join(block.text for block in self.of("heading", *PROSE))

    @cached_property
    def shown(self) -> str:
        """Prose and table cells: everything a reader reads, except code."""
        return _joined(self.blocks)

    @cached_property
    def phrases(self) -> str:
        """Text as a reader sees it, normalised for finding phrases, with each block and cell in its own line."""
        return "\n".join(map(plain, self.shown.splitlines()))

    @cached_property
    def everything(self) -> str:
        """Text as a reader sees it, and code."""
        return "\n".join([self.shown, *(block.text for block in self.of("code"))])

    @property
    def addresses(self) -> tuple[str, ...]:
        """Web addresses outside code, as written, without trailing punctuation."""
        return tuple(address.rstrip(".,;:!?*_") for address in self._read.addresses if address)

    @property
    def web_addresses(self) -> tuple[str, ...]:
        """Web addresses of the text without page-internal, mail and telephone links, plus bare hosts with a path."""
        links = tuple(one for one in self.addresses if not re.match(r"#|(?:mailto|tel):", one, re.IGNORECASE))
        return links + tuple(site.rstrip(".,;:!?*_") for site in self._read.sites)

    @property
    def notes(self) -> frozenset[str]:
        """Names of all footnotes in the text."""
        return frozenset(self._read.notes)

    @property
    def is_marked_up(self) -> bool:
        """True if the text has any Markdown besides paragraphs."""
        return self._read.marked or any(block.kind != "paragraph" or block.quoted for block in self._read.blocks)


def same_address(url: str) -> str:
    """Normalises a web address for comparison; a page-internal one stays as it is."""
    page = url if url.startswith("#") else url.partition("#")[0]
    return re.sub(r"^https?://(?:www\.)?|^www\.", "", page.strip(), flags=re.IGNORECASE).rstrip("/")


def _joined(blocks: Iterable[MarkdownBlock]) -> str:
    texts = (block for block in blocks if block.kind != "code")
    return "\n".join("\n".join(" | ".join(row) for row in block.rows) or block.text for block in texts)


MAX_LISTED = 10
"""Maximum number of problems shown in evidence."""


@dataclass(frozen=True)
class ItemFinding:
    name: str
    grade: float
    """Grade from 0 to 1; 1 exactly if the item holds."""
    reason: str
    """One sentence; quoted text is escaped."""
    evidence: dict[str, Any]

    @property
    def holds(self) -> bool:
        return self.grade == 1.0

    def shown(self) -> dict[str, Any]:
        content = {"name": self.name, "holds": self.holds, "grade": round(self.grade, 6), "reason": self.reason}
        return {**content, **({"evidence": self.evidence} if self.evidence else {})}


def finding(item: HardItem, holds: bool, reason: str, *, half: bool = False, **evidence: Any) -> ItemFinding:
    """Builds the finding about one checklist item: grade 1 if it is met, else 0. With `half`, an item that is not met
    gets 0.5: at least half is present."""
    return ItemFinding(item.name, 1.0 if holds else 0.5 if half else 0.0, reason, evidence)


def listed(wrong: list[str]) -> str:
    """Joins descriptions of problems by semicolons; beyond a limit only their number is given."""
    return "; ".join(wrong[:MAX_LISTED]) + (f"; and {len(wrong) - MAX_LISTED} more" if len(wrong) > MAX_LISTED else "")
