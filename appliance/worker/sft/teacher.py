"""Teacher model behind an OpenAI-compatible API: solves training tasks with our tool in our sandboxes.

Invariants: it returns `RecordedTrace`s, which must be verified before training (`traces`); the API runs on this machine
(`inference.http.local_api`), so no question leaves it. A failed conversation does not affect others.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from pydantic import ValidationError

from appliance.agent.api_conversation import ApiSampling, converse, refuses
from appliance.agent.assignment import tier_of
from appliance.agent.calls import LOST
from appliance.inference.http.local_api import LocalApi, TooLongError
from appliance.learning.recipes.stages import TeacherRecipe
from appliance.records.rollouts import Purpose, RolloutEnd, ToolStatus
from appliance.worker.sft.traces import RecordedTrace
from curriculum.contract.task import Task
from policies.policy import Policy
from runtime.errors import InfrastructureError, SandboxError
from runtime.sandbox import SessionPool

TOGETHER = 8
"""Concurrent conversations with the teacher."""
MOST_LOST = 16
"""Consecutive conversations lost, except too long ones, after which the API or the sandboxes count as down."""


@dataclass(frozen=True)
class TeacherTally:
    """Outcome of a teacher model's attempts at tasks."""

    traces: tuple[RecordedTrace, ...]
    lost: int
    """Attempts lost to infrastructure errors, or not started because it was down."""
    failure: str
    """Message of the last infrastructure error."""
    down: bool
    """True if `MOST_LOST` in a row were lost and the teacher was stopped."""


class Teacher:
    """Context manager for conversations with one teacher model."""

    def __init__(
        self, recipe: TeacherRecipe, sessions: SessionPool, policy: Policy, *, max_calls: int, max_result_chars: int
    ) -> None:
        """Creates a client of a teacher model's local API. Raises EndpointError for a URL that leaves this machine."""
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

    def traces(self, tasks: Sequence[Task], *, caller: str) -> TeacherTally:
        """Asks the teacher model to attempt the tasks; returns its conversations in task order. Skips attempts that it
        gave up, and tasks that need tools other than Python. Raises InfrastructureError when every conversation failed,
        RefusedError without isolation."""
        asked = [
            (task, sample, f"{caller}.teacher.{task.id}.{sample}")
            for task in tasks
            if not refuses(task)
            for sample in range(self._recipe.samples)
        ]
        with ThreadPoolExecutor(TOGETHER, thread_name_prefix="teacher") as pool:
            tries = [pool.submit(self._try, *one) for one in asked]
            try:
                return _gathered(tries)
            finally:
                for one in tries:
                    one.cancel()

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


def _gathered(tries: Sequence[Future[RecordedTrace | None]]) -> TeacherTally:
    found: list[RecordedTrace] = []
    ended = in_a_row = 0
    failure: SandboxError | None = None
    for one in tries:
        try:
            trace = one.result()
        except LOST as error:
            failure = error
            in_a_row += not isinstance(error, TooLongError)
            if in_a_row == MOST_LOST:
                break
        else:
            ended, in_a_row = ended + 1, 0
            if trace is not None:
                found.append(trace)
    if failure is not None and not ended:
        raise InfrastructureError(f"every conversation with the teacher failed: {failure}", hint=failure.hint)
    return TeacherTally(tuple(found), len(tries) - ended, str(failure or ""), in_a_row == MOST_LOST)
