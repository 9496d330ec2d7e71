"""Base class of all items, and the sources that a text may cite."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from verifiers.contract.spec_data import SpecData

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
        """Yields lines that describe a checklist item in words; those after the first continue it."""

    def faults(self, sources: Sources) -> Faults:
        yield from ()

    @property
    def wanted(self) -> tuple[str, ...]:
        """Phrases that a text must contain to meet the item."""
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
