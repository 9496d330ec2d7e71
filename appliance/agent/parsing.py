"""Formats tool results for the policy model. Pure."""

from __future__ import annotations

from curriculum.worlds.world import WorldReply
from runtime.sandbox import CallResult, CallStatus

_MESSAGES = {
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


def shown(result: CallResult | WorldReply, limit: int) -> str:
    """Returns the text of a tool result as the policy model sees it, at most `limit` characters."""
    if isinstance(result, WorldReply):
        return (f"error: {result.text}" if result.failed else result.text)[:limit]
    output = result.output.strip()
    if result.status is CallStatus.OK:
        return output[:limit]
    message = result.error if result.status is CallStatus.EXCEPTION else f"error: {_MESSAGES[result.status]}"
    return (f"{output}\n{message}" if output else message)[:limit]
