"""One conversation with a model behind an OpenAI-compatible API, with our tool in our sandboxes.

What always holds: what the model writes is hostile: its calls are JSON or nothing, and run in a session of their own. A
sandbox that failed on its own account raises; all that the model does wrong is told in how the conversation ended.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from appliance.agent.parsing import shown
from appliance.inference.http.local_api import LocalApi, TooLongError
from appliance.records.rollouts import RolloutEnd, ToolCall, ToolStatus
from curriculum.contract.task import Task
from runtime.sandbox import CallResult, Session, SessionPool, Tier

TOOL = {
    "type": "function",
    "function": {
        "name": "python",
        "description": "Runs Python; what it prints comes back. Names stay from call to call.",
        "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
    },
}


@dataclass(frozen=True)
class ApiSampling:
    """How a conversation is sampled, and what it may use up."""

    temperature: float
    max_tokens: int
    """Of one turn."""
    max_calls: int
    max_result_chars: int


@dataclass(frozen=True)
class ApiConversation:
    """What became of a conversation."""

    calls: tuple[ToolCall, ...]
    last: str
    """The last turn's text; empty where it came to none."""
    ended: RolloutEnd


def refuses(task: Task) -> str:
    """Why such a model cannot be asked this, in a sentence; empty when it can."""
    if task.environment != "python" or not set(task.tools) <= {"python"}:
        return "a model behind an API is asked only what needs Python or no tool"
    return ""


def converse(
    api: LocalApi, task: Task, sessions: SessionPool, tier: Tier, sampling: ApiSampling, *, seed: int, caller: str
) -> ApiConversation:
    """Has it work on a task. Raises InfrastructureError when the API gives no answer or a sandbox fails, LimitError and
    BusyError where there is no place, RefusedError without isolation, TooLongError for a task that it cannot read."""
    messages: list[dict[str, Any]] = [{"role": one.role, "content": one.text} for one in task.messages]
    most = sampling.max_calls if task.turns is None else min(task.turns, sampling.max_calls)
    calls: list[ToolCall] = []
    session: Session | None = None
    try:
        while True:
            try:
                choice = api.say(
                    messages,
                    temperature=sampling.temperature,
                    max_tokens=sampling.max_tokens,
                    seed=seed,
                    tools=[TOOL] if task.tools else (),
                )
            except TooLongError:
                if not calls:
                    raise
                return ApiConversation(tuple(calls), "", RolloutEnd.TOKENS)
            said = choice.message
            if choice.finish_reason == "length":
                return ApiConversation(tuple(calls), "", RolloutEnd.TOKENS)
            if not said.tool_calls:
                return ApiConversation(tuple(calls), said.content or "", RolloutEnd.ANSWERED)
            if len(calls) + len(said.tool_calls) > most:
                return ApiConversation(tuple(calls), "", RolloutEnd.TURNS)
            messages.append(said.model_dump(exclude_none=True, warnings=False))
            for asked in said.tool_calls:
                code = _code(asked) if task.tools else None
                if code is None:
                    calls.append(ToolCall(code="", status=ToolStatus.PARSE_ERROR, error="no call of the tool python"))
                    text = "error: no call of the tool python"
                else:
                    if session is None:
                        files = {name: content.encode() for name, content in task.files.items()}
                        given: dict[str, Any] = {"files": files} if files else {}
                        session = sessions.open(tier=tier, caller=caller, **given)
                    result = session.start(code).result()
                    calls.append(_recorded(code, result))
                    text = shown(result, sampling.max_result_chars)
                messages.append({"role": "tool", "tool_call_id": asked.id, "content": text})
    finally:
        if session is not None:
            session.close()


def _code(asked: Any) -> str | None:
    try:
        return code_of({"name": asked.function.name, "arguments": asked.function.arguments})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def code_of(function: Any) -> str:
    """Reads the code of a call to the tool `python`. Raises ValueError for any other call."""
    if function["name"] != "python":
        raise ValueError(f"there is no tool {function['name']!r}")
    arguments = function["arguments"]
    code = (json.loads(arguments) if isinstance(arguments, str) else arguments)["code"]
    if not isinstance(code, str):
        raise ValueError("a call's code is a text")
    code.encode()  # raises ValueError for half of a character, which no record takes
    return code


def _recorded(code: str, result: CallResult) -> ToolCall:
    return ToolCall(
        code=code,
        status=ToolStatus(result.status.value),
        output=result.output,
        error=result.error,
        seconds=result.seconds,
        tier=result.tier,
        sandbox=result.sandbox,
    )
