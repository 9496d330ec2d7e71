"""What a text cites: keys in brackets, quotations, web addresses; and whether the sources have them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from verifiers.checklists.characters import visible
from verifiers.checklists.document import PROSE, Document
from verifiers.checklists.finding import ItemFinding, finding, listed
from verifiers.checklists.prose import words
from verifiers.checklists.spec import CitationsItem, CitedSource
from verifiers.contract.text import escaped

BRACKETS = re.compile(r"\[([^\[\]\n]{1,200})\](?!\()")
QUOTATION = re.compile(
    "(?:\u201c([^\u201c\u201d]{1,20000})\u201d|\u201e([^\u201c\u201d\u201e]{1,20000})[\u201c\u201d]"
    '|\u00ab([^\u00ab\u00bb]{1,20000})\u00bb|"([^"]{1,20000})"'
    "|(?<!\\w)['\u2018](?![\\d\\s])([^\u2018]{1,600}?)(?<!\\s)['\u2019](?!\\w))"
    '(?:[^.!?\\[\\]\u201c\u201d"]{0,200}\\[([^\\[\\]\n]{1,200})\\])?'
)
NO_KEYS = frozenset({"", "x", "X", "...", "\u2026", "sic"})


def keys(text: str, known: Sequence[str]) -> list[str]:
    """Keys in square brackets, several in one bracket apart; tick boxes, omissions and `[sic]` are none."""
    found = []
    for match in BRACKETS.finditer(text):
        inside = match[1].removeprefix("^").strip()
        parts = [inside] if inside in known else [part.strip() for part in re.split(r"[,;]", inside)]
        for part in parts:
            numbers = re.fullmatch(r"(\d{1,3})\s*[-\u2013]\s*(\d{1,3})", part)
            if numbers and int(numbers[1]) <= int(numbers[2]) and part not in known:
                found += [str(number) for number in range(int(numbers[1]), int(numbers[2]) + 1)]
            elif part not in NO_KEYS or part in known:
                found.append(part)
    return found


def quotations(document: Document, least_words: int) -> list[tuple[str, str]]:
    """Quotations of at least so many words, each with the key that follows it in its sentence, or ``."""
    found = []
    for block in document.cited_blocks:
        if block.kind not in PROSE:
            continue
        if block.quoted:
            key = BRACKETS.search(block.text)
            found.append((BRACKETS.sub("", block.text), key[1] if key else ""))
        else:
            found += [
                (next(part for part in match.groups()[:5] if part), match[6] or "")
                for match in QUOTATION.finditer(block.text)
            ]
    return [(text, key) for text, key in found if len(words(text)) >= least_words]


def same_text(text: str) -> str:
    """For comparing word for word: one sort of quotation mark and dash, white space single, case kept."""
    normal = unicodedata.normalize("NFKC", visible(text))
    normal = re.sub("[\u201c\u201d\u201e\u00ab\u00bb]", '"', normal)
    normal = re.sub("[\u2018\u2019]", "'", normal)
    return " ".join(re.sub("[\u2010-\u2015\u2212]", "-", normal).split())


def is_verbatim(quotation: str, sources: Sequence[str]) -> bool:
    """Whether one of the sources (made `same_text`) has it. Parts left out (`...`) must be marked and in order."""
    parts = [part.strip(" ,.;:\"'") for part in re.split(r"\[?(?:\.\.\.|\u2026)\]?", same_text(quotation))]
    parts = [part for part in parts if part]
    if not parts or any(len(words(part)) < 2 for part in parts[1:]):
        return False
    for source in sources:
        at = 0
        for part in parts:
            match = re.compile(_loosely(part)).search(source, at)
            if match is None:
                break
            at = match.end()
        else:
            return True
    return False


def _loosely(part: str) -> str:
    """The words themselves; only the case of the first letter may differ, as a sentence around it asks."""
    first = re.escape(part[0])
    if part[0].isalpha() and len(part[0].upper()) == 1:
        first = f"[{part[0].lower()}{part[0].upper()}]"
    return rf"(?<!\w){first}{re.escape(part[1:])}(?!\w)"


def citations(item: CitationsItem, document: Document, sources: Sequence[CitedSource]) -> ItemFinding:
    """Whether every key, quotation and address in the text is that of a source, and enough are cited."""
    known = [source.key for source in sources]
    cited = keys(document.cited, known)
    different = list(dict.fromkeys(cited))
    wrong = [f"no source is called [{escaped(key)}]" for key in different if key not in {*known, *document.notes}]
    real = [key for key in different if key in known]
    if len(real) < item.least:
        wrong.append(f"{len(real)} of at least {item.least} sources cited")
    if item.most is not None and len(real) > item.most:
        wrong.append(f"{len(real)} sources cited, at most {item.most} may be")
    texts = {source.key: same_text(source.text) for source in sources}
    quoted = quotations(document, item.quoted_words)
    for text, key in quoted:
        within = [texts[key]] if key in texts else list(texts.values())
        if not is_verbatim(text, within):
            wrong.append(f"not in the source word for word: {escaped(text)}")
    others = len({same_text(text).casefold() for text, _ in quoted})
    if others < item.least_quotations:
        wrong.append(f"{others} different ones of at least {item.least_quotations} quotations")
    if item.addresses:
        given = {_address(source.url) for source in sources if source.url}
        strange = [address for address in dict.fromkeys(document.addresses) if _address(address) not in given]
        wrong += [f"no source has the address {escaped(address)}" for address in strange]
    cited = [escaped(key) for key in real[:50]]
    return finding(item, not wrong, listed(wrong) or "what is cited exists", cited=cited, quotations=others)


def _address(url: str) -> str:
    return re.sub(r"^https?://(?:www\.)?|^www\.", "", url.partition("#")[0].strip(), flags=re.IGNORECASE).rstrip("/")
