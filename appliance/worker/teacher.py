"""Has a model behind an OpenAI-compatible API work on training tasks, with our tool in our sandboxes.

What always holds: what comes back is a `RecordedTrace`, which nothing is learned from before it was verified
(`traces`); the API is one on this machine (`appliance.inference.local_api`), so no question leaves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pydantic import ValidationError

from appliance.agent.api_conversation import ApiSampling, converse, refuses
from appliance.agent.isolation import tier_of
from appliance.inference.local_api import LocalApi
from appliance.learning.stages import TeacherRecipe
from appliance.records.rollouts import Purpose, RolloutEnd, ToolStatus
from appliance.worker.traces import RecordedTrace
from curriculum.contract.task import Task
from policies.policy import Policy
from runtime.sandbox import SessionPool

TOGETHER = 8
"""Conversations with the teacher at once."""


class Teacher:
    """Context manager. Asks one model."""

    def __init__(
        self, recipe: TeacherRecipe, sessions: SessionPool, policy: Policy, *, max_calls: int, max_result_chars: int
    ) -> None:
        """Raises EndpointError for a URL that leaves this machine."""
        self._api = LocalApi(recipe.base_url, recipe.model)
        self._recipe = recipe
        self._sessions = sessions
        self._policy = policy
        self._sampling = ApiSampling(
            temperature=recipe.temperature,
            max_tokens=recipe.max_tokens,
            max_calls=max_calls,
            max_result_chars=max_result_chars,
        )

    def __enter__(self) -> Teacher:
        self._api.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._api.__exit__(*error)

    def traces(self, tasks: Sequence[Task], *, caller: str) -> list[RecordedTrace]:
        """Its tries at each task, in the order of the tasks; those that it gave up, and tasks that need other tools
        than Python, are left out.

        Raises InfrastructureError when the API does not answer, RefusedError without isolation."""
        asked = [
            (task, sample, f"{caller}.teacher.{task.id}.{sample}")
            for task in tasks
            if not refuses(task)
            for sample in range(self._recipe.samples)
        ]
        with ThreadPoolExecutor(TOGETHER, thread_name_prefix="teacher") as pool:
            found = pool.map(lambda one: self._try(*one), asked)
            return [one for one in found if one is not None]

    def _try(self, task: Task, sample: int, caller: str) -> RecordedTrace | None:
        tier = tier_of(self._policy, Purpose.TRAIN, task.taskset)
        made = converse(self._api, task, self._sessions, tier, self._sampling, seed=sample, caller=caller)
        if made.ended is not RolloutEnd.ANSWERED or any(one.status is ToolStatus.PARSE_ERROR for one in made.calls):
            return None
        source = f"{self._recipe.base_url} {self._recipe.model}"
        try:
            return RecordedTrace(task=task, calls=tuple(one.code for one in made.calls), last=made.last, source=source)
        except ValidationError:
            return None  # no text, or more calls than a conversation may have
