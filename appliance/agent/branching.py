"""Branching rules: where an attempt branches, and what a branch inherits. Pure.

Invariants: an attempt branches once, and branches never branch again, so there are at most `each` per attempt and
`in_all` in total. A branch knows its attempt's past, but not its later course or other attempts: conversation and names
are as at the branch point, its random numbers are its own.

There are three branch points. Before a failed call: the first one after a successful call, since an earlier failure
leaves nothing that another attempt would lack. After the result of the first failed call, at the turn that must repair
it. And before the token with the highest entropy of the whole attempt, known when it has ended; this may be mid-turn.
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
"""Kinds of branch points; `both` is the failed call, or the highest entropy if none failed."""


@dataclass(frozen=True)
class Branching:
    each: int
    """Branches per attempt."""
    in_all: int
    """Branches of all attempts of a batch together."""
    where: Where = "failed_call"
    first: int | None = None
    """Attempts with a sample number below this may branch; None: all. So timing does not decide which attempts branch.
    """
    behind: int = 0
    """First sample number of branches, if the batch lacks some attempts."""

    def left(self, made: int) -> int:
        """Returns the number of branches that the next attempt may have, after `made` in total."""
        return max(0, min(self.each, self.in_all - made))

    @property
    def at_failures(self) -> bool:
        return self.where in ("failed_call", "both")

    @property
    def at_entropy(self) -> bool:
        return self.where in ("highest_entropy", "both")


@dataclass
class BranchState:
    """Initial state of a branch where its calls run: the Python session, or the world."""

    fresh: bool = False
    """True if nothing had run there."""
    kept: bool = False
    """True if its state was saved before a later call."""

    def keep(self) -> bool:
        """Returns True if the session's or world's state must be saved before the next call, and marks it saved."""
        needs, self.kept = not (self.fresh or self.kept), not self.fresh
        return needs


@dataclass
class BranchPoint:
    """Point to which an attempt can be rewound."""

    said: Conversation
    """Conversation at that point, without the current turn."""
    calls: int
    """Calls made before."""
    begun: Turn | None = None
    """Sampled prefix of the current turn; None at its start."""
    entropy: float = 0.0
    """Entropy of the next token, in nats."""
    code: BranchState = field(default_factory=BranchState)
    world: BranchState = field(default_factory=BranchState)

    def state(self, request: ToolRequest | None) -> BranchState:
        """Returns a branch's initial state where this call runs: in the Python session, or in the world."""
        return self.code if request is None or request.tool == PYTHON.name else self.world

    def sessions(self, session: Session | None, count: int) -> Sequence[Session | None]:
        """Forks the attempt's Python session for `count` branches; None for a branch that opens its own. Raises
        SandboxError."""
        if session is None or self.code.fresh:
            return [None] * count
        return session.fork(count, undo=True) if self.code.kept else session.fork(count)


def higher(
    point: BranchPoint | None, said: Conversation, turn: Turn, calls: int, *, fresh: bool, fresh_world: bool = True
) -> BranchPoint | None:
    """Returns the more uncertain branch point: the current one, or the highest-entropy token of the last turn. `said`
    ends with that turn, `calls` were made before it; `fresh` means no code had run, `fresh_world` that no world was
    called."""
    found = entropies(turn)
    place = max(range(len(found)), key=lambda token: found[token], default=0)
    if not found or found[place] <= (point.entropy if point is not None else 0.0):
        return point
    begun = until(turn, place) if place else None
    return BranchPoint(
        said.before_last_turn(), calls, begun, found[place], BranchState(fresh), BranchState(fresh_world)
    )


def entropies(turn: Turn) -> Sequence[float]:
    """Returns the uncertainty of each token of a turn, in nats. Ours: -log p of the sampled token, whose mean is the
    entropy; engines return no more of a distribution. A surprising token thus counts as uncertain, though it may be a
    rare draw from a confident distribution."""
    return [-logprob for logprob in turn.logprobs]


def until(turn: Turn, token: int) -> Turn:
    """Returns the part of a sampled turn before that token."""
    spans = (span.model_copy(update={"end": min(span.end, token)}) for span in turn.weights if span.start < token)
    routes = turn.routes[: token * (len(turn.routes) // len(turn.ids))] if turn.ids else b""
    return replace(turn, ids=turn.ids[:token], logprobs=turn.logprobs[:token], weights=tuple(spans), routes=routes)


def joined(begun: Turn | None, turn: Turn) -> Turn:
    """Joins the earlier sampled part of a turn, if any, and its continuation."""
    if begun is None:
        return turn
    offset = len(begun.ids)
    moved = (WeightSpan(version=one.version, start=one.start + offset, end=one.end + offset) for one in turn.weights)
    ids, logprobs = begun.ids + turn.ids, begun.logprobs + turn.logprobs
    return Turn(turn.request, ids, logprobs, turn.ended, (*begun.weights, *moved), *turn.routes_after(begun))


def has_come_some_way(nodes: Sequence[Message]) -> bool:
    """True if a call of the conversation has succeeded: only then does a branch inherit anything."""
    return any(node.call is not None and node.call.status is ToolStatus.OK for node in nodes)


def branch_id(attempt: str, number: int) -> str:
    """Returns the id of the branch with that number, from 1.

    >>> branch_id("job-1.3", 1)
    'job-1.3+1'
    """
    return f"{attempt}+{number}"


def branch_seed(seed: int, number: int) -> int:
    """Derives the sampling seed of a branch, 63 bits, from its attempt's seed and its number."""
    return derive(seed, "branch", number)
