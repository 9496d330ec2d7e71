"""Determines the source that a reader attributes a quotation to.

The key that follows immediately decides; otherwise keys before or after the quotation in its sentence, up to another
quotation; for a block quotation, a key within it; after a sentence that ends with a colon, the keys of that sentence
for the first words behind it; otherwise keys that are part of an earlier sentence in the block. A footnote counts as
the keys in it. Without a key, any source may contain the quotation.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from verifiers.checklists.document import Document
from verifiers.checklists.markdown import MarkdownBlock
from verifiers.checklists.words.brackets import Cited, cited_in, cited_within

NEAR = 200
"""Characters searched for the key of a sentence."""
MOST_PLACES = 50
"""Maximum citations of a block that are examined for a quotation whose sentence has no key."""
ENDS = re.compile(r"[.!?]\s|[。！？]|\n")
CLOSERS = ".!?。！？\"'”’»›」』“‘"
STOP = re.compile("[.!?。！？]")
GOES_ON = re.compile(r"\s+([^\W\d_])")
"""Matches a word behind a key; the word begins a sentence if one ends before the key."""
LEADS_IN = re.compile(r"[:：]\W*$")

Span = tuple[int, int]


class Attribution:
    """Attributes the quotations of one document to sources, block by block, in order."""

    def __init__(self, document: Document, known: Sequence[str]) -> None:
        self._known = known
        self._notes: dict[str, frozenset[str]] = {}
        openings = {key: re.compile(rf"\W*{re.escape(key)}(?!\w)") for key in known}
        for block in document.quotable_blocks:
            if block.kind == "note" and block.name not in openings and block.name not in self._notes:
                begins = [key for key, opening in openings.items() if opening.match(block.text)]
                cited = [key for place in cited_in(block.text, known) for key in self._of(place)]
                self._notes[block.name] = frozenset(begins[:1] or cited)
        self._lead: frozenset[str] = frozenset()
        self._before_block = ""

    def around(self, text: str, quoted: Sequence[Span], at: int) -> str:
        """Returns the sentence around quotation number `at`, without it. If the quotation fills its block, returns the
        sentence before the block."""
        start, end = quoted[at]
        before, behind = ENDS.split(text[max(0, start - NEAR) : start])[-1], ENDS.split(text[end : end + NEAR])[0]
        return f"{before} {behind}" if re.search(r"\w", before + behind) else self._before_block

    def go_on(self, block: MarkdownBlock) -> None:
        """Moves on to the block after `block`. If it ends by introducing a quotation (`As [A] says:`), the sources
        cited there are remembered for that; a block quotation of several paragraphs keeps them."""
        self._before_block = self._before_block if block.quoted else ENDS.split(block.text.strip())[-1]
        if LEADS_IN.search(block.text):
            sentence = re.split(ENDS, block.text)[-1]
            cited = cited_in(sentence, self._known)
            self._lead = frozenset(key for place in cited for key in self._of(place))
        elif not block.quoted:
            self._lead = frozenset()

    def keys_of(
        self, text: str, cited: Sequence[Cited], quoted: Sequence[Span], at: int, apart: bool
    ) -> frozenset[str]:
        """Returns the keys of the sources to which a text attributes its quotation number `at`. `apart`: the quotation
        is a block of its own."""
        start, end = quoted[at]
        within = [keys for place in cited_within(cited, start, end) if (keys := self._of(place))]
        if within:
            return within[-1]
        if apart:
            return self._lead
        behind = self._behind(text, cited, end + 1, quoted[at + 1][0] if at + 1 < len(quoted) else len(text))
        if behind and behind[1]:
            return behind[0]
        before = self._before(text, cited, start, quoted[at - 1][1] if at else -1)
        near = (before or frozenset()) | (behind[0] if behind else frozenset())
        return near or (self._lead if not at else near) or self._named_before(text, cited, quoted, start)

    def _named_before(self, text: str, cited: Sequence[Cited], quoted: Sequence[Span], start: int) -> frozenset[str]:
        """Returns the source keys that earlier sentences of a block name as part of a sentence (`Report [B] was
        printed`). Keys at the end of a sentence or right after a quotation belong to these."""
        places = cited_within(cited, 0, start)[-MOST_PLACES:]
        named = (place for place in places if re.match(r",?\s+\w", text[place.end : place.end + 4]))
        return frozenset[str]().union(
            *(self._of(place) for place in named if not _is_of_quotation(text, place, quoted))
        )

    def _of(self, place: Cited) -> frozenset[str]:
        keys = {key for key in place.keys if key in self._known}
        return frozenset(keys.union(*(self._notes.get(key, ()) for key in place.keys if key not in self._known)))

    def _behind(self, text: str, cited: Sequence[Cited], end: int, limit: int) -> tuple[frozenset[str], bool] | None:
        """Returns the source keys cited after a quotation in its sentence, and True if they follow immediately. None if
        there are none."""
        for place in cited_within(cited, end - 1, min(end + NEAR, limit)):
            between = text[end : place.start].lstrip(CLOSERS)
            closed = STOP.search(text, max(0, end - 2), place.start - len(between)) is not None
            goes_on = GOES_ON.match(text, place.end)
            if ENDS.search(between) or (closed and goes_on and goes_on[1].islower()):
                return None
            if keys := self._of(place):
                return keys, not re.search(r"[\w;]", between)
        return None

    def _before(self, text: str, cited: Sequence[Cited], start: int, earlier: int) -> frozenset[str] | None:
        """Returns the source keys cited before a quotation in its sentence. None if there are none, or they belong to
        an earlier quotation."""
        for place in reversed(cited_within(cited, max(0, start - NEAR), start)):
            if ENDS.search(text[place.end : start]):
                return None
            if earlier >= 0 and place.start >= earlier and not re.search(r"[\w;]", text[earlier : place.start]):
                return None
            if keys := self._of(place):
                return keys
        return None


def _is_of_quotation(text: str, place: Cited, quoted: Sequence[Span]) -> bool:
    """True if a citation follows right after one of the quotations, and so belongs to it."""
    at = bisect_right(quoted, place.start, key=lambda span: span[1]) - 1
    return at >= 0 and not re.search(r"[\w;]", text[quoted[at][1] : place.start])
