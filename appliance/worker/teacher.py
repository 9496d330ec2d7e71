"""Has a model behind an OpenAI-compatible API work on training tasks, with our tool in our sandboxes.

What always holds: what comes back is a `RecordedTrace`, which nothing is learned from before it was verified
(`traces`); the API is one on this machine: no proxy of the environment is used and no redirection followed, so no
question leaves it. What the teacher writes is hostile like any model's: its calls are JSON or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from appliance.agent.isolation import tier_of
from appliance.agent.parsing import shown
from appliance.learning.stages import TeacherRecipe
from appliance.local_api import LocalApi
from appliance.records.rollouts import Purpose
from appliance.worker.traces import RecordedTrace, code_of
from curriculum.contract.task import Task
from policies.policy import Policy
from runtime.sandbox import SessionPool

TOGETHER = 8
"""Conversations with the teacher at once."""
_TOOL = {
    "type": "function",
    "function": {
        "name": "python",
        "description": "Runs Python; what it prints comes back. Names stay from call to call.",
        "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
    },
}


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
        self._max_calls = max_calls
        self._max_result_chars = max_result_chars

    def __enter__(self) -> Teacher:
        self._api.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._api.__exit__(*error)

    def traces(self, tasks: Sequence[Task], *, caller: str) -> list[RecordedTrace]:
        """Its tries at each task, in the order of the tasks; those that it gave up are left out.

        Raises InfrastructureError when the API does not answer, RefusedError without isolation."""
        asked = [
            (task, sample, f"{caller}.teacher.{task.id}.{sample}")
            for task in tasks
            for sample in range(self._recipe.samples)
        ]
        with ThreadPoolExecutor(TOGETHER, thread_name_prefix="teacher") as pool:
            found = pool.map(lambda one: self._try(*one), asked)
            return [one for one in found if one is not None]

    def _try(self, task: Task, sample: int, caller: str) -> RecordedTrace | None:
        messages: list[dict[str, Any]] = [{"role": one.role, "content": one.text} for one in task.messages]
        calls: list[str] = []
        session = None
        try:
            while True:
                said = self._turn(messages, sample)
                if not said.tool_calls:
                    source = f"{self._recipe.base_url} {self._recipe.model}"
                    return RecordedTrace(task=task, calls=tuple(calls), last=said.content or "", source=source)
                if len(calls) + len(said.tool_calls) > self._max_calls:
                    return None
                messages.append(said.model_dump(exclude_none=True))
                for call in said.tool_calls:
                    try:
                        code = code_of({"name": call.function.name, "arguments": call.function.arguments})
                    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                        return None
                    if session is None:
                        tier = tier_of(self._policy, Purpose.TRAIN, task.taskset)
                        session = self._sessions.open(tier=tier, caller=caller)
                    result = shown(session.start(code).result(), self._max_result_chars)
                    calls.append(code)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        finally:
            if session is not None:
                session.close()

    def _turn(self, messages: list[dict[str, Any]], sample: int) -> Any:
        recipe = self._recipe
        return self._api.say(
            messages, temperature=recipe.temperature, max_tokens=recipe.max_tokens, seed=sample, tools=[_TOOL]
        ).message
