"""Items about a text's evidence: its citations and its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from verifiers.checklists.item_types.item_data import Amount, Faults, ItemData, Sources, amount, listed
from verifiers.contract.text import escaped

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
