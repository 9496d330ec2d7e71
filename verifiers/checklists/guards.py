"""What no honest text needs: hidden text, orders to whoever grades, keywords without sentences, the task copied.

The guards come before the items, and a text that one of them refuses has no items fulfilled: whoever stuffs
keywords, says that all is fulfilled, or speaks to the judge gains nothing. Hidden text and orders to the judge are
suspicious; the rest fails. A spec may switch a guard off where its subject asks for it.
"""

from __future__ import annotations

import html
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from verifiers.answers.reading import clipped
from verifiers.checklists.disguise import bare, hidden_characters, plain
from verifiers.checklists.markdown import DEFINITION, Document, without_comments
from verifiers.checklists.prose import sentences, words
from verifiers.checklists.spec import (
    ChecklistSpec,
    FormatItem,
    Guard,
    HeadingsItem,
    JsonItem,
    OccurrencesItem,
    OrderItem,
    SoftItem,
    WordsItem,
)

SHINGLE = 5
"""Words in a row that count as copied."""
MAX_COPIED = 0.5
"""Share of a text's runs of words that may be copied from the question and the list."""
MAX_REPEATED = 0.35
"""Share of sentences that repeat an earlier one, from six sentences on."""
MAX_COMPRESSION = 8.0
"""How much smaller zlib makes a text of a thousand characters or more: honest prose stays below 4."""
MAX_ONE_WORD = 0.2
"""Share of one long word among all, from fifty words on."""
MAX_KEYWORDS = 0.75
"""Share of keywords in a sentence that has four different ones at least."""
HIDING_TAGS = re.compile(
    r"<(?:script|style|template|noscript|textarea|title|head|object)\b"
    r"|<[^<>]{0,2000}(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0(?![.\d])|\shidden\b"
    r"|(?<![-\w])color\s*[:=]\s*[\"']?(?:white|transparent|#fff)|text-indent\s*:\s*-|(?:left|top)\s*:\s*-\d)",
    re.IGNORECASE,
)
GRADERS = r"(?:judge|grader|verifier|evaluator|scorer)"
WORK = r"(?:answer|response|text|submission|essay|reply|output|item|point|work)"
TOP = r"(?:full|top|maximum|maximal|highest|perfect|best|passing|1)"
MARKS = r"(?:scores?|marks?|grades?|points|credits?|ratings?)"
DONE = r"(?:pass|passed|fulfilled|met|satisfied|correct)"
RULES = r"(?:instructions?|prompts?|rules|criteria|checklists?|guidelines|rubrics?)"
EARLIER = r"(?:previous|prior|above|earlier|preceding|all|your|any)"
ORDERS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:ignore|disregard|forget|override)\b.{{0,20}}\b{EARLIER}\b.{{0,20}}\b{RULES}\b",
        rf"\byou are (?:now )?(?:the |an? )?{GRADERS}\b",
        rf"\b(?:give|award|assign|grant) (?:me|(?:this|my|the) {WORK})\b.{{0,40}}\b{TOP} {MARKS}\b",
        rf"\b(?:grade|score|mark) (?:it|this|me|(?:this|my|the) {WORK}) (?:an? |as |with )?(?:{TOP}|{DONE})\b",
        rf"\b(?:note|message|instruction|hint)s? (?:to|for) (?:the )?{GRADERS}\b",
        r"\b(?:grader|verifier|evaluator|scorer)s?\s*[:,].{0,60}\b(?:answer|choose|grade|give|pick|reply|select)\b",
        r"\b(?:answer|choose|pick|select|reply|output) (?:with |only )?[\"'(]?[abc][\"')]? for (?:all|every|each)\b",
        r"<\s*/?\s*\|\s*(?:im_start|im_end|system|assistant|user|endoftext|end|tool)\s*\|\s*>",
        r"\[/?inst\]|<</?sys>>",
    )
)
"""Read in the text as the eye sees it (`bare`). What they miss meets the quoting of the judge's prompt."""


@dataclass(frozen=True)
class Alarm:
    guard: Guard
    reason: str
    suspicious: bool
    evidence: dict[str, object]


def alarms(spec: ChecklistSpec, document: Document) -> list[Alarm]:
    """Every guard that refuses this text, suspicious ones first."""
    is_json = as_json(spec, document.raw)
    found = [*_hidden(document, is_json), *_orders(document), *_copy(spec, document)]
    if not is_json:
        found += [*_repetition(document), *_stuffing(spec, document)]
    return sorted((alarm for alarm in found if alarm.guard not in spec.allowed), key=lambda alarm: not alarm.suspicious)


def as_json(spec: ChecklistSpec, text: str) -> bool:
    """Whether the text has to be JSON, and looks like it: then it is data, and no prose that could be padded."""
    for item in spec.hard:
        if (isinstance(item, FormatItem) and item.format == "json") or (
            isinstance(item, JsonItem) and item.within == "whole"
        ):
            return text.lstrip()[:1] in ("{", "[", '"')
    return False


