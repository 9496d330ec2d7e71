"""Saves running rollouts, and resumes them in another process.

Invariants: sampled tokens are saved with their log-probabilities and weight versions. A rollout resumes only if its
tool effects are repeatable: its calls were pure Python computation, they run again in a new session, and each result
must encode to the same tokens that the model read. Otherwise, or if the question is written differently, the rollout
restarts and its saved part is dropped. So does a finished one that does not match its assignment, or whose answer
differs from its last turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from appliance.inference.engine import Turn
from appliance.records.rollouts import Message, PartialRollout, Rollout, ToolCall, ToolStatus
from runtime.sandbox import Tier

REPEATED = (ToolStatus.OK, ToolStatus.EXCEPTION, ToolStatus.PARSE_ERROR)
"""Deterministic call outcomes; the others depend on time and memory."""
SHARED = (Tier.SHARED, Tier.PROCESS, None)
"""Tiers of pure computation; a dedicated sandbox has unrecorded files and processes."""


class RolloutKeeper(Protocol):
    """Storage of unrecorded rollouts, shared with a later process."""

    def whole(self, rollout: str) -> Rollout | None:
        """Returns, once, the saved rollout of this id if an earlier process finished it. The caller must check that it
        fits."""

    def part(self, rollout: str) -> PartialRollout | None:
        """Returns, once, the saved rollout of this id if an earlier process left it unfinished."""

    def ended(self, rollout: Rollout) -> None:
        """Stores a rollout that has just ended, for a later process."""

    def look(self, under_way: Callable[[], Sequence[PartialRollout]]) -> None:
        """Saves running rollouts if a write is due; called after each engine step. `under_way` returns their current
        state."""

    def began_anew(self, rollout: str) -> None:
        """Notes that a rollout saved by an earlier process could not resume and was restarted."""


class Replay:
    """Recorded turns and results of an interrupted rollout, to be replayed."""

    def __init__(self, part: PartialRollout) -> None:
        self.part = part
        self._nodes: deque[Message] = deque(part.nodes)
        self._read = b""
        """Routes of the last forced message."""

    def diverges(self, node: Message) -> bool:
        """Takes the replay's next forced message; True if it differs from `node`. False after the last one."""
        if not self._nodes:
            return False
        recorded = self._nodes.popleft()
        self._read = recorded.routes
        return recorded.ids != node.ids

    def turn(self, number: int) -> Turn | None:
        """Takes the replay's next completely sampled turn, or None."""
        if not self._nodes:
            return None
        node = self._nodes.popleft()
        return Turn(number, node.ids, node.logprobs, "stop", node.weights, node.routes, self._read)

    def begun(self, number: int) -> Turn | None:
        """Returns the sampled part of the turn in which the replayed rollout was interrupted, if any."""
        node = self.part.begun
        if node is None:
            return None
        return Turn(number, node.ids, node.logprobs, "withdrawn", node.weights, node.routes)


def can_repeat(part: PartialRollout) -> bool:
    """True if all tool calls of the unfinished rollout can be run again with equal effect."""
    return all(_repeats(node.call) for node in part.nodes if node.call is not None)


def _repeats(call: ToolCall) -> bool:
    return not call.asks_world and call.status in REPEATED and call.tier in SHARED
