"""Limits of training rollouts, adapted to earlier steps: tool calls and tokens.

Invariants: a step's limits are a pure function of the recorded steps before it and the newest checkpoint's notes.
Held-out and sealed questions get everything the agent allows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from appliance.learning.limits.rollout_limits import StragglerLimits, TurnBudget
from appliance.learning.recipes.recipe import Recipe
from appliance.learning.signal.grouping import is_masked, of_attempts
from appliance.records.rollouts import Rollout, RolloutEnd
from appliance.records.training import Judged
from appliance.worker.setup.progress import CycleProgress
from appliance.worker.training.proposer import of_solvers
from curriculum.contract.task import Task
from curriculum.difficulty import Seen


class RolloutLimits:
    """Rollout limits of one training part."""

    def __init__(self, recipe: Recipe, progress: CycleProgress) -> None:
        self._recipe, self._training, self._progress = recipe, recipe.training, progress
        self._turns = self._training.turns.begun(recipe.agent.max_calls)
        self._stragglers = StragglerLimits()

    def restore(self, notes: Mapping[str, Any]) -> None:
        """Restores the rollout limits from a checkpoint's notes."""
        if self._turns is not None and "turns" in notes:
            self._turns = TurnBudget.model_validate(notes["turns"])
        self._stragglers = StragglerLimits.model_validate(notes.get("stragglers", {}))

    def notes(self) -> dict[str, Any]:
        """Returns the rollout limits in the form of a checkpoint's notes."""
        turns = {} if self._turns is None else {"turns": self._turns.model_dump(mode="json")}
        cuts = {"stragglers": self._stragglers.model_dump(mode="json")} if self._training.stragglers.past else {}
        return {**turns, **cuts}

    @property
    def max_calls(self) -> int | None:
        """Maximum tool calls per rollout; None leaves the limit to the agent."""
        return None if self._turns is None else self._turns.calls

    def max_completion(self, step: int) -> dict[str, int]:
        """Returns completion token limits by taskset for this step, below the agent's."""
        return self._stragglers.of_step(step, self._training.stragglers, self._training.max_staleness)

    def observe(self, step: int, seen: Sequence[Seen], tasks: Iterable[Task], judged: Sequence[Judged]) -> None:
        """Updates the limits on calls and tokens of a rollout from a recorded step; reports a raised one."""
        if self._turns is not None:
            before, self._turns = (
                self._turns,
                self._turns.after(seen, self._training.turns, self._recipe.agent.max_calls),
            )
            if self._turns.calls > before.calls:
                text = f"from step {step + 1} on a rollout may make {self._turns.calls} tool calls"
                self._progress.say("turns", text, calls=float(self._turns.calls), before=float(before.calls))
        if self._training.stragglers.past:
            self._stragglers = self._stragglers.after(
                step, self._lengths(step, tasks, judged), self._training.stragglers, self._training.max_staleness
            )

    def figures(self, step: int, tasks: Iterable[Task], judged: Sequence[Judged]) -> dict[str, float]:
        """Returns a step's metrics: `turn_budget`, the highest `straggler_limit` in tokens, and the rollouts cut by
        one."""
        turns = {} if self._turns is None else {"turn_budget": float(self._turns.calls)}
        limits, asked = self.max_completion(step), {task.id: task for task in tasks}
        limits = {name: limit for name, limit in limits.items() if any(one.taskset == name for one in asked.values())}
        if not limits:
            return turns
        cut = sum(
            one.rollout.ended is RolloutEnd.TOKENS
            and limits.get(asked[one.rollout.task].taskset, 1 << 62) < self._room(asked[one.rollout.task], one.rollout)
            for one in of_solvers(judged)
            if one.rollout.task in asked
        )
        return {**turns, "straggler_limit": float(max(limits.values())), "stragglers_cut": float(cut)}

    def _lengths(self, step: int, tasks: Iterable[Task], judged: Sequence[Judged]) -> dict[str, list[int]]:
        """Returns completion tokens of rollouts by taskset, of rollouts with sampled tokens. Clips tool output beyond a
        limit, which nobody read."""
        limits, asked = self.max_completion(step), {task.id: task for task in tasks}
        found: defaultdict[str, list[int]] = defaultdict(list)
        for one in of_attempts(of_solvers(judged)):
            task = asked.get(one.rollout.task)
            if task is not None and one.rollout.sampled_tokens and not is_masked(one):
                most = min(self._room(task, one.rollout), limits.get(task.taskset, 1 << 62))
                found[task.taskset].append(min(most, completion_of(one.rollout)))
        return found

    def _room(self, task: Task, rollout: Rollout) -> int:
        """Maximum completion tokens of a rollout that agent and task allow."""
        most = self._recipe.agent.max_tokens
        return min(most, task.tokens or most) - len(rollout.nodes[0].ids)


def completion_of(rollout: Rollout) -> int:
    """Counts the tokens after a rollout's prompt, model and tool output, in its longest conversation."""
    longest = max((sum(len(node.ids) for node in sample) for sample in rollout.samples), default=0)
    return longest - sum(len(node.ids) for node in rollout.nodes[:1])
