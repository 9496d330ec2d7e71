"""Items about the words of a text: their number, choice, order and script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from verifiers.checklists.item_types.item_data import (
    Amount,
    Faults,
    ItemData,
    Phrase,
    Sources,
    amount,
    amount_faults,
    listed,
)
from verifiers.checklists.words.characters import plain
from verifiers.checklists.words.prose import words
from verifiers.contract.text import escaped

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
