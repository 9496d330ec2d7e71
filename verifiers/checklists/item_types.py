"""Items of a checklist about structure, words and evidence, and the sources that a text may cite."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from verifiers.checklists.words.characters import plain
from verifiers.checklists.words.prose import words
from verifiers.contract.spec_data import SpecData
from verifiers.contract.text import escaped

Phrase = Annotated[str, Field(min_length=1, max_length=500)]
Amount = Annotated[int, Field(ge=0, le=1_000_000)]


class CitedSource(SpecData):
    """A source that a text may cite."""

    key: str = Field(min_length=1, max_length=100)
    """Key as written in the text: `[key]`."""
    text: str = Field(default="", max_length=1_000_000)
    """Text that may be quoted."""
    url: str = Field(default="", max_length=2_000)


Sources = Sequence[CitedSource]
Faults = Iterator[tuple[str, str]]
"""Reasons why an item cannot decide anything, each with a hint."""


class ItemData(SpecData):
    name: str = Field(min_length=1, max_length=100)
    """Name, unique in its list."""
    weight: float = Field(default=1.0, gt=0, le=100)
    """Weight among the hard, or the soft, items; matters for partial credit only."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Yields lines that describe a checklist item in words; the first line stands alone, others add details."""

    def faults(self, sources: Sources) -> Faults:
        yield from ()

    @property
    def wanted(self) -> tuple[str, ...]:
        """Phrases that a text must contain to meet a checklist item; empty for items of another kind."""
        return ()


def amount(least: int | None, most: int | None) -> str:
    """Formats a lower and an upper bound in words, such as `at least 3`."""
    if most is None:
        return f"at least {least or 0}"
    return f"exactly {most}" if least == most else f"{least} to {most}" if least else f"at most {most}"


def amount_faults(least: int | None, most: int | None) -> Faults:
    if least is None and most is None:
        yield "asks for nothing", "Give it `least`, `most` or both."
    elif least is not None and most is not None and least > most:
        yield "asks for more than it allows", "Set `least` to at most `most`."


def listed(texts: Sequence[str]) -> str:
    return ", ".join(map(repr, texts))


MAX_DERIVING_FACTS = 60
"""Maximum facts from which pairs are derived: their number grows with the square."""
DERIVED = {
    "none": "no number derived from them",
    "sums": "sums and differences of two of them, sums of several that stand one behind another",
    "all": "those sums, and products, quotients, percentages and means of two of them, and the mean of all",
}


class CitationsItem(ItemData):
    """Every `[key]` names a source, enough different ones are cited, and addresses and quotations exist.

    A quotation of at least `quoted_words` words must be in a source word for word: in the one whose key follows it in
    the same sentence, else in any.
    """

    item: Literal["citations"] = "citations"
    least: Amount = 1
    most: Amount | None = None
    least_quotations: Amount = 0
    quoted_words: int = Field(default=4, ge=1, le=100)
    addresses: bool = True
    """True if every web address in the text must be that of a source."""

    def lines(self) -> Iterator[str]:
        yield f"{amount(self.least, self.most)} different sources are cited, each of which exists"
        yield f"at least {self.least_quotations} quotations of {self.quoted_words} words or more, word for word"
        if self.addresses:
            yield "every web address in it is that of a source"

    def faults(self, sources: Sources) -> Faults:
        if not sources:
            yield "has no sources", "List `sources` with their keys and texts."
        if self.least > len(sources):
            yield "asks for more sources than there are", "Lower `least` or add sources."


class NumbersItem(ItemData):
    """Numbers in the text, in code too, agree with the facts: each is a fact, or derived as `derived` allows, rounded
    as written.

    `derived`: `none`; `sums` adds sums and differences of two facts, and sums of consecutive facts in the list, such as
    the total of a column; `all` adds products, quotients, percentages and means of two, and the mean of all. Whole
    numbers up to `free_up_to` need no fact; numerals of lists and headings never do.
    """

    item: Literal["numbers"] = "numbers"
    facts: tuple[Annotated[str, Field(min_length=1, max_length=60)], ...] = Field(default=(), max_length=200)
    required: tuple[Annotated[str, Field(min_length=1, max_length=60)], ...] = Field(default=(), max_length=200)
    """Numbers that must occur in the text."""
    derived: Literal["none", "sums", "all"] = "none"
    free_up_to: Amount = 0
    from_sources: bool = False
    """True if numbers in the sources' texts count as facts."""

    def lines(self) -> Iterator[str]:
        also = " and those in the sources" if self.from_sources else ""
        yield f"every number in it is one of these facts{also}: {listed(self.facts) or 'none'}"
        yield f"also allowed: {DERIVED[self.derived]}; whole numbers up to {self.free_up_to}"
        if self.required:
            yield f"these have to stand in it: {listed(self.required)}"

    def faults(self, sources: Sources) -> Faults:
        from verifiers.checklists.numerals.fact_figures import (  # only lists with numbers need its tables
            figure,
            figures,
        )

        unread = next((text for text in self.facts if not figures(text)), None)
        if unread is not None:
            yield f"has a fact without a number: {escaped(unread)!r}", "Write `12.5`, `40%` or `9:30`."
        unread = next((text for text in self.required if figure(text) is None), None)
        if unread is not None:
            yield f"requires something other than one number: {escaped(unread)!r}", "Write `12.5` or `40%`."
        if self.derived != "none" and len(self.facts) > MAX_DERIVING_FACTS:
            yield "has too many facts to derive from", f"At most {MAX_DERIVING_FACTS}, or `none`."
        if not (self.facts or self.required or self.from_sources):
            yield "has no facts", "List `facts`, `required` or set `from_sources`."


