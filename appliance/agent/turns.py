"""Reading one finished turn: a tool call, a final answer, or something that is neither.

Pure: text in, meaning out. What cannot be read is not an exception; it goes back to the policy model as a tool result.
"""

from __future__ import annotations

from dataclasses import dataclass

from appliance.agent.answers import AnswerForm, Final, final_answer
from appliance.agent.dialect import Dialect
from runtime.sandbox import CallResult, CallStatus

_WORDS = {
    CallStatus.TIMEOUT: "timeout",
    CallStatus.CPU: "cpu time used up",
    CallStatus.EXPIRED: "sandbox expired",
    CallStatus.MEMORY: "memory",
    CallStatus.PIDS: "too many processes",
    CallStatus.DISK: "disk full",
    CallStatus.FILES: "too many open files",
    CallStatus.OUTPUT: "output",
    CallStatus.CALLS: "no calls left",
    CallStatus.DIED: "died",
}


@dataclass(frozen=True)
class ToolRequest:
    code: str


@dataclass(frozen=True)
class Malformed:
    """A call that cannot be run."""

    code: str
    reason: str


def read_turn(text: str, dialect: Dialect, form: AnswerForm = AnswerForm.BOXED) -> ToolRequest | Malformed | Final:
    """Meaning of a turn's text, its end marker removed; `form` is that of a final answer."""
    body = text.lstrip()
    if body.startswith(dialect.tool):
        code = body[len(dialect.tool) :]
        if any(marker.strip() in code for marker in (dialect.tool, dialect.user, dialect.assistant, dialect.result)):
            return Malformed(code, "a marker inside the code")
        return ToolRequest(code) if code.strip() else Malformed(code, "empty call")
    if dialect.tool in body:
        return Malformed(body, "a call must begin the turn")
    return final_answer(text, form)


def shown(result: CallResult, limit: int) -> str:
    """What the policy model sees of a call, at most `limit` characters."""
    output = result.output.strip()
    if result.status is CallStatus.OK:
        return output[:limit]
    words = result.error if result.status is CallStatus.EXCEPTION else f"error: {_WORDS[result.status]}"
    return (f"{output}\n{words}" if output else words)[:limit]
