"""Decides each hard item of a text, by code alone."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from verifiers.answers.grammar.numerals import Decimals
from verifiers.checklists import citations, spec, structure
from verifiers.checklists.document import NARROW, SIGNS, Document, ItemFinding, finding, listed, same_address
from verifiers.checklists.facts import Facts, document_numbers, is_two_of_prose, source_facts
from verifiers.checklists.hollow import is_gap
from verifiers.checklists.item_types import amount
from verifiers.checklists.markdown import ADDRESS, PROSE, STRUCK_HTML
from verifiers.checklists.numerals.fact_figures import figure, figures, mark_of
from verifiers.checklists.numerals.numbers import Figure, WrittenNumber, decimals_of, numbers_in
from verifiers.checklists.words.characters import bare, plain, script_of, spaced_out, visible, whole_words
from verifiers.checklists.words.prose import sentences, word_count, words
from verifiers.contract.text import escaped

SHORT_SENTENCE = 4
"""Words from which a repeated sentence is not a coincidence: `Nobody knew.` may be one."""
STRUCK = re.compile(r"~~(?=\S).*?~~")
NO_LINE = re.compile(r"\s*(?:```|~~~)|\s{0,3}\[(?!\^)[^\]]+\]:\s")
"""Code fences and link definitions."""
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
    """Normalises a text for comparing words, and removes its punctuation."""
    return SENTENCE_SIGNS.sub(" ", plain(text)).strip()


def character_count(text: str) -> int:
    """Counts the characters of a text; white space counts once, and a repeated character at most three times."""
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


MARKUP = re.compile(r"[#*_`~|<>\[\]()\n\\]|://|^\s*[-+]\s")
"""Markup in a match: the pattern is about the source text."""
TARGET = re.compile(r"\]\([^()\s]*\)|^\s{0,3}\[[^\]]+\]:.*", re.MULTILINE)


def decide_item(item: spec.HardItem, document: Document, sources: spec.Sources) -> ItemFinding:
    """Decides if a text meets one checklist item. Never raises because of the text's content."""
    if isinstance(item, spec.CitationsItem):
        return citations.citations(item, document, sources)
    if isinstance(item, spec.NumbersItem):
        return _numbers(item, document, sources)
    return DECIDE[type(item)](item, document)


def band(found: int, target: int, tolerance: float, fall: float) -> float:
    """Computes the length reward of ACE-RL from the relative deviation of a length. It is 1 within `tolerance`, then
    falls linearly to 0 over the next `fall`."""
    off = Fraction(abs(found - target), target) - Fraction(str(tolerance))
    return 1.0 if off <= 0 else float(max(Fraction(0), 1 - off / Fraction(str(fall))))


def in_part(found: int, asked: int) -> bool:
    """True if at least half of several required elements are present, for ACE-RL's middle grade. False if only one is
    required."""
    return asked > 1 and 2 * found >= asked


def _amount(item: spec.CountItem | spec.OccurrencesItem, found: int, what: str, padding: int = 0) -> ItemFinding:
    own = found - padding
    holds = (item.least or 0) <= own and (item.most is None or found <= item.most)
    half = not holds and in_part(own, item.least or 0) and (item.most is None or found <= item.most)
    reason = f"{found} {what}{_padded(padding)}, required: {amount(item.least, item.most)}"
    return finding(item, holds, reason, half=half, found=found)


def _padded(padding: int) -> str:
    return f", {padding} of them repetition" if padding else ""


def _count(item: spec.CountItem, document: Document) -> ItemFinding:
    padding = len(document.repeated) if item.of == "words" else 0
    return _amount(item, COUNTED[item.of](document), item.of.replace("_", " "), padding)


