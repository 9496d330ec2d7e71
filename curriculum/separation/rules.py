"""Rules that decide when a text copies an evaluation question, by the source of the text.

A text that a built-in taskset *generated* shares its words with that taskset's sealed questions: the numbers are the
question, and the same words with other numbers are another one. It is rejected if it is

- the same question in any words (`key`), or the same text (`exact`);
- one with the same numbers, files and check that differs in one word (`one word`).

A text that somebody *wrote* (the owner, the proposer, a teacher, another project) has no reason to share words with
evaluation questions. It is rejected if it

- has the same tokens (`exact`), or the same except for numbers (`other numbers`);
- is short and differs in one token (`one word`): in longer texts, n-grams show it;
- shares `SHARE` of the distinctive 8-grams of either text (`8-grams`); 8-grams that `COMMON` evaluation questions share
  are a taskset's form, and do not count;
- is near by MinHash, and its rare words and word pairs agree by `NEAR`, or it has exactly the numbers of an evaluation
  question and `NEAR_WITH_NUMBERS` of its rare words and pairs (`near-duplicate`).

Text that `COMMON` rows of the owner's active tasksets share except for numbers is a form, like that of a built-in
taskset: its numbers are the question. Two texts of forms with other numbers are not copies.

The *result of a tool* within a conversation may hold anything, above all the task itself. It is rejected if it holds a
whole short evaluation question, up to one word, or `SHARE` of the distinctive 8-grams of any; the task's own text does
not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SHARE = 0.4
COMMON = 3
NEAR, NEAR_WITH_NUMBERS, NEAR_WITH_FEW = 0.42, 0.35, 0.5
UNKNOWN = 0.15
"""Weight of a word in no evaluation question relative to a word in one: a reworded copy has many."""
DIGITS = 4
"""Fewer digits in all numbers of a text say little about its origin (`NEAR_WITH_FEW`)."""
SHORT = 32
"""Tokens up to which a text is looked up with one of them left out."""
FEWEST_GRAMS = 3
"""Number of 8-grams below which a text is compared as a whole."""
FEWEST_TOKENS = 4
"""Tokens below which only an exact copy counts."""


class Door(StrEnum):
    """Filter through which a task or text enters training, named by its source."""

    STREAM = "stream"
    """Tasks that a taskset generates for training."""
    CONVERSATIONS = "conversations"
    """Recorded conversations, and those of a teacher."""
    TOOL_RESULTS = "tool results"
    """Tool results within conversations that are trained on."""
    OWNER = "owner"
    """Rows and folders of the owner."""
    PROPOSER = "proposer"
    """Tasks that the model proposed."""
    FOREIGN = "foreign"
    """Tasks of other frameworks' environments."""


class Check(StrEnum):
    """Rule that identified a copy."""

    KEY = "key"
    EXACT = "exact"
    NUMBERS = "other numbers"
    WORD = "one word"
    GRAMS = "8-grams"
    NEAR = "near-duplicate"


@dataclass(frozen=True)
class Match:
    """Evaluation question that a text copies."""

    kept: str
    check: Check
    share: float = 1.0
    """Share of the text that is the same."""

    def __str__(self) -> str:
        return f"{self.check.value} of {self.kept} ({self.share:.0%})"
