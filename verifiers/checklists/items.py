"""Each hard item: whether it holds of a text, by code alone."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import assert_never

from verifiers.answers.reading import clipped
from verifiers.checklists import citations, structure
from verifiers.checklists.disguise import bare, plain, spaced_out, visible, whole_words
from verifiers.checklists.finding import Finding, listed
from verifiers.checklists.markdown import Document
from verifiers.checklists.numbers import Facts, figure, figures
from verifiers.checklists.prose import sentences, words
from verifiers.checklists.spec import (
    CitationsItem,
    CodeItem,
    CountItem,
    FormatItem,
    HardItem,
    HeadingsItem,
    JsonItem,
    LengthItem,
    NumbersItem,
    OccurrencesItem,
    OrderItem,
    PatternItem,
    ScriptItem,
    Source,
    TableItem,
    WordsItem,
)


def decide_item(item: HardItem, document: Document, sources: Sequence[Source]) -> Finding:
    """Whether it holds. Never raises for what the text holds."""
    match item:
        case CountItem():
            return _count(item, document)
        case LengthItem():
            return _length(item, document)
        case OccurrencesItem():
            found = len(whole_words(plain(item.phrase)).findall(plain(document.shown)))
            return _within(item.name, found, item.least, item.most, f"times {clipped(item.phrase)!r}")
        case WordsItem():
            return _words(item, document)
        case HeadingsItem():
            return structure.headings(item, document)
        case OrderItem():
            return structure.order(item, document)
        case TableItem():
            return structure.table(item, document)
        case CodeItem():
            return structure.code(item, document)
        case FormatItem():
            return structure.format_of(item, document)
        case JsonItem():
            return structure.json_fits(item, document)
        case PatternItem():
            return _pattern(item, document)
        case CitationsItem():
            wrong, evidence = citations.wrong_with(item, document, sources)
            reason = listed(wrong) or "what is cited exists"
            return Finding(item.name, not wrong, reason, evidence=evidence)
        case NumbersItem():
            return _numbers(item, document, sources)
        case ScriptItem():
            return _script(item, document)
        case _:
            assert_never(item)


def band(found: int, target: int, tolerance: float, fall: float) -> float:
    """The length reward of ACE-RL: 1 within the tolerance, then falling linearly to 0 over the next `fall`."""
    off = Fraction(abs(found - target), target) - Fraction(str(tolerance))
    return 1.0 if off <= 0 else float(max(Fraction(0), 1 - off / Fraction(str(fall))))


def _within(name: str, found: int, least: int | None, most: int | None, what: str) -> Finding:
    low, high = least or 0, most
    holds = low <= found and (high is None or found <= high)
    asked = (
        f"{low} to {high}" if high is not None and low else f"at most {high}" if high is not None else f"at least {low}"
    )
    return Finding(name, holds, f"{found} {what}, asked: {asked}", evidence={"found": found})


def _count(item: CountItem, document: Document) -> Finding:
    match item.of:
        case "words":
            found = len(words(document.prose))
        case "sentences":
            blocks = (*document.of("paragraph"), *document.of("item"))
            found = sum(len(sentences(block.text)) for block in blocks)
        case "paragraphs":
            found = sum(bool(words(block.text)) for block in document.of("paragraph"))
        case "lines":
            found = sum(bool(line.strip()) for line in visible(document.uncommented).splitlines())
        case "list_items":
            found = len({plain(block.text) for block in document.of("item") if words(block.text)})
        case "headings":
            found = sum(bool(words(block.text)) for block in document.of("heading"))
        case "tables":
            found = sum(len(block.rows) > 1 for block in document.of("table"))
        case "code_blocks":
            found = sum(block.closed and bool(block.text.strip()) for block in document.of("code"))
        case "links":
            found = len(set(document.addresses))
        case _:
            assert_never(item.of)
    return _within(item.name, found, item.least, item.most, item.of.replace("_", " "))


def _length(item: LengthItem, document: Document) -> Finding:
    prose = document.prose
    found = len(words(prose)) if item.unit == "words" else len(" ".join(prose.split()))
    grade = band(found, item.target, item.tolerance, item.fall)
    reason = f"{found} {item.unit}, asked: {item.target} within {item.tolerance:.0%}"
    return Finding(item.name, grade == 1.0, reason, grade, {"found": found})


def _words(item: WordsItem, document: Document) -> Finding:
    seen = plain(document.shown)
    missing = [phrase for phrase in item.required if not whole_words(plain(phrase)).search(seen)]
    wrong = [f"{clipped(phrase)!r} does not occur" for phrase in missing]
    if item.forbidden:
        anywhere = plain(document.raw) + "\n" + plain(document.shown)
        undisguised = bare(document.raw) + "\n" + bare(document.without_signs)
        spread = bare(spaced_out(undisguised))
        for phrase in item.forbidden:
            naked = bare(phrase)
            if whole_words(plain(phrase)).search(anywhere):
                wrong.append(f"{clipped(phrase)!r} occurs")
            elif whole_words(naked).search(undisguised) or whole_words(naked.replace(" ", "")).search(spread):
                wrong.append(f"{clipped(phrase)!r} occurs in disguise")
    return Finding(item.name, not wrong, listed(wrong) or "the words are as asked")


def _pattern(item: PatternItem, document: Document) -> Finding:
    pattern = re.compile(item.pattern, re.MULTILINE | (re.IGNORECASE if item.any_case else 0))
    text = document.raw
    match item.how:
        case "found":
            found = pattern.search(text)
            evidence = {"at": found.start(), "text": clipped(found.group())} if found else {}
            return Finding(item.name, found is not None, "matches" if found else "matches nowhere", evidence=evidence)
        case "absent":
            found = pattern.search(text)
            evidence = {"at": found.start(), "text": clipped(found.group())} if found else {}
            return Finding(item.name, found is None, "matches" if found else "matches nowhere", evidence=evidence)
        case "whole":
            holds = pattern.fullmatch(text.strip()) is not None
            return Finding(item.name, holds, f"the whole text {'matches' if holds else 'does not match'}")
        case "lines":
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            bad = next((line for line in lines if not pattern.fullmatch(line)), None)
            evidence = {"line": clipped(bad)} if bad is not None else {}
            holds = bad is None and bool(lines)
            return Finding(
                item.name, holds, "every line matches" if holds else "a line does not match", evidence=evidence
            )
        case _:
            assert_never(item.how)


def _numbers(item: NumbersItem, document: Document, sources: Sequence[Source]) -> Finding:
    given = [number for fact in item.facts if (number := figure(fact))]
    if item.from_sources:
        extra = [number for source in sources for number in figures(source.text)]
        known = Facts(extra, "none")
    else:
        known = Facts((), "none")
    facts = Facts(given, item.derived)
    code = [block.text for block in document.of("code")]
    shown = "\n".join([document.shown, *code])
    said = figures("\n".join(citations.BRACKETS.sub("", line) for line in shown.splitlines()))
    free = [number for number in said if number.value.denominator == 1 and 0 <= number.value <= item.free_up_to]
    bound = [number for number in said if number.percent or number not in free]
    strange = [number for number in bound if not facts.hold(number) and not known.hold(number)]
    wrong = [f"{clipped(number.text)} is no fact and does not follow from them" for number in strange]
    there = Counter((number.value, number.percent) for number in said)
    for text in item.required:
        needed = figure(text)
        if needed is not None and not there[needed.value, needed.percent]:
            wrong.append(f"{clipped(text)} does not occur")
    reason = listed(list(dict.fromkeys(wrong))) or "the numbers agree"
    return Finding(item.name, not wrong, reason, evidence={"numbers": [clipped(number.text) for number in said[:50]]})


def _script(item: ScriptItem, document: Document) -> Finding:
    letters = Counter(character for character in document.shown if character.isalpha())
    counted: Counter[str] = Counter()
    for character, times in letters.items():
        name = unicodedata.name(unicodedata.normalize("NFKC", character)[0], "").partition(" ")[0]
        counted[name.partition("-")[0]] += times
    total = sum(counted.values())
    share = sum(counted[script] for script in item.scripts) / total if total else 0.0
    reason = f"{share:.1%} of the letters are of {', '.join(item.scripts)}, asked: {item.share:.0%}"
    return Finding(item.name, share >= item.share, reason, evidence={"letters": dict(counted.most_common(5))})
