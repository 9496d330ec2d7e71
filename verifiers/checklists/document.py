"""A text as a reader sees it: headings, list items, tables, code, paragraphs, notes; and where it cannot be read.

The text is Markdown as markdown-it-py reads it: CommonMark, the tables and the struck text of GitHub, footnotes. Beside
that it may have a short list of inline tags without attributes, none inside itself. Everything else that a page does
not show, or that could hide something, is a fault with its place: another tag, an attribute, a comment, the title of a
link, a link that shows nothing, words behind the language of a code block, a definition or a footnote that nothing
shown cites, a cell beyond its table, a tag that its block does not close;
and every character that `verifiers.checklists.words.characters` does not allow. Whatever the fault: comments, titles,
definitions and cells beyond the table are part of no block; the text between tags is.

Addresses of links and images, what stands for an image, and the name by which a footnote is cited, are allowed and part
of no block. Reading never fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

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
from verifiers.checklists.words.characters import plain
from verifiers.checklists.words.claims import without_claims

SIGNS = re.compile(r"[*_~`\\\[\]]|-\s")
"""What may cut a word that a reader sees in one piece."""
NARROW = re.compile("[\u2006-\u200a\u202f\u205f\u2800]")
"""Spaces so narrow that they may do so, too, and the blank of Braille."""


@dataclass(frozen=True)
class Document:
    raw: str
    claims: bool = True
    """Whether sentences count in which the text speaks of itself."""
    data: bool = False
    """Whether it is data, such as JSON: then it is one paragraph, as it is written."""

    @cached_property
    def _read(self) -> MarkdownReader:
        return MarkdownReader(self.raw, self.data)

    @property
    def faults(self) -> tuple[TextFault, ...]:
        """In order of their lines."""
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
    def marked_blocks(self) -> tuple[MarkdownBlock, ...]:
        """The blocks, with `[^name]` where a footnote is cited, and superscripts and subscripts as such."""
        return tuple(block.shown_by(marked) for block in self._counted)

    @cached_property
    def quotable_blocks(self) -> tuple[MarkdownBlock, ...]:
        """As `marked_blocks`, without code within sentences: what may be cited and quoted."""
        return tuple(block.shown_by(quotable) for block in self._counted if block.kind != "code")

    def of(self, *kinds: BlockKind) -> tuple[MarkdownBlock, ...]:
        return tuple(block for block in self.blocks if block.kind in kinds)

    @cached_property
    def prose(self) -> str:
        """Headings, list items, paragraphs and notes, one a line."""
        return "\n".join(block.text for block in self.of("heading", *PROSE))

    @cached_property
    def shown(self) -> str:
        """The prose and the cells of tables: all that a reader reads, apart from code."""
        return _joined(self.blocks)

    @cached_property
    def phrases(self) -> str:
        """What is shown, `plain`, in which no phrase goes on from one block or cell to the next."""
        return "\n".join(map(plain, self.shown.splitlines()))

    @cached_property
    def everything(self) -> str:
        """What is shown, and code."""
        return "\n".join([self.shown, *(block.text for block in self.of("code"))])

    @property
    def addresses(self) -> tuple[str, ...]:
        """Web addresses outside code, as written, without the full stop of a sentence."""
        return tuple(address.rstrip(".,;:!?*_") for address in self._read.addresses if address)

    @property
    def web_addresses(self) -> tuple[str, ...]:
        """Those, without what leads to a place within the page or to mail, and with those that are only a host and a
        path."""
        links = tuple(one for one in self.addresses if not re.match(r"#|(?:mailto|tel):", one, re.IGNORECASE))
        return links + tuple(site.rstrip(".,;:!?*_") for site in self._read.sites)

    @property
    def notes(self) -> frozenset[str]:
        """The names of its footnotes."""
        return frozenset(self._read.notes)

    @property
    def is_marked_up(self) -> bool:
        """Whether it has anything of Markdown but paragraphs of text."""
        return self._read.marked or any(block.kind != "paragraph" or block.quoted for block in self._read.blocks)


def same_address(url: str) -> str:
    """A web address without what makes no other page of it; one within the page as it is."""
    page = url if url.startswith("#") else url.partition("#")[0]
    return re.sub(r"^https?://(?:www\.)?|^www\.", "", page.strip(), flags=re.IGNORECASE).rstrip("/")


def _joined(blocks: Iterable[MarkdownBlock]) -> str:
    texts = (block for block in blocks if block.kind != "code")
    return "\n".join("\n".join(" | ".join(row) for row in block.rows) or block.text for block in texts)
