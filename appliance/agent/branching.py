"""Says where an attempt branches, what a branch has of it, and how its branches are told apart. Pure.

What always holds. An attempt branches once, and branches do not branch again, so there are never more than `each` for
one attempt and `in_all` together. A branch knows its attempt's past and nothing of its later course, nor of any other
attempt: conversation and names are as they were at the place that it leaves from, its random numbers are its own.

There are three such places. Before a call that failed: the first one after a call that worked, because a failure before
that leaves nothing that another attempt would not have. After the result of the first failed call, at the turn that has
to mend it. And before the token whose distribution had the highest entropy of the whole attempt, which is known when it
has ended; that place may be in the middle of a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from appliance.inference.engine import Turn
from appliance.records.rollouts import Message, ToolStatus, WeightSpan
from appliance.rendering.renderer import PYTHON, ToolRequest
from curriculum.seeds import derive
from runtime.sandbox import Session

if TYPE_CHECKING:
    from appliance.agent.conversation import Conversation

Where = Literal["failed_call", "repair", "highest_entropy", "both"]
"""`both` is the failed call, and the highest entropy where none failed."""


@dataclass(frozen=True)
class Branching:
    each: int
    """Branches of one attempt."""
    in_all: int
    """Branches of all attempts of one batch together."""
    where: Where = "failed_call"
    first: int | None = None
    """Attempts whose sample has a number below this may branch; None: all. So who branches does not depend on who is
    quicker."""
    behind: int = 0
    """Branches get numbers of samples from this one on, where not all attempts are in the batch."""

    def left(self, made: int) -> int:
        """Counts those that the next attempt gives, when so many have been made in all."""
        return max(0, min(self.each, self.in_all - made))

    @property
    def at_failures(self) -> bool:
        return self.where in ("failed_call", "both")

    @property
    def at_entropy(self) -> bool:
        return self.where in ("highest_entropy", "both")


@dataclass
class BranchState:
    """Is what a branch begins with in one place where calls run: the session, or the world."""

    fresh: bool = False
    """Nothing had been run there."""
    kept: bool = False
    """It was called since, and kept for that."""

    def keep(self) -> bool:
        """Says before a call whether it has to be kept for this place; from then on it is."""
        needs, self.kept = not (self.fresh or self.kept), not self.fresh
        return needs


@dataclass
class BranchPoint:
    """Is a place that an attempt can be gone back to."""

    said: Conversation
    """What had been said then, without the turn under way."""
    calls: int
    """Calls that had been made."""
    begun: Turn | None = None
    """What had been sampled of the turn under way; None at its beginning."""
    entropy: float = 0.0
    """Nats, of the token that comes next."""
    code: BranchState = field(default_factory=BranchState)
    world: BranchState = field(default_factory=BranchState)

    def state(self, request: ToolRequest | None) -> BranchState:
        """Finds that of the place where a call runs."""
        return self.code if request is None or request.tool == PYTHON.name else self.world

    def sessions(self, session: Session | None, count: int) -> Sequence[Session | None]:
        """Makes what so many branches run their calls in; None for one that opens its own. Raises SandboxError."""
        if session is None or self.code.fresh:
            return [None] * count
        return session.fork(count, undo=True) if self.code.kept else session.fork(count)


def higher(
    point: BranchPoint | None, said: Conversation, turn: Turn, calls: int, *, fresh: bool, fresh_world: bool = True
) -> BranchPoint | None:
    """Chooses between the place so far and that before the token of the last turn whose entropy is highest.

    `said` ends with that turn, `calls` is how many were made before it; `fresh` says that no code was run before, and
    `fresh_world` that no world was called.
    """
    found = entropies(turn)
    place = max(range(len(found)), key=lambda token: found[token], default=0)
    if not found or found[place] <= (point.entropy if point is not None else 0.0):
        return point
    begun = until(turn, place) if place else None
    return BranchPoint(
        said.before_last_turn(), calls, begun, found[place], BranchState(fresh), BranchState(fresh_world)
    )


def entropies(turn: Turn) -> Sequence[float]:
    """Returns nats for each token. Ours: -log p of what was sampled, whose mean is the entropy; the engines say no more
    of a distribution than that. A surprising token thereby counts as an uncertain one, although it may be a rare draw
    of a sure distribution."""
    return [-logprob for logprob in turn.logprobs]


def until(turn: Turn, token: int) -> Turn:
    """Cuts a turn off before that token."""
    spans = (span.model_copy(update={"end": min(span.end, token)}) for span in turn.weights if span.start < token)
    return replace(turn, ids=turn.ids[:token], logprobs=turn.logprobs[:token], weights=tuple(spans))


def joined(begun: Turn | None, turn: Turn) -> Turn:
    """Puts a turn behind what had been sampled of it before."""
    if begun is None:
        return turn
    offset = len(begun.ids)
    moved = (WeightSpan(version=one.version, start=one.start + offset, end=one.end + offset) for one in turn.weights)
    return replace(
        turn, ids=begun.ids + turn.ids, logprobs=begun.logprobs + turn.logprobs, weights=(*begun.weights, *moved)
    )


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
