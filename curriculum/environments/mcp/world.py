"""Runs an owner's MCP server and speaks to it, over its standard input and output. It runs in the guest.

What always holds: the server is a process of its own inside this sandbox, started as `python -m` would. It is asked one
thing at a time. One that ends, floods, answers with another id or says what is no message breaks the world; what it
notifies is dropped, and what it asks for (sampling, elicitation, roots) is refused. No clock is read: the host ends a
call that takes too long. What it lists is read once, and has to be what was listed when the task was made.
"""

import hashlib
import json
import os
import runpy
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curriculum.environments.foreign.serving import Errors, fork_server

    SETUP: dict[str, Any] = {}
    ToolError = Exception

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Of the protocol, those that begin with a handshake. The first one is offered."""
MESSAGES, BYTES = 200, 1 << 19
"""That a server may say until it has answered."""
MOST_PAGES, MOST_TOOLS = 16, 64
PAGE_BYTES = 9_000
PARTS = 50
SHOWN = 6_000
NOT_DONE = {"code": -32601, "message": "this client does nothing for a server"}


class LostServer(Exception):
    """Says that the server is at fault; the world is lost."""


class Wire:
    """The pipes to the server. They are no data of the world: a server may say something at any time."""

    __slots__ = ("_asked", "_errors", "_into", "_left", "_output", "_rest")

    def __init__(self, output: int, into: int, errors: "Errors") -> None:
        self._output, self._into, self._errors = output, into, errors
        self._rest, self._asked, self._left = b"", 0, BYTES

    def ask(self, method: str, params: "dict[str, Any]") -> "dict[str, Any]":
        """The answer to it, which has a `result` or an `error`. Raises LostServer."""
        self._asked, self._left = self._asked + 1, BYTES
        self.say({"id": self._asked, "method": method, "params": params})
        for _ in range(MESSAGES):
            message = self._message()
            if "method" not in message:
                if message.get("id") != self._asked or isinstance(message.get("id"), bool | float):
                    raise LostServer("it answers what nobody asked")
                return message
            if "id" in message:
                done = {"result": {}} if message["method"] == "ping" else {"error": NOT_DONE}
                self.say({"id": message["id"], **done})
        raise LostServer(f"it said {MESSAGES} things and did not answer")

    def say(self, message: "dict[str, Any]") -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._into, data) :]
        except OSError:
            raise LostServer(self._gone()) from None

    def _message(self) -> "dict[str, Any]":
        while (end := self._rest.find(b"\n")) < 0:
            said = os.read(self._output, 65_536)
            self._left -= len(said)
            if not said:
                raise LostServer(self._gone())
            if self._left < 0:
                raise LostServer(f"it said more than {BYTES} bytes and did not answer")
            self._rest += said
        line, self._rest = self._rest[:end], self._rest[end + 1 :]
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise LostServer("it said what is no message") from None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise LostServer("it said what is no message")
        return message

    def _gone(self) -> str:
        why = self._errors.last()
        return f"it is gone{': ' if why else ''}{why}"


def serve() -> None:
    sys.argv = [SETUP["package"], *SETUP.get("arguments", ())]
    runpy.run_module(SETUP["package"], run_name="__main__", alter_sys=True)


def started() -> Wire:
    """Forks the server. The end of what it prints to its standard error is shown if it dies."""
    to_server, from_server = os.pipe(), os.pipe()
    errors = fork_server(serve, to_server[0], from_server[1])
    os.close(to_server[0])
    os.close(from_server[1])
    return Wire(from_server[0], to_server[1], errors)


def result_of(answer: "dict[str, Any]") -> "dict[str, Any]":
    result = answer.get("result")
    if not isinstance(result, dict):
        raise LostServer("it refuses to begin, or to list its tools")
    return result


def begun() -> Wire:
    wire = started()
    client = {"name": "assay", "version": "1"}
    said = result_of(wire.ask("initialize", {"protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": client}))
    if said.get("protocolVersion") not in VERSIONS:
        raise LostServer("it speaks a version of the protocol that is not known here")
    wire.say({"method": "notifications/initialized"})
    return wire


def all_listed(wire: Wire) -> "list[dict[str, Any]]":
    """What the server says of its tools, as far as a model is told."""
    found: list[dict[str, Any]] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = result_of(wire.ask("tools/list", {} if cursor is None else {"cursor": cursor}))
        tools, cursor = page.get("tools"), page.get("nextCursor")
        if not isinstance(tools, list) or not all(isinstance(one, dict) for one in tools):
            raise LostServer("it lists what are no tools")
        found += [
            {"name": one.get("name"), "description": one.get("description", ""), "parameters": one.get("inputSchema")}
            for one in tools
        ]
        if len(found) > MOST_TOOLS:
            raise LostServer(f"it lists more than {MOST_TOOLS} tools")
        if not isinstance(cursor, str):
            return found
    raise LostServer(f"its list of tools has more than {MOST_PAGES} pages")


def shown(text: str) -> str:
    """Bounded, without control characters."""
    plain = "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text[: SHOWN + 1])
    return plain if len(plain) <= SHOWN else plain[:SHOWN] + " ... (cut)"


def told(value: Any) -> str:
    return shown(json.dumps(value, ensure_ascii=False, sort_keys=True))


def list_served_tools(first: int) -> str:
    page: list[Any] = []
    taken = 0
    for tool in TOOLS[first:]:
        taken += len(json.dumps(tool, ensure_ascii=False).encode("utf-8", "replace"))
        if taken > PAGE_BYTES and page:
            break
        page.append(tool)
    if not page:
        raise ToolError("the server lists no tool")
    if taken > PAGE_BYTES and len(page) == 1:
        raise ToolError(f"the server's tool {told(page[0]['name'])[:60]} is described in more than {PAGE_BYTES} bytes")
    return json.dumps({"digest": LISTED, "count": len(TOOLS), "tools": page}, ensure_ascii=False)


def asked(called: str, arguments: "dict[str, Any]") -> "dict[str, Any]":
    """What a tool of the server gives. Raises ToolError for what it refuses, LostServer."""
    answer = WIRE.ask("tools/call", {"name": called, "arguments": arguments})
    result, error = answer.get("result"), answer.get("error")
    if isinstance(error, dict):
        raise ToolError(f"refused: {told(error.get('message'))}")
    if not isinstance(result, dict):
        raise LostServer("it gives neither a result nor an error")
    if result.get("isError") is True:
        raise ToolError(text_of(result))
    return result


def text_of(result: "dict[str, Any]") -> str:
    parts = result.get("content", [])
    if not isinstance(parts, list) or len(parts) > PARTS or not all(isinstance(one, dict) for one in parts):
        raise LostServer(f"it gives a result that is no list of at most {PARTS} parts")
    texts = [
        one["text"] if one.get("type") == "text" and isinstance(one.get("text"), str) else f"({one.get('type')})"
        for one in parts
    ]
    return shown("\n".join(texts)) if texts else told(result.get("structuredContent", ""))


def call(tool: str, arguments: "dict[str, Any]") -> str:
    if not SETUP.get("listed"):
        if tool != "list_served_tools":
            raise ToolError(f"there is no tool {tool!r} in a world that makes tasks")
        return list_served_tools(**arguments)
    if tool not in CALLED:
        raise ToolError(f"there is no tool {tool!r} in this world")
    return text_of(asked(CALLED[tool], arguments))


def score() -> "float | None":
    """What the server's own tool says that the world came to; None where it says no number."""
    result = asked(SETUP["score"], {})
    text = text_of(result)
    try:
        return float(text)
    except ValueError:
        return None


def submission() -> str:
    found = score() if SETUP.get("score") else None
    text = json.dumps({"reward": found if found is not None and abs(found) <= 1 else None})
    return json.dumps({"reward.json": {"text": text, "mode": "644"}})


WIRE = begun()
TOOLS = all_listed(WIRE)
LISTED = hashlib.sha256(json.dumps(TOOLS, sort_keys=True).encode()).hexdigest()
if SETUP.get("listed", "") not in ("", LISTED):
    raise LostServer("its tools are others than when the task was made")
CALLED = {one["name"]: one["called"] for one in SETUP.get("tools", ())}