FORMATS = {
    "json": "the whole text is JSON",
    "markdown": "it is Markdown, with structure and closed fences",
    "plain": "it is plain text without any Markdown",
}


class HeadingsItem(ItemData):
    """These headings, in this order; others may stand between them unless `only`."""

    item: Literal["headings"] = "headings"
    headings: tuple[Phrase, ...] = Field(min_length=1, max_length=100)
    level: int | None = Field(default=None, ge=1, le=6)
    only: bool = False
    filled: bool = True
    """True if each section must contain prose, a list, a table or code."""

    def lines(self) -> Iterator[str]:
        level = f" of level {self.level}" if self.level is not None else ""
        others = "no others" if self.only else "others may stand between them"
        filled = ", each with something in its section" if self.filled else ", also empty ones"
        yield f"it has these headings{level} in this order, {others}{filled}: {listed(self.headings)}"

    @property
    def wanted(self) -> tuple[str, ...]:
        return self.headings


class TableItem(ItemData):
    """Exactly one table with these columns, in this order, and between `least_rows` and `most_rows` full rows.

    `sums`: columns whose last row is the exact sum of the rows above it.
    """

    item: Literal["table"] = "table"
    columns: tuple[Phrase, ...] = Field(min_length=1, max_length=50)
    least_rows: Amount = 1
    most_rows: Amount | None = None
    sums: tuple[Phrase, ...] = ()

    def lines(self) -> Iterator[str]:
        rows = amount(self.least_rows, self.most_rows)
        yield f"it has one table with {rows} rows and exactly these columns: {listed(self.columns)}"
        if self.sums:
            yield f"the last row is the sum of those above it in: {listed(self.sums)}"

    def faults(self, sources: Sources) -> Faults:
        columns = set(map(plain, self.columns))
        if len(columns) < len(self.columns) or not columns.issuperset(map(plain, self.sums)):
            yield "names a column twice, or sums an unknown one", "Correct `columns` and `sums`."


class CodeItem(ItemData):
    """A fenced code block, closed and not empty, in this language if one is named. Python and JSON must parse."""

    item: Literal["code"] = "code"
    language: str = Field(default="", max_length=40)

    def lines(self) -> Iterator[str]:
        yield f"it has a fenced block of code{f' in {self.language}' if self.language else ''}, not empty"


class FormatItem(ItemData):
    """The whole text is JSON, or Markdown with structure and closed fences, or plain text without any Markdown."""

    item: Literal["format"] = "format"
    format: Literal["json", "markdown", "plain"]

    def lines(self) -> Iterator[str]:
        yield FORMATS[self.format]


class JsonItem(ItemData):
    """The whole text, or its only JSON code block, fits a JSON schema. References stay inside the schema."""

    item: Literal["json"] = "json"
    rules: str = Field(min_length=2, max_length=200_000)
    """Schema as JSON text, draft 2020-12 unless it names another."""
    within: Literal["whole", "block"] = "whole"

    def lines(self) -> Iterator[str]:
        where = "the whole text" if self.within == "whole" else "its only block of JSON, or the whole text,"
        yield f"{where} is JSON that fits this schema:"
        yield from self.rules.splitlines()

    def faults(self, sources: Sources) -> Faults:
        from verifiers.checklists.json_schema import validator

        validator(self.rules)  # raises SpecError
        return iter(())


PATTERNS = {
    "found": "matches somewhere",
    "absent": "matches nowhere",
    "whole": "matches the whole text",
    "lines": "matches every line that is not empty",
}


class CountItem(ItemData):
    """A number of elements. Words, sentences and paragraphs are those of the prose: no code, comments or tables."""

    item: Literal["count"] = "count"
    of: Literal["words", "sentences", "paragraphs", "lines", "list_items", "headings", "tables", "code_blocks", "links"]
    least: Amount | None = None
    most: Amount | None = None

    def lines(self) -> Iterator[str]:
        yield f"it has {amount(self.least, self.most)} {self.of.replace('_', ' ')}"

    def faults(self, sources: Sources) -> Faults:
        yield from amount_faults(self.least, self.most)