def _length(item: spec.LengthItem, document: Document) -> ItemFinding:
    """Grades a length: all words count towards too long a text, but repetition does not fill one that is too short."""
    if item.unit == "words":
        found, padding = COUNTED["words"](document), len(document.repeated)
    else:
        found, padding = character_count(document.prose), sum(len(word) + 1 for word in document.repeated)
    grade = min(band(length, item.target, item.tolerance, item.fall) for length in (found, max(0, found - padding)))
    reason = f"{found} {item.unit}{_padded(padding)}, required: {item.target} within {item.tolerance:.0%}"
    return ItemFinding(item.name, grade, reason, {"found": found})


def _occurrences(item: spec.OccurrencesItem, document: Document) -> ItemFinding:
    found = len(whole_words(plain(item.phrase)).findall(document.phrases))
    return _amount(item, found, f"times {escaped(item.phrase)!r}")


def _words(item: spec.WordsItem, document: Document) -> ItemFinding:
    seen = document.phrases
    missing = [phrase for phrase in item.required if not whole_words(plain(phrase)).search(seen)]
    wrong = [f"{escaped(phrase)!r} does not occur" for phrase in missing]
    if item.forbidden:
        anywhere = plain(document.raw) + "\n" + plain(document.everything)
        undisguised = bare(document.raw) + "\n" + bare(SIGNS.sub("", document.everything))
        if NARROW.search(document.raw):
            undisguised += "\n" + bare(NARROW.sub("", document.raw))
        spread = bare(spaced_out(undisguised))
        for phrase in item.forbidden:
            naked = bare(phrase)
            if whole_words(plain(phrase)).search(anywhere):
                wrong.append(f"{escaped(phrase)!r} occurs")
            elif whole_words(naked).search(undisguised) or _spelled_out(naked.replace(" ", ""), spread):
                wrong.append(f"{escaped(phrase)!r} occurs in disguise")
    required = len(item.required)
    half = len(wrong) == len(missing) > 0 and in_part(required - len(missing), required)
    return finding(item, not wrong, listed(wrong) or "all words are as required", half=half)


def _spelled_out(naked: str, spread: str) -> bool:
    """True if a text's letter-by-letter words, in `spread`, contain a word. A short word must be a whole one."""
    return naked in spread if len(naked) >= 4 else whole_words(naked).search(spread) is not None


def _pattern(item: spec.PatternItem, document: Document) -> ItemFinding:
    pattern = re.compile(item.pattern, re.MULTILINE | (re.IGNORECASE if item.any_case else 0))
    if item.how == "whole":
        holds = pattern.fullmatch(document.raw.strip()) is not None
        return finding(item, holds, f"the whole text {'matches' if holds else 'does not match'}")
    if item.how == "lines":
        lines = [line.strip() for line in document.raw.splitlines() if line.strip()]
        bad = next((line for line in lines if not pattern.fullmatch(line)), None)
        if bad is not None:
            return finding(item, False, "a line does not match", line=escaped(bad))
        return finding(item, bool(lines), "every line matches" if lines else "the text has no lines")
    if item.how == "absent":
        found = next(filter(None, (pattern.search(text) for text in _faces(item.pattern, document))), None)
    else:
        seen, sites = plain(document.everything), " ".join(ADDRESS.findall(TARGET.sub(" ", document.raw)))
        found = next((one for one in pattern.finditer(document.raw) if _is_shown(one.group(), seen, sites)), None)
    evidence: dict[str, Any] = {"at": found.start(), "text": escaped(found.group())} if found else {}
    return finding(
        item, (found is None) == (item.how == "absent"), "matches" if found else "matches nowhere", **evidence
    )


def _faces(pattern: str, document: Document) -> Iterator[str]:
    """Yields the forms of a text in which to search a pattern. These are the raw text and, unless the pattern uses `^`
    or `$`, the visible text."""
    yield document.raw
    if not re.search(r"[\^$]", pattern):
        yield visible(document.raw)
        yield document.everything


