"""A checklist in plain words, item by item. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from verifiers.checklists.spec import (
    ChecklistSpec,
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
    SoftItem,
    TableItem,
    WordsItem,
)

GUARDS = {
    "hidden": "hidden text",
    "injection": "orders to a judge",
    "repetition": "repetition",
    "stuffing": "keywords without sentences",
    "copy": "a copy of the task",
    "claims": "sentences in which the text praises itself",
}
DERIVED = {
    "none": "no number derived from them",
    "sums": "sums and differences of two of them",
    "all": "sums, differences, products, quotients, percentages, the sum and the mean of all of them",
}
PATTERNS = {
    "found": "matches somewhere",
    "absent": "matches nowhere",
    "whole": "matches the whole text",
    "lines": "matches every line that is not empty",
}
FORMATS = {
    "json": "the whole text is JSON",
    "markdown": "it is Markdown, with structure and closed fences",
    "plain": "it is plain text without any Markdown",
}


def checklist_lines(spec: ChecklistSpec) -> Iterator[str]:
    yield "A text of which all of this holds; code decides it:"
    for item in spec.hard:
        said = list(item_lines(item))
        yield f"    {item.name}: {said[0]}"
        yield from (f"        {line}" for line in said[1:])
    if spec.credit == "items":
        yield "A text that misses some does not pass, and keeps its share (by the items' weights) as its score."
    if spec.soft:
        yield "A model may judge these, which is an opinion:"
        yield from (f"    {item.name}: {item.point}" for item in spec.soft)
        if spec.soft_needed:
            yield f"    a mean grade below {spec.soft_needed:g} of 1 makes the text fail"
        yield f"    they are {spec.soft_share:.0%} of the score, and never make a text pass"
    for source in spec.sources:
        what = f", {source.url}" if source.url else ""
        yield f"It may cite [{source.key}]{what}, a text of {len(source.text)} characters."
    refused = [words for name, words in GUARDS.items() if name not in spec.allowed]
    if spec.question:
        yield "It was asked for with these words, which a model judge sees and a text must not copy:"
        yield from (f"    {line}" for line in spec.question.splitlines())
    yield f"A text is not counted for: {', '.join(refused)}."
    yield "Whether what it says is true, or good beyond this list, is not asked."


def item_lines(item: HardItem | SoftItem) -> Iterator[str]:
    """The first says what is asked, those after it what belongs to it."""
    match item:
        case CountItem():
            yield f"it has {_amount(item.least, item.most)} {item.of.replace('_', ' ')}"
        case LengthItem():
            yield f"it has {item.target} {item.unit}, at most {item.tolerance:.0%} more or less"
        case OccurrencesItem():
            yield f"{item.phrase!r} occurs {_amount(item.least, item.most)} times, as whole words in any case"
        case WordsItem():
            if item.required:
                yield f"these occur, as whole words in any case: {_listed(item.required)}"
            if item.forbidden:
                yield f"these do not occur, not even in disguise: {_listed(item.forbidden)}"
        case HeadingsItem():
            level = f" of level {item.level}" if item.level is not None else ""
            others = "no others" if item.only else "others may stand between them"
            filled = ", each with something in its section" if item.filled else ", also empty ones"
            yield f"it has these headings{level} in this order, {others}{filled}: {_listed(item.headings)}"
        case OrderItem():
            yield f"these occur, first in this order: {_listed(item.phrases)}"
        case TableItem():
            rows = _amount(item.least_rows, item.most_rows)
            yield f"it has one table with {rows} rows and exactly these columns: {_listed(item.columns)}"
            if item.sums:
                yield f"the last row is the sum of those above it in: {_listed(item.sums)}"
        case CodeItem():
            yield f"it has a fenced block of code{f' in {item.language}' if item.language else ''}, not empty"
        case FormatItem():
            yield FORMATS[item.format]
        case JsonItem():
            where = "the whole text" if item.within == "whole" else "its only block of JSON, or the whole text,"
            yield f"{where} is JSON that fits this schema:"
            yield from item.rules.splitlines()
        case PatternItem():
            case_words = ", in any case" if item.any_case else ""
            yield f"the regular expression {item.pattern!r} {PATTERNS[item.how]}{case_words}"
        case CitationsItem():
            yield f"{_amount(item.least, item.most)} different sources are cited, each of which exists"
            yield f"at least {item.least_quotations} quotations of {item.quoted_words} words or more, word for word"
            if item.addresses:
                yield "every web address in it is that of a source"
        case NumbersItem():
            yield from _numbers(item)
        case ScriptItem():
            yield f"at least {item.share:.0%} of its letters are of {', '.join(item.scripts)}"
        case SoftItem():
            yield item.point
        case _:
            assert_never(item)


def _numbers(item: NumbersItem) -> Iterator[str]:
    given = _listed(item.facts) if item.facts else "none"
    also = " and those in the sources" if item.from_sources else ""
    yield f"every number in it is one of these facts{also}: {given}"
    yield f"also allowed: {DERIVED[item.derived]}; whole numbers up to {item.free_up_to}"
    if item.required:
        yield f"these have to stand in it: {_listed(item.required)}"


def _amount(least: int | None, most: int | None) -> str:
    if most is None:
        return f"at least {least or 0}"
    return f"exactly {most}" if least == most else f"{least} to {most}" if least else f"at most {most}"


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(map(repr, texts))
