"""The client of a world of orchestration: starts servers, lists their tools, forwards calls. It runs in the guest.

What always holds: each server is a process of its own that speaks the Model Context Protocol on its standard input and
output, by the SDK; nothing else connects it to this one. A server that does not answer in time, ends, or says what is
no answer breaks the world; what it says is text for the model and nothing else. Nothing that it asks for is done.
"""

import asyncio
import contextlib
import functools
import os
import sys
from typing import TYPE_CHECKING, Any

import anyio
import mcp
import mcp_types
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError as ServerToolError
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

if TYPE_CHECKING:
    from curriculum.environments.orchestration.services import SERVICES, TOOLS

    SETUP: dict[str, Any] = {}
    ToolError = Exception

SECONDS = 1.7
"""For one call of the world, the start of a server included: less than a call may take."""
LINE_BYTES = 1 << 18
SHOWN = 4_000


def told(tool: Any) -> Any:
    """The tool, whose complaints about arguments reach who called it."""

    @functools.wraps(tool)
    def complaining(**arguments: Any) -> Any:
        try:
            return tool(**arguments)
        except ValueError as error:
            raise ServerToolError(str(error)) from None

    return complaining


def serve(name: str) -> None:
    """Is a server, until its input ends."""
    service = SERVICES[name](SETUP["seed"], SETUP["day"])
    server = MCPServer(name, instructions=SERVICES[name].__doc__, log_level="CRITICAL")
    for tool in TOOLS[name]:
        server.add_tool(told(getattr(service, tool)), structured_output=False)
    server.run("stdio")


def started(name: str) -> "tuple[int, int]":
    """Forks a server, and gives the descriptors of its output and its input."""
    to_read, to_write = os.pipe(), os.pipe()
    if os.fork():
        os.close(to_read[0])
        os.close(to_write[1])
        return to_write[0], to_read[1]
    try:
        os.dup2(to_read[0], 0)
        os.dup2(to_write[1], 1)
        silent = os.open(os.devnull, os.O_RDWR)
        os.dup2(silent, 2)
        os.closerange(3, 1024)
        sys.stdin, sys.stdout = os.fdopen(0, "r"), os.fdopen(1, "w")
        serve(name)
    finally:
        os._exit(0)


@contextlib.asynccontextmanager
async def pipes(output: int, into: int) -> Any:
    """The SDK's streams over the descriptors: a message a line."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(output, "rb", 0))
    os.set_blocking(into, False)
    received, read_stream = anyio.create_memory_object_stream[Any](0)
    write_stream, sent = anyio.create_memory_object_stream[Any](0)

    async def read() -> None:
        async with received:
            with contextlib.suppress(ValueError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                while line := await reader.readline():
                    await received.send(
                        SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
                    )

    async def write() -> None:
        async with sent:
            async for message in sent:
                data = (message.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n").encode()
                while data:
                    try:
                        data = data[os.write(into, data) :]
                    except BlockingIOError:
                        await asyncio.sleep(0.005)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield read_stream, write_stream
        finally:
            tasks.cancel_scope.cancel()


class Broken(Exception):
    """A server that cannot be talked to."""


class Clients:
    """The servers of the world, each with its client, which a task of the loop holds; begun when first asked for."""

    def __init__(self, names: "list[str]") -> None:
        self.names = names
        self.loop = asyncio.new_event_loop()
        self.held: dict[str, asyncio.Task[None]] = {}
        self.clients: dict[str, Any] = {}
        self.tools: dict[str, dict[str, Any]] = {}
        self.until = 0.0

    async def hold(self, name: str, ready: "asyncio.Future[None]") -> None:
        output, into = started(name)
        async with mcp.Client(pipes(output, into), read_timeout_seconds=SECONDS) as client:
            listed = await client.list_tools()
            self.tools[name] = {tool.name: tool for tool in listed.tools}
            self.clients[name] = client
            ready.set_result(None)
            await asyncio.Event().wait()

    async def first(self, name: str, what: Any) -> Any:
        """Its result, unless the server ends before it, or takes too long."""
        done = asyncio.ensure_future(what)
        await asyncio.wait(
            {done, self.held[name]}, timeout=self.until - self.loop.time(), return_when=asyncio.FIRST_COMPLETED
        )
        if not done.done():
            raise Broken(f"the server {name} ended, or did not answer in {SECONDS} s")
        return done.result()

    def begin(self, name: str) -> None:
        async def begun() -> None:
            ready = self.loop.create_future()
            self.held[name] = self.loop.create_task(self.hold(name, ready))
            await self.first(name, ready)

        if name not in self.clients:
            self.loop.run_until_complete(begun())

    def call(self, server: str, tool: str, arguments: "dict[str, Any]") -> Any:
        return self.loop.run_until_complete(self.first(server, self.clients[server].call_tool(tool, arguments)))


CLIENTS = Clients(list(SETUP["servers"]))


def plain(text: str) -> str:
    """Bounded, without control characters."""
    shown = "".join(one if one.isprintable() or one == "\n" else "?" for one in text[: SHOWN + 1])
    return shown if len(shown) <= SHOWN else shown[:SHOWN] + " ... (cut)"


def list_tools(server: "str | None") -> str:
    if server is None:
        return "\n".join(f"{name}: {SERVICES[name].__doc__}" for name in CLIENTS.names)
    lines = []
    for name, tool in known(server).items():
        arguments = ", ".join(
            f"{one}: {about.get('type', 'any')}" for one, about in (tool.input_schema.get("properties") or {}).items()
        )
        lines.append(f"{name}({arguments}): {' '.join((tool.description or '').split())}")
    return plain("\n".join(lines))


def known(server: str) -> "dict[str, Any]":
    """The tools of that server, which is begun when it is not yet."""
    if server not in CLIENTS.names:
        raise ToolError(f"there is no server {server[:40]!r}; there are {', '.join(CLIENTS.names)}")
    CLIENTS.begin(server)
    return CLIENTS.tools[server]


def call_tool(server: str, tool: str, arguments: "dict[str, Any]") -> str:
    tools = known(server)
    if tool not in tools:
        raise ToolError(f"{server} has no tool {tool[:40]!r}; it has {', '.join(tools)}")
    try:
        result = CLIENTS.call(server, tool, arguments)
    except MCPError as error:
        if error.code in (-32601, -32602):
            raise ToolError(plain(f"arguments refused: {error}")) from None
        raise
    text = "\n".join(one.text if one.type == "text" else f"({one.type})" for one in result.content)
    if result.is_error:
        fault = "arguments refused: " if "validation error" in text else ""
        raise ToolError(plain(f"{fault}{text}"))
    return plain(text)


def call(tool: str, arguments: "dict[str, Any]") -> str:
    CLIENTS.until = CLIENTS.loop.time() + SECONDS
    if tool == "list_tools":
        return list_tools(arguments.get("server"))
    return call_tool(arguments["server"], arguments["tool"], arguments.get("arguments", {}))
