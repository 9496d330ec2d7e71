"""What a text is checked against: a list of items. Code decides the hard ones, a model judge grades the soft ones.

The outcome rests on the hard items alone: `pass` needs every one of them. Soft items only move a part of the score, at
most half and three tenths by default, and a text that fails gains nothing by them (ACE-RL, arXiv 2509.04903, with the
weight of the judge capped).
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, get_args

from pydantic import Field

from verifiers.checklists.characters import plain
from verifiers.checklists.numbers import figure
from verifiers.checklists.prose import words
from verifiers.contract.spec_data import SpecData, SpecModel
from verifiers.contract.text import escaped

MAX_ITEMS = 100
MAX_DERIVING_FACTS = 60
"""Facts from which pairs are derived: their number grows with the square."""
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
Phrase = Annotated[str, Field(min_length=1, max_length=500)]
Amount = Annotated[int, Field(ge=0, le=1_000_000)]


class CitedSource(SpecData):
    """Something a text may cite."""

    key: str = Field(min_length=1, max_length=100)
    """As it stands in the text: `[key]`."""
    text: str = Field(default="", max_length=1_000_000)
    """What may be quoted from it."""
    url: str = Field(default="", max_length=2_000)


Sources = Sequence[CitedSource]
Faults = Iterator[tuple[str, str]]
"""Why an item cannot decide anything, each with a hint."""


class ItemData(SpecData):
    name: str = Field(min_length=1, max_length=100)
    """Unique in its list."""
    weight: float = Field(default=1.0, gt=0, le=100)
    """Among the items of its sort; matters for partial credit only."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """What it asks, in words: the first line says it, those after it belong to it."""

    def faults(self, sources: Sources) -> Faults:
        yield from ()

    @property
    def wanted(self) -> tuple[str, ...]:
        """Phrases that a text has to have in it."""
        return ()


def amount(least: int | None, most: int | None) -> str:
    """Two bounds in words."""
    if most is None:
        return f"at least {least or 0}"
    return f"exactly {most}" if least == most else f"{least} to {most}" if least else f"at most {most}"


def amount_faults(least: int | None, most: int | None) -> Faults:
    if least is None and most is None:
        yield "asks for nothing", "Give it `least`, `most` or both."
    elif least is not None and most is not None and least > most:
        yield "asks for more than it allows", "Let `least` be at most `most`."


def listed(texts: Sequence[str]) -> str:
    return ", ".join(map(repr, texts))


class CountItem(ItemData):
    """So many of something. Words, sentences and paragraphs are those of the prose: no code, no comments, no tables."""

    item: Literal["count"] = "count"
    of: Literal["words", "sentences", "paragraphs", "lines", "list_items", "headings", "tables", "code_blocks", "links"]
    least: Amount | None = None
    most: Amount | None = None

    def lines(self) -> Iterator[str]:
        yield f"it has {amount(self.least, self.most)} {self.of.replace('_', ' ')}"

    def faults(self, sources: Sources) -> Faults:
        yield from amount_faults(self.least, self.most)


class LengthItem(ItemData):
    """ACE-RL's band: full within `tolerance` of the target, then falling linearly to nothing over the next `fall`."""

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
    """A phrase occurs so many times, as whole words whatever their case."""

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

    Whole words in any case. A required one must stand in the visible prose; a forbidden one is also found where
    look-alike letters, accents, invisible characters or spaced-out letters disguise it, and in code and comments too.
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
            yield f"requires and forbids {escaped(min(both))!r}", "Take it out of one of the two."

    @property
    def wanted(self) -> tuple[str, ...]:
        return self.required


class HeadingsItem(ItemData):
    """These headings, in this order; others may stand between them unless `only`."""

    item: Literal["headings"] = "headings"
    headings: tuple[Phrase, ...] = Field(min_length=1, max_length=100)
    level: int | None = Field(default=None, ge=1, le=6)
    only: bool = False
    filled: bool = True
    """Each of the sections has prose, a list, a table or code in it."""

    def lines(self) -> Iterator[str]:
        level = f" of level {self.level}" if self.level is not None else ""
        others = "no others" if self.only else "others may stand between them"
        filled = ", each with something in its section" if self.filled else ", also empty ones"
        yield f"it has these headings{level} in this order, {others}{filled}: {listed(self.headings)}"

    @property
    def wanted(self) -> tuple[str, ...]:
        return self.headings


