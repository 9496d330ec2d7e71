"""Items about the structure of a text: headings, tables, code, format, JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from verifiers.checklists.item_types.item_data import Amount, Faults, ItemData, Phrase, Sources, amount, listed
from verifiers.checklists.words.characters import plain

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
        from verifiers.checklists.item_types.json_schema import validator

        validator(self.rules)  # raises SpecError
        return iter(())