def keywords(spec: ChecklistSpec) -> tuple[str, ...]:
    """Phrases that the hard items want to see."""
    found: list[str] = []
    for item in spec.hard:
        match item:
            case WordsItem():
                found += item.required
            case OccurrencesItem() if item.least:
                found.append(item.phrase)
            case OrderItem():
                found += item.phrases
            case HeadingsItem():
                found += item.headings
            case _:
                pass
    return tuple(dict.fromkeys(map(plain, found)))


def orders(text: str) -> list[str]:
    """What in a text speaks to whoever grades it."""
    seen = bare(text)
    lines = "\n".join(bare(line) for line in text.splitlines())
    return [match.group() for pattern in ORDERS if (match := pattern.search(lines) or pattern.search(seen))]


def _hidden(document: Document, is_json: bool) -> Iterator[Alarm]:
    characters = hidden_characters(document.raw) or hidden_characters(html.unescape(document.outside_code))
    if characters:
        yield Alarm("hidden", "has characters that nobody sees", True, {"characters": characters[:20]})
    if is_json:
        return
    lines = document.outside_code.splitlines()
    comments = [comment for comment in without_comments(document.raw)[1] if words(comment)]
    comments += [match[3] for line in lines if (match := DEFINITION.match(line)) and words(match[3])]
    if comments:
        yield Alarm("hidden", "has a comment that no reader sees", True, {"comment": clipped(comments[0])})
    tag = HIDING_TAGS.search(document.outside_code)
    if tag:
        yield Alarm("hidden", "has text that is made invisible", True, {"tag": clipped(tag.group())})


def _orders(document: Document) -> Iterator[Alarm]:
    found = orders(document.raw)
    if found:
        yield Alarm("injection", "speaks to whoever grades it", True, {"said": clipped(found[0])})


def _repetition(document: Document) -> Iterator[Alarm]:
    said = [plain(sentence) for block in document.of("paragraph") for sentence in sentences(block.text)]
    said += [block.text.casefold() for block in document.of("item")]
    said = [sentence for sentence in said if len(words(sentence)) >= 3]
    if len(said) >= 6 and len(said) - len(set(said)) > MAX_REPEATED * len(said):
        share = 1 - len(set(said)) / len(said)
        yield Alarm("repetition", "says the same again and again", False, {"repeated_share": round(share, 3)})
        return
    raw = document.prose.encode("utf-8", "replace")
    ratio = len(raw) / max(1, len(zlib.compress(raw, 6)))
    if len(raw) >= 1000 and ratio > MAX_COMPRESSION:
        yield Alarm("repetition", "says the same again and again", False, {"compression": round(ratio, 2)})
        return
    counted = Counter(word.casefold() for word in words(document.prose))
    for word, times in counted.most_common(5):
        if len(word) >= 4 and sum(counted.values()) >= 50 and times > MAX_ONE_WORD * sum(counted.values()):
            reason = "repeats one word again and again"
            yield Alarm("repetition", reason, False, {"word": clipped(word), "times": times})
            return


def _stuffing(spec: ChecklistSpec, document: Document) -> Iterator[Alarm]:
    """Sentences that are nothing but keywords; keywords as the greater part of the text."""
    wanted = keywords(spec)
    single = {word for phrase in wanted for word in words(phrase)}
    for block in document.blocks:
        if block.kind not in ("paragraph", "item") or len(wanted) < 4:
            continue
        for sentence in sentences(block.text):
            said = words(plain(sentence))
            keys = [word for word in said if word in single]
            if len(set(keys)) >= 4 and len(keys) > MAX_KEYWORDS * len(said):
                evidence: dict[str, object] = {"sentence": clipped(sentence), "keywords": len(keys), "words": len(said)}
                yield Alarm("stuffing", "strings keywords together without a sentence", False, evidence)
                return
    said = words(plain("\n".join(block.text for block in (*document.of("paragraph"), *document.of("item")))))
    keys = [word for word in said if word in single and len(word) > 3]
    if len(keys) >= 8 and len(keys) > 0.5 * len(said):
        density: dict[str, object] = {"keywords": len(keys), "words": len(said)}
        yield Alarm("stuffing", "keywords are the greater part of it", False, density)


def _copy(spec: ChecklistSpec, document: Document) -> Iterator[Alarm]:
    """The question or the list's own words, handed back as an answer."""
    said = words(plain(document.shown))
    if not said:
        return
    if spec.question and plain(document.raw) == plain(spec.question):
        yield Alarm("copy", "is the question itself", False, {})
        return
    runs = _runs(said)
    given = _given(spec)
    if runs and given:
        share = sum(run in given for run in runs) / len(runs)
        if share > MAX_COPIED:
            yield Alarm("copy", "copies the question or the list", False, {"copied_share": round(share, 3)})


def _runs(said: list[str]) -> list[tuple[str, ...]]:
    return [tuple(said[at : at + SHINGLE]) for at in range(len(said) - SHINGLE + 1)]


@lru_cache(maxsize=64)
def _given(spec: ChecklistSpec) -> frozenset[tuple[str, ...]]:
    texts = [spec.question, *(item.name for item in spec.items)]
    texts += [item.point for item in spec.items if isinstance(item, SoftItem)]
    return frozenset(run for text in texts for run in _runs(words(plain(text))))
