"""Says where an attempt at a job branches, and how its branches are told apart. Pure.

An attempt branches from the state before a call that failed: conversation and names as they were, other random numbers.
What always holds. It does so once, at the first failure after a call that worked: a failure before that leaves nothing
that another attempt would not have. Branches do not branch again, so there are never more than `each` for one attempt
and `in_all` together. A branch knows its attempt's past and nothing of its later course, nor of any other attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from appliance.records.rollouts import Message, ToolStatus
from curriculum.seeds import derive


@dataclass(frozen=True)
class Branching:
    each: int
    """Branches of one attempt."""
    in_all: int
    """Branches of all attempts of one batch together."""

    def left(self, made: int) -> int:
        """Counts those that the next failure gives, when so many have been made in all."""
        return max(0, min(self.each, self.in_all - made))


def has_come_some_way(nodes: Sequence[Message]) -> bool:
    """Says whether a call has worked: only then is there something that a branch keeps."""
    return any(node.call is not None and node.call.status is ToolStatus.OK for node in nodes)


def branch_id(attempt: str, number: int) -> str:
    """Names the branch with that number, from 1.

    >>> branch_id("job-1.3", 1)
    'job-1.3+1'
    """
    return f"{attempt}+{number}"


def branch_seed(seed: int, number: int) -> int:
    """63 bits; other ones for each branch."""
    return derive(seed, "branch", number)
