"""Says what counts as a copy of a kept question, by where a text comes from.

A text that a taskset of ours *generated* shares its words with the sealed questions of that taskset: the numbers are
the question, and the same words with other numbers are another one. Of it is stopped

- the same question whatever the words (`key`), or the same text (`exact`);
- one that has the same numbers, the same files and the same check, and differs in one word (`one word`).

A text that somebody *wrote* (the owner, the proposer, a teacher, another project) has no reason to have our words at
all. Of it is stopped

- the same tokens (`exact`), or the same but for numbers (`other numbers`);
- one that differs in one token, as far as it is short (`one word`): in a longer one, n-grams show it;
- one that shares `SHARE` of the distinctive 8-grams of either text (`8-grams`); what `COMMON` kept texts have in common
  is the form of a taskset, and shows nothing;
- one that MinHash finds near and whose rare words and pairs of words are `NEAR` the same, or which has just the numbers
  of a kept text and `NEAR_WITH_NUMBERS` of its rare words and pairs (`near-duplicate`).

What `COMMON` rows of the owner's tasksets in use share but for their numbers is a form, as a taskset of ours has: in
it the numbers are the question. Of two texts that are each of a form, one with other numbers is no copy.

The *result of a tool* within a conversation may hold anything, the task itself first of all. It is stopped where it
holds a whole kept question that is short, but for one word at most, or `SHARE` of the distinctive 8-grams of any; what
the task itself says does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SHARE = 0.4
COMMON = 3
NEAR, NEAR_WITH_NUMBERS, NEAR_WITH_FEW = 0.42, 0.35, 0.5
UNKNOWN = 0.15
"""What a word that no kept text has counts beside one that a single text has: a copy in other words has many."""
DIGITS = 4
"""Fewer of them in all the numbers of a text say little about where it is from (`NEAR_WITH_FEW`)."""
SHORT = 32
"""Tokens up to which a text is looked up with one of them left out."""
FEWEST_GRAMS = 3
"""A text with fewer 8-grams is compared as a whole."""
FEWEST_TOKENS = 4
"""A text with fewer tokens is only ever the same or another one."""


class Door(StrEnum):
    """Where a task or a text of training comes in."""

    STREAM = "stream"
    """Tasks that a taskset generates for training."""
    CONVERSATIONS = "conversations"
    """Recorded conversations, and those of a teacher."""
    TOOL_RESULTS = "tool results"
    """What tools gave back within conversations that are learned from."""
    OWNER = "owner"
    """Rows and folders of the owner."""
    PROPOSER = "proposer"
    """Tasks that the model proposed."""
    FOREIGN = "foreign"
    """Tasks of environments that others made."""


class Check(StrEnum):
    """What showed that a text is a copy."""

    KEY = "key"
    EXACT = "exact"
    NUMBERS = "other numbers"
    WORD = "one word"
    GRAMS = "8-grams"
    NEAR = "near-duplicate"


@dataclass(frozen=True)
class Match:
    """A kept question that a text is a copy of."""

    kept: str
    """The id of the kept task."""
    check: Check
    share: float = 1.0
    """How much of it is the same."""

    def __str__(self) -> str:
        return f"{self.check.value} of {self.kept} ({self.share:.0%})"