class LengthItem(ItemData):
    """Length band of ACE-RL: full within `tolerance` of the target, then falling linearly to 0 over the next `fall`."""

    item: Literal["length"] = "length"
    target: int = Field(gt=0, le=1_000_000)
    unit: Literal["words", "characters"] = "words"
    tolerance: float = Field(default=0.2, ge=0, le=1)
    fall: float = Field(default=0.5, gt=0, le=5)

    def lines(self) -> Iterator[str]:
        yield f"it has {self.target} {self.unit}, at most {self.tolerance:.0%} more or less"

    def faults(self, sources: Sources) -> Faults:
        if self.tolerance >= 1:
            yield "allows a text of no length", "Choose a tolerance below 1."


class OccurrencesItem(ItemData):
    """Number of occurrences of a phrase, as whole words in any case."""

    item: Literal["occurrences"] = "occurrences"
    phrase: Phrase
    least: Amount | None = None
    most: Amount | None = None

    def lines(self) -> Iterator[str]:
        yield f"{self.phrase!r} occurs {amount(self.least, self.most)} times, as whole words in any case"

    def faults(self, sources: Sources) -> Faults:
        yield from amount_faults(self.least, self.most)

    @property
    def wanted(self) -> tuple[str, ...]:
        return (self.phrase,) if self.least else ()


class WordsItem(ItemData):
    """Phrases that must occur, and phrases that must not.

    Whole words in any case. A required one must stand in the visible prose; a forbidden one is also found if look-alike
    letters, accents, invisible characters or spaced-out letters disguise it, and in code and comments too.
    """

    item: Literal["words"] = "words"
    required: tuple[Phrase, ...] = Field(default=(), max_length=200)
    forbidden: tuple[Phrase, ...] = Field(default=(), max_length=200)

    def lines(self) -> Iterator[str]:
        if self.required:
            yield f"these occur, as whole words in any case: {listed(self.required)}"
        if self.forbidden:
            yield f"these do not occur, not even in disguise: {listed(self.forbidden)}"

    def faults(self, sources: Sources) -> Faults:
        if not (self.required or self.forbidden):
            yield "names no words", "List `required` or `forbidden` words."
        if any(not words(phrase) for phrase in (*self.required, *self.forbidden)):
            yield "names a word without letters", "Write words, or use a pattern."
        both = set(map(plain, self.required)) & set(map(plain, self.forbidden))
        if both:
            yield f"requires and forbids {escaped(min(both))!r}", "Remove it from one of the two."

    @property
    def wanted(self) -> tuple[str, ...]:
        return self.required


class OrderItem(ItemData):
    """These phrases occur, the first occurrence of each after that of the one before."""

    item: Literal["order"] = "order"
    phrases: tuple[Phrase, ...] = Field(min_length=2, max_length=100)

    def lines(self) -> Iterator[str]:
        yield f"these occur, first in this order: {listed(self.phrases)}"

    @property
    def wanted(self) -> tuple[str, ...]:
        return self.phrases


class PatternItem(ItemData):
    """A regular expression by the spec's author, in Python's `re` syntax (multi-line).

    `found`: it matches somewhere; `absent`: nowhere; `whole`: the whole text, stripped; `lines`: every non-empty line.
    The worker's time limit stops catastrophic backtracking.
    """

    item: Literal["pattern"] = "pattern"
    pattern: str = Field(min_length=1, max_length=2_000)
    how: Literal["found", "absent", "whole", "lines"] = "found"
    any_case: bool = False

    def lines(self) -> Iterator[str]:
        yield f"the regular expression {self.pattern!r} {PATTERNS[self.how]}{', in any case' if self.any_case else ''}"

    def faults(self, sources: Sources) -> Faults:
        try:
            re.compile(self.pattern, re.MULTILINE)
        except (re.error, RecursionError, OverflowError) as error:
            yield f"has an invalid pattern: {error}", "Use the syntax of Python's `re`."


class ScriptItem(ItemData):
    """Minimum share of letters from these scripts: `LATIN`, `CYRILLIC`, `GREEK`, `CJK`, `HIRAGANA`, ..."""

    item: Literal["script"] = "script"
    scripts: tuple[Annotated[str, Field(pattern=r"^[A-Z]{2,30}$")], ...] = Field(min_length=1, max_length=10)
    share: float = Field(default=0.95, gt=0, le=1)

    def lines(self) -> Iterator[str]:
        yield f"at least {self.share:.0%} of its letters are of {', '.join(self.scripts)}"
