"""What a text is checked against: a list of items. Code decides the hard ones, a model judge grades the soft ones.

The outcome rests on the hard items alone: `pass` needs every one of them. Soft items only move a part of the score, at
most half and three tenths by default, and a text that fails gains nothing by them (ACE-RL, arXiv 2509.04903, with the
weight of the judge capped).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from verifiers.spec_data import SpecData

MAX_ITEMS = 100
Phrase = Annotated[str, Field(min_length=1, max_length=500)]
Amount = Annotated[int, Field(ge=0, le=1_000_000)]


class Source(SpecData):
    """Something a text may cite."""

    key: str = Field(min_length=1, max_length=100)
    """As it stands in the text: `[key]`."""
    text: str = Field(default="", max_length=1_000_000)
    """What may be quoted from it."""
    url: str = Field(default="", max_length=2_000)


class ItemData(SpecData):
    name: str = Field(min_length=1, max_length=100)
    """Unique in its list."""
    weight: float = Field(default=1.0, gt=0, le=100)
    """Among the items of its sort; matters for partial credit only."""


class CountItem(ItemData):
    """So many of something. Words, sentences and paragraphs are those of the prose: no code, no comments, no tables."""

    item: Literal["count"] = "count"
    of: Literal["words", "sentences", "paragraphs", "lines", "list_items", "headings", "tables", "code_blocks", "links"]
    least: Amount | None = None
    most: Amount | None = None


class LengthItem(ItemData):
    """ACE-RL's band: full within `tolerance` of the target, then falling linearly to nothing over the next `fall`."""

    item: Literal["length"] = "length"
    target: int = Field(gt=0, le=1_000_000)
    unit: Literal["words", "characters"] = "words"
    tolerance: float = Field(default=0.2, ge=0, le=1)
    fall: float = Field(default=0.5, gt=0, le=5)


class OccurrencesItem(ItemData):
    """A phrase occurs so many times, as whole words whatever their case."""

    item: Literal["occurrences"] = "occurrences"
    phrase: Phrase
    least: Amount | None = None
    most: Amount | None = None


class WordsItem(ItemData):
    """Phrases that must occur, and phrases that must not.

    Whole words in any case. A required one must stand in the visible prose; a forbidden one is also found where
    look-alike letters, accents, invisible characters or spaced-out letters disguise it, and in code and comments too.
    """

    item: Literal["words"] = "words"
    required: tuple[Phrase, ...] = Field(default=(), max_length=200)
    forbidden: tuple[Phrase, ...] = Field(default=(), max_length=200)


class HeadingsItem(ItemData):
    """These headings, in this order; others may stand between them unless `only`."""

    item: Literal["headings"] = "headings"
    headings: tuple[Phrase, ...] = Field(min_length=1, max_length=100)
    level: int | None = Field(default=None, ge=1, le=6)
    only: bool = False
    filled: bool = True
    """Each of the sections has prose, a list, a table or code in it."""


class OrderItem(ItemData):
    """These phrases occur, the first occurrence of each after that of the one before."""

    item: Literal["order"] = "order"
    phrases: tuple[Phrase, ...] = Field(min_length=2, max_length=100)


class TableItem(ItemData):
    """One table with these columns, in this order, and so many rows of full width.

    `sums`: columns whose last row is the sum of the rows above it, exactly.
    """

    item: Literal["table"] = "table"
    columns: tuple[Phrase, ...] = Field(min_length=1, max_length=50)
    least_rows: Amount = 1
    most_rows: Amount | None = None
    sums: tuple[Phrase, ...] = ()


class CodeItem(ItemData):
    """A fenced code block, closed and not empty, of this language where one is named. Python must parse, JSON too."""

    item: Literal["code"] = "code"
    language: str = Field(default="", max_length=40)


class FormatItem(ItemData):
    """The whole text is JSON, or Markdown with structure and closed fences, or plain text without any Markdown."""

    item: Literal["format"] = "format"
    format: Literal["json", "markdown", "plain"]


class JsonItem(ItemData):
    """The whole text, or its only code block of JSON, fits a JSON schema. References stay inside the schema."""

    item: Literal["json"] = "json"
    rules: str = Field(min_length=2, max_length=200_000)
    """The schema as JSON text, draft 2020-12 unless it names another."""
    within: Literal["whole", "block"] = "whole"


class PatternItem(ItemData):
    """A regular expression of the spec's owner, as Python's `re` reads it (multi-line).

    `found`: it matches somewhere; `absent`: nowhere; `whole`: the whole text, stripped; `lines`: every line that is not
    empty. A pattern that backtracks without end is ended by the worker's clock.
    """

    item: Literal["pattern"] = "pattern"
    pattern: str = Field(min_length=1, max_length=2_000)
    how: Literal["found", "absent", "whole", "lines"] = "found"
    any_case: bool = False


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


class ScriptItem(ItemData):
    """At least this share of the letters is of these scripts: `LATIN`, `CYRILLIC`, `GREEK`, `CJK`, `HIRAGANA`, ..."""

    item: Literal["script"] = "script"
    scripts: tuple[Annotated[str, Field(pattern=r"^[A-Z]{2,30}$")], ...] = Field(min_length=1, max_length=10)
    share: float = Field(default=0.95, gt=0, le=1)


class SoftItem(ItemData):
    """A point that code cannot decide. A model judge grades it 0, 0.5 or 1."""

    item: Literal["soft"] = "soft"
    point: str = Field(min_length=1, max_length=2_000)
    """One sentence that is true of a good text: `The tone is friendly.`"""


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
Guard = Literal["hidden", "injection", "repetition", "stuffing", "copy", "claims"]


class ChecklistSpec(SpecData):
    """Items, hard and soft; the submission is the text."""

    kind: Literal["checklist"] = "checklist"
    items: tuple[Item, ...] = Field(min_length=1, max_length=MAX_ITEMS)
    question: str = Field(default="", max_length=100_000)
    """What was asked: the judge sees it, and a text that copies it is refused."""
    sources: tuple[Source, ...] = Field(default=(), max_length=100)
    soft_share: float = Field(default=0.3, ge=0, le=0.5)
    """Of the score, for all soft items together. Items that nobody judged earn nothing of it."""
    soft_needed: float = Field(default=0.0, ge=0, le=1)
    """A mean grade of the soft items below this makes the text fail; without a judge there is then no verdict."""
    credit: Literal["none", "items"] = "none"
    """`items`: a text that fails keeps the share of its score that its hard items earned. Never when a guard refused
    it."""
    allowed: tuple[Guard, ...] = ()
    """Guards that are switched off: `injection` for an essay on prompt injection, `repetition` for a refrain, `claims`
    for a report that says of a project that all its requirements are met (else such sentences count for nothing)."""

    @property
    def hard(self) -> tuple[HardItem, ...]:
        return tuple(item for item in self.items if not isinstance(item, SoftItem))

    @property
    def soft(self) -> tuple[SoftItem, ...]:
        return tuple(item for item in self.items if isinstance(item, SoftItem))
