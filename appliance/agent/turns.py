"""Reading one finished turn: a tool call, a final answer, or something that is neither.

Pure: text in, meaning out. What cannot be read is not an exception; it goes back to the policy model as a tool result.
"""

from __future__ import annotations

from dataclasses import dataclass

from appliance.agent.dialect import Dialect
from runtime.sandbox import CallResult, CallStatus

BOX = "\\boxed{"

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


@dataclass(frozen=True)
class Final:
    answer: str | None
    """The text in the box when there is exactly one."""
    answers: int


def read_turn(text: str, dialect: Dialect) -> ToolRequest | Malformed | Final:
    """Meaning of a turn's text, its end marker removed."""
    body = text.lstrip()
    if body.startswith(dialect.tool):
        code = body[len(dialect.tool) :]
        if any(marker.strip() in code for marker in (dialect.tool, dialect.user, dialect.assistant, dialect.result)):
            return Malformed(code, "a marker inside the code")
        return ToolRequest(code) if code.strip() else Malformed(code, "empty call")
    if dialect.tool in body:
        return Malformed(body, "a call must begin the turn")
    boxes = boxed(body)
    return Final(boxes[0] if len(boxes) == 1 else None, len(boxes))


def boxed(text: str) -> list[str]:
    r"""The contents of every `\boxed{...}`, braces balanced. A box that never closes is counted with what it holds.

    >>> boxed(r"so \boxed{\frac{1}{2}}")
    ['\\frac{1}{2}']
    """
    found: list[str] = []
    start = text.find(BOX)
    while start >= 0:
        depth, at = 1, start + len(BOX)
        while at < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        found.append(text[start + len(BOX) : at - 1 if depth == 0 else at])
        start = text.find(BOX, at)
    return found


def shown(result: CallResult, limit: int) -> str:
    """What the policy model sees of a call, at most `limit` characters."""
    output = result.output.strip()
    if result.status is CallStatus.OK:
        return output[:limit]
    words = result.error if result.status is CallStatus.EXCEPTION else f"error: {_WORDS[result.status]}"
    return (f"{output}\n{words}" if output else words)[:limit]
