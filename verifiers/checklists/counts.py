"""Counts what a text has: words, sentences, paragraphs, lines and parts of its structure.

What says nothing new counts once: the same paragraph, item of a list, block of code, or sentence of four words or more;
a shorter one twice.
A line counts each time, as a refrain does, unless more than half of the lines repeat others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from verifiers.checklists.characters import plain, visible
from verifiers.checklists.document import Document, same_address
from verifiers.checklists.hollow import is_gap
from verifiers.checklists.markdown import PROSE, STRUCK_HTML
from verifiers.checklists.prose import sentences, word_count, words

SHORT_SENTENCE = 4
"""Words from which on a sentence is not said twice by chance: `Nobody knew.` may be."""
STRUCK = re.compile(r"~~(?=\S).*?~~")
NO_LINE = re.compile(r"\s*(?:```|~~~)|\s{0,3}\[(?!\^)[^\]]+\]:\s")
"""Fences, and where a link leads."""
SENTENCE_SIGNS = re.compile(r"[\s.,;:!?…'\"“”„«»()*_\u2010-\u2015-]+(?!\d)")
RUN = re.compile(r"(\D)\1{3,}")


def _sentences(document: Document) -> int:
    found = [words(plain(one)) for block in document.of(*PROSE) for one in sentences(block.text)]
    long = {tuple(one) for one in found if len(one) >= SHORT_SENTENCE}
    short = [tuple(one) for one in found if len(one) < SHORT_SENTENCE]
    return len(long) + min(len(short), 2 * len(set(short)))


def _lines(document: Document) -> int:
    raw = [visible(line) for line in document.raw.splitlines()]
    if document.data:
        return sum(bool(line.strip()) for line in raw)
    shown = [STRUCK.sub("", STRUCK_HTML.sub("", line)) for line in raw if not NO_LINE.match(line)]
    lines = [plain(line) for line in shown if words(line)]
    different = len(set(lines))
    return different if 2 * different < len(lines) else len(lines)


def _different(texts: Iterable[str]) -> int:
    return len({_said(text) for text in texts if words(text) and not is_gap(text)})


def _said(text: str) -> str:
    """Without the signs of a sentence."""
    return SENTENCE_SIGNS.sub(" ", plain(text)).strip()


def character_count(text: str) -> int:
    """White space single, and of one sign again and again no more than three."""
    return len(RUN.sub(r"\1\1\1", " ".join(text.split())))


COUNTED: Mapping[str, Callable[[Document], int]] = {
    "words": lambda document: word_count(document.prose),
    "sentences": _sentences,
    "paragraphs": lambda document: _different(block.text for block in document.of("paragraph")),
    "lines": _lines,
    "list_items": lambda document: _different(block.text for block in document.of("item")),
    "headings": lambda document: len({_said(block.text) for block in document.of("heading") if words(block.text)}),
    "tables": lambda document: sum(len(block.rows) > 1 for block in document.of("table")),
    "code_blocks": lambda document: len({block.text.strip() for block in document.of("code") if block.closed} - {""}),
    "links": lambda document: len(set(map(same_address, document.addresses))),
}
