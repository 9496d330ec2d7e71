"""Conversation with a model behind an OpenAI-compatible API, with our tool in our sandboxes.

Invariants: the model's output is hostile: a call is valid JSON or rejected, and runs in a session of its own. A failing
sandbox raises; every fault of the model is reported in how the conversation ended.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from appliance.agent.texts import messages_for_chat, shown
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
    """Sampling parameters and limits of a conversation with an API model."""

    temperature: float
    max_tokens: int
    """Maximum tokens per turn."""
    max_calls: int
    max_result_chars: int


@dataclass(frozen=True)
class ApiConversation:
    """Calls and last turn of a conversation with an API model."""

    calls: tuple[ToolCall, ...]
    last: str
    """Text of the last turn; empty without one."""
    ended: RolloutEnd


def refuses(task: Task) -> str:
    """Returns the reason that an API model cannot get this task, as a sentence; empty if it can."""
    if task.environment != "python" or not set(task.tools) <= {"python"}:
        return "a model behind an API supports only tasks with Python or no tool"
    return ""


def converse(
    api: LocalApi, task: Task, sessions: SessionPool, tier: Tier, sampling: ApiSampling, *, seed: int, caller: str
) -> ApiConversation:
    """Runs a conversation of an API model on a task, with its tool calls. Raises InfrastructureError if the API or a
    sandbox fails, LimitError and BusyError without a free slot, RefusedError without isolation, TooLongError for a task
    beyond the context."""
    messages: list[dict[str, Any]] = [{"role": one.role, "content": one.text} for one in messages_for_chat(task)]
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
    """Returns the code of a call to the tool `python`. Raises ValueError for any other call."""
    if function["name"] != "python":
        raise ValueError(f"unknown tool {function['name']!r}")
    arguments = function["arguments"]
    code = (json.loads(arguments) if isinstance(arguments, str) else arguments)["code"]
    if not isinstance(code, str):
        raise ValueError("a call's code must be text")
    code.encode()  # raises ValueError for a lone surrogate, which a record cannot store
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
