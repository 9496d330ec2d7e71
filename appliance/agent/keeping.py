"""Says what is kept of rollouts under way, and how one goes on after this process was ended.

What always holds. What was sampled is kept as it was sampled, with its log-probabilities and the versions that drew it.
A rollout goes on only where what its tools did can be done again: its calls were pure computation in Python, they are
made once more in a session of its own, and each result has to be written with the very tokens that the model read. If
one is not, or the question is written otherwise, the rollout begins anew, and nothing that was kept of it counts. So
does one that had ended, where it is not of its assignment or its answer is not what its last turn says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from appliance.inference.engine import Turn
from appliance.records.rollouts import Message, PartialRollout, Rollout, ToolCall, ToolStatus
from runtime.sandbox import Tier

REPEATED = (ToolStatus.OK, ToolStatus.EXCEPTION, ToolStatus.PARSE_ERROR)
"""What a call ends with that ends so again; the others are about time and memory."""
SHARED = (Tier.SHARED, Tier.PROCESS, None)
"""Where pure computation runs; a sandbox of its own has files and processes that nobody wrote down."""


class RolloutKeeper(Protocol):
    """Keeps rollouts that are not on record yet, and gives back what an earlier process had."""

    def whole(self, rollout: str) -> Rollout | None:
        """Gives one that had ended, once. Whoever takes it still has to ask whether it fits."""

    def part(self, rollout: str) -> PartialRollout | None:
        """Gives one that was under way, once."""

    def ended(self, rollout: Rollout) -> None:
        """Takes one that ended now."""

    def look(self, under_way: Callable[[], Sequence[PartialRollout]]) -> None:
        """Is called after each step of the engine; asks what is under way where it is time to keep it."""

    def began_anew(self, rollout: str) -> None:
        """Hears of one that could not go on."""


class Replay:
    """What is known of the course of a rollout, to be gone through again."""

    def __init__(self, part: PartialRollout) -> None:
        self.part = part
        self._nodes: deque[Message] = deque(part.nodes)

    def diverges(self, node: Message) -> bool:
        """Takes the next node that was forced, and says whether it is another one than this, which was forced now.
        Behind the last that is known, nothing is."""
        return bool(self._nodes) and self._nodes.popleft().ids != node.ids

    def turn(self, number: int) -> Turn | None:
        """Takes the next turn that was sampled whole; None where there is none."""
        if not self._nodes:
            return None
        node = self._nodes.popleft()
        return Turn(number, node.ids, node.logprobs, "stop", node.weights)

    def begun(self, number: int) -> Turn | None:
        """What is there of the turn behind that."""
        node = self.part.begun
        return None if node is None else Turn(number, node.ids, node.logprobs, "withdrawn", node.weights)


def can_repeat(part: PartialRollout) -> bool:
    """Says whether what its tools did can be done again."""
    return all(_repeats(node.call) for node in part.nodes if node.call is not None)


def _repeats(call: ToolCall) -> bool:
    return not call.asks_world and call.status in REPEATED and call.tier in SHARED