class OrderItem(ItemData):
    """These phrases occur, the first occurrence of each after that of the one before."""

    item: Literal["order"] = "order"
    phrases: tuple[Phrase, ...] = Field(min_length=2, max_length=100)

    def lines(self) -> Iterator[str]:
        yield f"these occur, first in this order: {listed(self.phrases)}"

    @property
    def wanted(self) -> tuple[str, ...]:
        return self.phrases


class TableItem(ItemData):
    """One table with these columns, in this order, and so many rows of full width.

    `sums`: columns whose last row is the sum of the rows above it, exactly.
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
            yield "names a column twice, or adds up one that is not there", "Mend `columns` and `sums`."


class CodeItem(ItemData):
    """A fenced code block, closed and not empty, of this language where one is named. Python must parse, JSON too."""

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
    """The whole text, or its only code block of JSON, fits a JSON schema. References stay inside the schema."""

    item: Literal["json"] = "json"
    rules: str = Field(min_length=2, max_length=200_000)
    """The schema as JSON text, draft 2020-12 unless it names another."""
    within: Literal["whole", "block"] = "whole"

    def lines(self) -> Iterator[str]:
        where = "the whole text" if self.within == "whole" else "its only block of JSON, or the whole text,"
        yield f"{where} is JSON that fits this schema:"
        yield from self.rules.splitlines()

    def faults(self, sources: Sources) -> Faults:
        from verifiers.checklists.json_schema import validator

        validator(self.rules)  # raises SpecError
        return iter(())


class PatternItem(ItemData):
    """A regular expression of the spec's owner, as Python's `re` reads it (multi-line).

    `found`: it matches somewhere; `absent`: nowhere; `whole`: the whole text, stripped; `lines`: every line that is not
    empty. A pattern that backtracks without end is ended by the worker's clock.
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
            yield f"has a pattern that is none: {error}", "Write it as Python's `re` reads it."


class CitationsItem(ItemData):
    """Every `[key]` names a source, and so many different ones are cited; addresses and quotations exist too.

    A quotation of at least `quoted_words` words must be in a source word for word: in the one whose key follows it in
    the same sentence, else in any.
    """

    item: Literal["citations"] = "citations"
    least: Amount = 1
    most: Amount | None = None
    least_quotations: Amount = 0
    quoted_words: int = Field(default=4, ge=1, le=100)
    addresses: bool = True
    """Every web address in the text is that of a source."""

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
    """Numbers in the text, in code too, agree with the facts: each is one of them, or derived as `derived` allows,
    rounded as written.

    `derived`: `none`; `sums` adds sums and differences of two facts; `all` adds products, quotients, percentages and
    the sum and the mean of all. Whole numbers up to `free_up_to` need no fact; numerals of lists and headings never do.
    """

    item: Literal["numbers"] = "numbers"
    facts: tuple[Annotated[str, Field(min_length=1, max_length=60)], ...] = Field(default=(), max_length=200)
    required: tuple[Annotated[str, Field(min_length=1, max_length=60)], ...] = Field(default=(), max_length=200)
    """Numbers that must stand in the text."""
    derived: Literal["none", "sums", "all"] = "none"
    free_up_to: Amount = 0
    from_sources: bool = False
    """Numbers of the sources' texts are facts too."""

    def lines(self) -> Iterator[str]:
        also = " and those in the sources" if self.from_sources else ""
        yield f"every number in it is one of these facts{also}: {listed(self.facts) or 'none'}"
        yield f"also allowed: {DERIVED[self.derived]}; whole numbers up to {self.free_up_to}"
        if self.required:
            yield f"these have to stand in it: {listed(self.required)}"

    def faults(self, sources: Sources) -> Faults:
        unread = next((text for text in (*self.facts, *self.required) if figure(text) is None), None)
        if unread is not None:
            yield f"has a fact that is not one number: {escaped(unread)!r}", "Write `12.5` or `40%`."
        if self.derived != "none" and len(self.facts) > MAX_DERIVING_FACTS:
            yield "has too many facts to derive from", f"At most {MAX_DERIVING_FACTS}, or `none`."
        if not (self.facts or self.required or self.from_sources):
            yield "has no facts", "List `facts`, `required` or set `from_sources`."


