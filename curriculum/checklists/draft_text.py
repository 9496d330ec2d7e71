"""A text under construction: what constraints plant in it, filled with sentences up to its length."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from curriculum.tasksets.prose import LongPool


@dataclass
class DraftPassage:
    """A paragraph, with a heading where it has one."""

    heading: str = ""
    sentences: list[str] = field(default_factory=list)

    def text(self) -> str:
        body = " ".join(self.sentences)
        return f"{self.heading}\n\n{body}" if self.heading else body


@dataclass
class DraftText:
    """What a text says so far; every constraint adds what it asks for."""

    opening: str = ""
    passages: list[DraftPassage] = field(default_factory=lambda: [DraftPassage(), DraftPassage()])
    listed: list[str] = field(default_factory=list)
    """Points of a list behind the first passage."""
    closing: str = ""
    planted: list[str] = field(default_factory=list)
    """Sentences that have to come in this order, wherever they stand."""

    def filled(self, target: int, subject: str, rng: Random) -> str:
        """The whole text, of at least so many words and a sentence more at most."""
        pool = LongPool(subject, rng)
        share = -(-len(self.planted) // len(self.passages))
        for at, passage in enumerate(self.passages):
            passage.sentences += [pool.take(), *self.planted[at * share : (at + 1) * share]]
        words, at = len(self._whole().split()), 0
        while words < target:
            more = pool.take()
            words += len(more.split())
            self.passages[at % len(self.passages)].sentences.append(more)
            at += 1
        return self._whole()

    def _whole(self) -> str:
        first, *others = [passage.text() for passage in self.passages]
        points = "\n".join(f"- {point}" for point in self.listed)
        return "\n\n".join(part for part in (self.opening, first, points, *others, self.closing) if part)
