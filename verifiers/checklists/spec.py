"""Spec of the kind `checklist`: a list of items. Code decides the hard ones, a model judge grades the soft ones.

The outcome rests on the hard items alone: `pass` needs every one of them. Soft items only move a part of the score, at
most half and three tenths by default, and a failing text gains nothing from them (ACE-RL, arXiv 2509.04903, with the
weight of the judge capped).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import Field

from verifiers.checklists.item_types import (
    CitationsItem,
    CitedSource,
    CodeItem,
    CountItem,
    FormatItem,
    HeadingsItem,
    ItemData,
    JsonItem,
    LengthItem,
    NumbersItem,
    OccurrencesItem,
    OrderItem,
    PatternItem,
    ScriptItem,
    Sources,
    TableItem,
    WordsItem,
)
from verifiers.contract.spec_data import SpecModel

__all__ = [
    "OLDER",
    "ChecklistSpec",
    "CitationsItem",
    "CitedSource",
    "CodeItem",
    "CountItem",
    "FormatItem",
    "Guard",
    "HardItem",
    "HeadingsItem",
    "Item",
    "ItemData",
    "JsonItem",
    "LengthItem",
    "NumbersItem",
    "OccurrencesItem",
    "OrderItem",
    "PatternItem",
    "ScriptItem",
    "SoftItem",
    "Sources",
    "TableItem",
    "Unreadable",
    "WordsItem",
]

MAX_ITEMS = 100


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
"""Reasons why a text is unreadable; see `verifiers.checklists.document`."""
OLDER = {"hidden": get_args(Unreadable), "injection": ("claims",)}
"""Names from older list formats, and the current names they allow."""


class ChecklistSpec(SpecModel):
    """Items, hard and soft; the submission is the text."""

    kind: Literal["checklist"] = "checklist"
    items: tuple[Item, ...] = Field(min_length=1, max_length=MAX_ITEMS)
    question: str = Field(default="", max_length=100_000)
    """The task. The judge sees it, and a text that copies it is refused."""
    sources: tuple[CitedSource, ...] = Field(default=(), max_length=100)
    soft_share: float = Field(default=0.3, ge=0, le=0.5)
    """Share of the score for all soft items together. Items that were not judged earn nothing of it."""
    soft_needed: float = Field(default=0.0, ge=0, le=1)
    """Minimum mean grade of the soft items; without a judge there is then no verdict."""
    credit: Literal["none", "items"] = "none"
    """`items`: a failing text keeps the share of the score that its hard items earned, unless a guard refused it."""
    allowed: tuple[Guard | Unreadable | Literal["hidden", "injection"], ...] = ()
    """Guards and readability rules that are switched off. For example `repetition` for a refrain, `claims` for a report
    about a project that meets its requirements (such sentences are otherwise ignored), `tags` for a page of HTML, whose
    text then counts regardless of its tags."""

    @property
    def allows(self) -> frozenset[str]:
        return frozenset(one for name in self.allowed for one in OLDER.get(name, (name,)))

    @property
    def hard(self) -> tuple[HardItem, ...]:
        return tuple(item for item in self.items if not isinstance(item, SoftItem))

    @property
    def soft(self) -> tuple[SoftItem, ...]:
        return tuple(item for item in self.items if isinstance(item, SoftItem))
