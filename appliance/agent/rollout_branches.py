"""Selects the rollouts of a batch that branch, tracks their branch points, and starts branches.

Invariants: an attempt that cannot branch continues unchanged.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from appliance.agent.assignment import Assignment, LiveRollout, needs_world
from appliance.agent.branching import Branching, BranchPoint, has_come_some_way, higher
from appliance.agent.calls import ToolCalls
from appliance.inference.engine import Turn
from appliance.records.rollouts import ToolCall
from appliance.rendering.renderer import ToolRequest
from runtime.errors import SandboxError

log = logging.getLogger(__name__)


class RolloutBranches:
    """Branches of the rollouts in one batch of an agent; without `wanted` nothing branches."""

    def __init__(self, wanted: Branching | None, assignments: Sequence[Assignment] = ()) -> None:
        self.wanted = wanted
        behind = wanted.behind if wanted is not None else 0
        self._first_sample = max(behind, max((one.sample for one in assignments), default=-1) + 1)
        self._made = 0

    def left(self, live: LiveRollout) -> int:
        """Returns the number of branches that a rollout may still have."""
        wanted = self.wanted
        if wanted is None or live.streamed or not live.assignment.temperature:
            return 0
        if live.branch_of is not None or live.branches:
            return 0
        late = wanted.first is not None and live.assignment.sample >= wanted.first
        return 0 if late else wanted.left(self._made)

    def look(self, live: LiveRollout, turn: Turn) -> None:
        """Updates the rollout's most uncertain point, where it may branch, from a new turn."""
        if self.wanted is not None and self.wanted.at_entropy and self.left(live):
            live.point = higher(
                live.point, live.said, turn, live.calls, fresh=live.session is None, fresh_world=live.world is None
            )

    def keeps(self, live: LiveRollout, request: ToolRequest) -> bool:
        """True if the rollout's next call must be undoable, so that a branch can start before it."""
        if not self.left(live):
            return False
        state = live.point.state(request) if live.point is not None else None
        if not self._at_failure(live):
            return state is not None and state.keep()
        if state is not None and state.kept:  # a state is saved for one call only, and this one may fail
            live.point = None
        elif state is not None:
            state.keep()
        return True

    def before(self, live: LiveRollout, call: ToolCall) -> BranchPoint | None:
        """Returns the branch point before a failed call; None if the rollout does not branch there."""
        if not call.status.failed or not self._at_failure(live):
            return None
        point = BranchPoint(live.said.before_last_turn(), live.calls - 1)
        point.state(live.running).kept = live.running is not None
        return point

    def behind(self, live: LiveRollout, call: ToolCall) -> BranchPoint | None:
        """Returns the branch point after a failed call's result; None if the rollout does not branch there."""
        mends = call.status.failed and self.wanted is not None and self.wanted.where == "repair"
        return BranchPoint(live.said, live.calls) if mends and len(live.said.ids) < live.max_tokens else None

    def begin(
        self, live: LiveRollout, point: BranchPoint, calls: ToolCalls, worlds: int, now: float
    ) -> list[LiveRollout]:
        """Starts the rollout's branches at that point, with room for `worlds` worlds, and returns them; empty if
        impossible."""
        count = self.left(live)
        if needs_world(live.assignment.task):
            count = min(count, worlds)
        if self.wanted is None or count <= 0:
            return []
        try:
            sessions = point.sessions(live.session, count)
        except SandboxError as error:
            log.warning("%s could not branch: %s", live.assignment.id, error)
            live.branches = count
            return []
        self._made += count
        first = self._first_sample + live.assignment.sample * self.wanted.each
        return [
            live.branch(point, session, world, first + number, now)
            for number, (session, world) in enumerate(zip(sessions, calls.fork(point, live, count), strict=True))
        ]

    def _at_failure(self, live: LiveRollout) -> bool:
        return self.wanted is not None and self.wanted.at_failures and has_come_some_way(live.said.nodes)
