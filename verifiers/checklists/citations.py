"""Checks that cited keys, quotations and web addresses exist in the sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from verifiers.checklists.document import Document, ItemFinding, finding, listed, same_address
from verifiers.checklists.quotations import Passage, is_verbatim, passages, same_text
from verifiers.checklists.spec import CitationsItem, CitedSource
from verifiers.checklists.words.brackets import cited_within, shape
from verifiers.checklists.words.prose import words
from verifiers.contract.text import escaped

RUN = 4
"""Consecutive words that make a quotation part of another."""
EDITORS = re.compile(r"[^\W\d_]{2,}")
"""Word in square brackets within a quotation: `[Her] brother`."""


def citations(item: CitationsItem, document: Document, sources: Sequence[CitedSource]) -> ItemFinding:
    """Checks that every cited key, quotation and address of a text exists in its sources, and that enough are cited."""
    known = [source.key for source in sources]
    found = list(passages(document, known))
    own = document.notes | _own_notes(document)
    cited = list(dict.fromkeys(key for passage in found for key in _keys(passage, known)))
    wrong = [f"unknown source [{escaped(key)}]" for key in cited if key not in known and key not in own]
    real = list(dict.fromkeys([*(key for key in cited if key in known), *_cited_otherwise(document, sources)]))
    if len(real) < item.least:
        wrong.append(f"{len(real)} of at least {item.least} sources cited")
    if item.most is not None and len(real) > item.most:
        wrong.append(f"{len(real)} sources cited, at most {item.most} allowed")
    texts = {source.key: same_text(source.text) for source in sources}
    quoted = [one for passage in found for one in passage.quotations if one.of(item.quoted_words)]
    true_ones: list[str] = []
    for one in quoted:
        within = [texts[key] for key in one.keys] or list(texts.values())
        true = next(
            (text for text in reversed(one.of(item.quoted_words)) if is_verbatim(text, within, one.denied)), None
        )
        if true is None:
            wrong.append(f"not in the source word for word: {escaped(one.text)}")
        else:
            true_ones.append(same_text(true).casefold())
    different = _different(true_ones)
    if different < item.least_quotations:
        wrong.append(f"{different} different quotations of at least {item.least_quotations}")
    if item.addresses:
        given = {same_address(source.url) for source in sources if source.url}
        hosts = {address.partition("/")[0] for address in given}
        strange = [
            one
            for one in dict.fromkeys(document.web_addresses)
            if not {same_address(one)} & (given if "/" in same_address(one) else given | hosts)
        ]
        wrong += [f"no source has the address {escaped(address)}" for address in strange]
    shown = [escaped(key) for key in real[:50]]
    return finding(item, not wrong, listed(wrong) or "all citations exist", cited=shown, quotations=different)


def _keys(passage: Passage, known: Sequence[str]) -> Iterator[str]:
    """Yields the source keys that a passage cites. A bracket inside a quotation counts only if it looks like a key;
    else an editor inserted it."""
    shapes = {shape(key) for key in known} | {"9", "name year"}
    within = {id(place) for one in passage.quotations for place in cited_within(passage.cited, one.start, one.end)}
    for place in passage.cited:
        quoted = id(place) in within
        yield from (key for key in place.keys if not quoted or key in known or _looks_cited(key, shapes))


def _looks_cited(key: str, shapes: set[str]) -> bool:
    return shape(key) in shapes and EDITORS.fullmatch(key) is None


def _different(texts: list[str]) -> int:
    """Counts different quotations. One that is part of another, or shares `RUN` words in a row with it, is left out."""
    seen: set[tuple[str, ...]] = set()
    longer: list[str] = []
    for text in sorted(dict.fromkeys(text.strip(" .,;:\"'") for text in texts), key=len, reverse=True):
        found = words(text)
        runs = set(zip(*(found[at:] for at in range(RUN)), strict=False))
        if seen.isdisjoint(runs) and (runs or not any(text in other for other in longer)):
            longer.append(text)
        seen |= runs
    return len(longer)


def _own_notes(document: Document) -> frozenset[str]:
    """Returns the numbers of notes written by hand, which are paragraphs that begin with a raised number."""
    begun = (re.match("[⁰¹²³⁴-⁹]+", block.text) for block in document.quotable_blocks)
    normal = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
    return frozenset(found.group().translate(normal) for found in begun if found)


def _cited_otherwise(document: Document, sources: Sequence[CitedSource]) -> Iterator[str]:
    """Yields the keys of sources cited without brackets: by key at the start of a footnote, or by web address."""
    addresses = {same_address(address) for address in document.addresses}
    for source in sources:
        opening = re.compile(rf"(?:see|cf\.|source:|from|in)?\s*{re.escape(source.key)}(?!\w)", re.IGNORECASE)
        noted = any(opening.match(block.text) for block in document.quotable_blocks if block.kind == "note")
        if noted or (source.url and same_address(source.url) in addresses):
            yield source.key