def _is_shown(found: str, seen: str, sites: str) -> bool:
    """True if the match of a pattern is visible to a reader. Markup counts as written."""
    return MARKUP.search(found) is not None or plain(html.unescape(found)) in seen or found in sites


def _numbers(item: spec.NumbersItem, document: Document, sources: spec.Sources) -> ItemFinding:
    # A list may write its facts in English style, or in that of the text's language.
    ways: tuple[Decimals, ...] = ("point", "comma") if decimals_of(document.everything) == "comma" else ("point",)
    read = [[figures(text, way) for text in item.facts] for way in ways]
    whole = [[one for found in facts if len(found) == 1 for one in found] for facts in read]
    parts = [[one for found in facts if len(found) > 1 for one in found] for facts in read]
    facts = [Facts(own, item.derived, more) for own, more in zip(whole, parts, strict=True)]
    marks = frozenset(mark for text in (*item.facts, *item.required) for mark in mark_of(text))
    needed = [(text, _figures([text], *ways)) for text in item.required]
    given = {(fact.value, fact.percent) for fact in _figures(item.facts, *ways)}
    own = [one for _, asked in needed for one in asked if (one.value, one.percent) not in given]
    facts.append(Facts(own, "none"))
    texts = [source.text for source in sources] if item.from_sources else []
    read_sources = [numbers_in(text, decimals_of(text)) for text in texts]
    facts += [source_facts(numbers, item.derived) for numbers in read_sources]
    known_figures = [one for way in read for numbers in way for one in numbers]
    known_figures += [
        one for numbers in read_sources for number in numbers for reading in number.readings for one in reading
    ]
    things = frozenset(word for one in known_figures for word in one.counted)
    keys = [source.key for source in sources]
    found = list(document_numbers(document, keys, marks=marks))
    needing = [one for one in found if not (_free(one, item) or is_two_of_prose(one, things))]
    strange = [one for one in needing if not any(known.agree(one) for known in facts)]
    wrong = [f"{escaped(number.text)} is not a fact and does not follow from the facts" for number in strange]
    outside = list(document_numbers(document, keys, code=False, marks=marks))
    wrong += [
        f"{escaped(text)} does not occur"
        for text, asked in needed
        if not any(there.says(one) for there in outside for one in asked)
    ]
    reason = listed(list(dict.fromkeys(wrong))) or "the numbers agree"
    return finding(item, not wrong, reason, numbers=[escaped(number.text) for number in found[:50]])


def _figures(texts: Iterable[str], *ways: Decimals) -> list[Figure]:
    return [one for text in texts for way in ways if (one := figure(text, way))]


def _free(number: WrittenNumber, item: spec.NumbersItem) -> bool:
    return any(
        all(not one.percent and one.value.denominator == 1 and 0 <= one.value <= item.free_up_to for one in reading)
        for reading in number.readings
    )


def _script(item: spec.ScriptItem, document: Document) -> ItemFinding:
    text = unicodedata.normalize("NFKC", RUN.sub(r"\1\1\1", document.shown))  # circled letters are letters
    counted = Counter(script_of(character) for character in text if character.isalpha())
    share = sum(counted[script] for script in item.scripts) / max(1, counted.total())
    reason = f"{share:.1%} of the letters are {', '.join(item.scripts)}, required: {item.share:.0%}"
    return finding(item, share >= item.share, reason, letters=dict(counted.most_common()[:5]))


DECIDE: Mapping[type, Callable[[Any, Document], ItemFinding]] = {
    spec.CountItem: _count,
    spec.LengthItem: _length,
    spec.OccurrencesItem: _occurrences,
    spec.WordsItem: _words,
    spec.HeadingsItem: structure.headings,
    spec.OrderItem: structure.order,
    spec.TableItem: structure.table,
    spec.CodeItem: structure.code,
    spec.FormatItem: structure.format_of,
    spec.JsonItem: structure.json_fits,
    spec.PatternItem: _pattern,
    spec.ScriptItem: _script,
}
