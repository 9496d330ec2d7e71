"""The client of a world of orchestration: starts servers, lists their tools, forwards calls. It runs in the guest.

What always holds: the servers are processes of their own, ours one together, in which each speaks the Model Context
Protocol, as on standard input and output, over a pair of pipes; nothing else connects them to this one. Of servers that
others publish, which a world has where its file `given.json` says how they start, only the tools that it names are
offered. All begin with the world, and no call changes one. A server that ends, or says what is no answer, breaks the
world at once. No clock is read here: one that does not answer is waited for until the host ends the call, whose limit
is of the world's own time. What a server says is text for the model and nothing else; nothing that it asks for is done.
"""

import asyncio
import contextlib
import functools
import json
import os
import pathlib
import runpy
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

LINE_BYTES = 1 << 18
SHOWN = 4_000
GIVEN = pathlib.Path("given.json")
PUBLISHED: "dict[str, Any]" = {}
"""How each of the servers that others publish starts, and what is said of it."""
if GIVEN.exists():
    given = json.loads(GIVEN.read_text())
    PUBLISHED = given["servers"]
    os.environ |= given["environment"]
    for path, text in given["files"].items():
        pathlib.Path(path).parent.mkdir(exist_ok=True)
        pathlib.Path(path).write_text(text)


def told(tool: Any) -> Any:
    """Wraps a tool so that its ValueErrors about arguments reach the caller as tool errors."""

    @functools.wraps(tool)
    def complaining(**arguments: Any) -> Any:
        try:
            return tool(**arguments)
        except ValueError as error:
            raise ServerToolError(str(error)) from None

    return complaining


async def serve(name: str, output: int, into: int) -> None:
    """Is a server, until its input ends: what the SDK's `run_stdio_async` does, on descriptors of its own."""
    service = SERVICES[name](SETUP["seed"], SETUP["day"])
    server = MCPServer(name, instructions=SERVICES[name].__doc__, log_level="CRITICAL")
    for tool in TOOLS[name]:
        server.add_tool(told(getattr(service, tool)), structured_output=False)
    lowlevel = server._lowlevel_server
    async with pipes(output, into) as (received, sent):
        await lowlevel.run(received, sent, lowlevel.create_initialization_options())


async def serve_all(wires: "dict[str, tuple[int, int]]") -> None:
    async with anyio.create_task_group() as tasks:
        for name, (output, into) in wires.items():
            tasks.start_soon(serve, name, output, into)


def started(names: "list[str]") -> "dict[str, tuple[int, int]]":
    """Forks the processes of the servers, and gives the descriptors of each one's output and input. Ours have one for
    all, because a forked interpreter with the SDK is 50 MiB under gVisor, which copies what is written to by 2 MiB."""
    ways = {name: (os.pipe(), os.pipe()) for name in names}
    kept = {name: (to_server[0], from_server[1]) for name, (to_server, from_server) in ways.items()}
    silent = os.open(os.devnull, os.O_RDWR)
    for name in names:
        if name in PUBLISHED:
            apart(functools.partial(publish, **PUBLISHED[name]), (*kept[name], silent), ())
    ours = {name: ends for name, ends in kept.items() if name not in PUBLISHED}
    apart(functools.partial(anyio.run, serve_all, ours), (silent,) * 3, {end for ends in ours.values() for end in ends})
    for number in (silent, *(end for ends in kept.values() for end in ends)):
        os.close(number)
    return {name: (from_server[0], to_server[1]) for name, (to_server, from_server) in ways.items()}


def apart(run: Any, standard: "tuple[int, ...]", held: Any) -> None:
    """Forks a process that calls `run` with these as its standard input, output and errors, and holds no other file."""
    if os.fork():
        return
    try:
        for number, end in enumerate(standard):
            os.dup2(end, number)
        for number in range(3, 1024):
            if number not in held:
                with contextlib.suppress(OSError):
                    os.close(number)
        run()
    finally:
        os._exit(0)


def publish(package: str, arguments: "list[str]", **_: Any) -> None:
    """Is a server that others publish, started as by `python -m`."""
    sys.stdin, sys.stdout, sys.stderr = (open(n, "w" if n else "r", encoding="utf-8") for n in range(3))  # noqa: PTH123, SIM115
    sys.argv = [package, *arguments]
    runpy.run_module(package, run_name="__main__", alter_sys=True)


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
    """The servers of the world, each with its client, which a task of the loop holds."""

    def __init__(self, names: "list[str]") -> None:
        self.names = names
        self.loop = asyncio.new_event_loop()
        self.held: dict[str, asyncio.Task[None]] = {}
        self.clients: dict[str, Any] = {}
        self.tools: dict[str, dict[str, Any]] = {}
        self.wires = started(names)

    async def hold(self, name: str, ready: "asyncio.Future[None]") -> None:
        async with mcp.Client(pipes(*self.wires[name])) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            self.tools[name] = {one: listed[one] for one in PUBLISHED.get(name, {}).get("tools", listed)}
            self.clients[name] = client
            ready.set_result(None)
            await asyncio.Event().wait()

    async def first(self, name: str, what: Any) -> Any:
        """Its result, unless the server ends before it."""
        done = asyncio.ensure_future(what)
        await asyncio.wait({done, self.held[name]}, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            raise Broken(f"the server {name} ended")
        return done.result()

    def begin(self, name: str) -> None:
        async def begun() -> None:
            ready = self.loop.create_future()
            self.held[name] = self.loop.create_task(self.hold(name, ready))
            await self.first(name, ready)

        self.loop.run_until_complete(begun())

    def call(self, server: str, tool: str, arguments: "dict[str, Any]") -> Any:
        return self.loop.run_until_complete(self.first(server, self.clients[server].call_tool(tool, arguments)))


CLIENTS = Clients(list(SETUP["servers"]))
for each in CLIENTS.names:
    CLIENTS.begin(each)


def plain(text: str) -> str:
    """Bounded, without control characters."""
    shown = "".join(one if one.isprintable() or one == "\n" else "?" for one in text[: SHOWN + 1])
    return shown if len(shown) <= SHOWN else shown[:SHOWN] + " ... (cut)"


def list_tools(server: "str | None") -> str:
    if server is None:
        about = {
            name: PUBLISHED[name]["about"] if name in PUBLISHED else SERVICES[name].__doc__ for name in CLIENTS.names
        }
        return "\n".join(f"{name}: {said}" for name, said in about.items())
    lines = []
    for name, tool in known(server).items():
        arguments = ", ".join(
            f"{one}: {about.get('type', 'any')}" for one, about in (tool.input_schema.get("properties") or {}).items()
        )
        lines.append(f"{name}({arguments}): {' '.join((tool.description or '').split())}")
    return plain("\n".join(lines))


def known(server: str) -> "dict[str, Any]":
    """The tools of that server."""
    if server not in CLIENTS.names:
        raise ToolError(f"there is no server {server[:40]!r}; there are {', '.join(CLIENTS.names)}")
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
    if tool == "list_tools":
        return list_tools(arguments.get("server"))
    return call_tool(arguments["server"], arguments["tool"], arguments.get("arguments", {}))