class ScriptItem(ItemData):
    """At least this share of the letters is of these scripts: `LATIN`, `CYRILLIC`, `GREEK`, `CJK`, `HIRAGANA`, ..."""

    item: Literal["script"] = "script"
    scripts: tuple[Annotated[str, Field(pattern=r"^[A-Z]{2,30}$")], ...] = Field(min_length=1, max_length=10)
    share: float = Field(default=0.95, gt=0, le=1)

    def lines(self) -> Iterator[str]:
        yield f"at least {self.share:.0%} of its letters are of {', '.join(self.scripts)}"


class SoftItem(ItemData):
    """A point that code cannot decide. A model judge grades it 0, 0.5 or 1."""

    item: Literal["soft"] = "soft"
    point: str = Field(min_length=1, max_length=2_000)
    """One sentence that is true of a good text: `The tone is friendly.`"""

    def lines(self) -> Iterator[str]:
        yield self.point


HardItem = (
    CountItem
    | LengthItem
    | OccurrencesItem
    | WordsItem
    | HeadingsItem
    | OrderItem
    | TableItem
    | CodeItem
    | FormatItem
    | JsonItem
    | PatternItem
    | CitationsItem
    | NumbersItem
    | ScriptItem
)
Item = Annotated[HardItem | SoftItem, Field(discriminator="item")]
Guard = Literal["repetition", "stuffing", "copy", "claims"]
Unreadable = Literal["characters", "scripts", "tags", "comments", "titles", "definitions", "cells", "nesting"]
"""What makes a text unreadable; see `verifiers.checklists.document`."""
OLDER = {"hidden": get_args(Unreadable), "injection": ("claims",)}
"""Names in lists of earlier versions, and what they allow."""


class ChecklistSpec(SpecModel):
    """Items, hard and soft; the submission is the text."""

    kind: Literal["checklist"] = "checklist"
    items: tuple[Item, ...] = Field(min_length=1, max_length=MAX_ITEMS)
    question: str = Field(default="", max_length=100_000)
    """What was asked: the judge sees it, and a text that copies it is refused."""
    sources: tuple[CitedSource, ...] = Field(default=(), max_length=100)
    soft_share: float = Field(default=0.3, ge=0, le=0.5)
    """Of the score, for all soft items together. Items that nobody judged earn nothing of it."""
    soft_needed: float = Field(default=0.0, ge=0, le=1)
    """A mean grade of the soft items below this makes the text fail; without a judge there is then no verdict."""
    credit: Literal["none", "items"] = "none"
    """`items`: a text that fails keeps the share of its score that its hard items earned. Never when a guard refused
    it."""
    allowed: tuple[Guard | Unreadable | Literal["hidden", "injection"], ...] = ()
    """Guards that are switched off (`repetition` for a refrain, `claims` for a report that says of a project that all
    its requirements are met: else such sentences count for nothing), and what is read although it makes a text
    unreadable: `tags` for a page of HTML, whose text then counts whatever its tags do."""

    @property
    def allows(self) -> frozenset[str]:
        return frozenset(one for name in self.allowed for one in OLDER.get(name, (name,)))

    @property
    def hard(self) -> tuple[HardItem, ...]:
        return tuple(item for item in self.items if not isinstance(item, SoftItem))

    @property
    def soft(self) -> tuple[SoftItem, ...]:
        return tuple(item for item in self.items if isinstance(item, SoftItem))
