"""Loads a taskset of the package verifiers, from the owner's package, and has it score an answer. It runs in the guest.

What always holds: tasks come from the package's own `load()` and scores from its own `Task.score`, over a trace of the
question and of the one answer. Tools of a task or a taskset are called here, in the world's own process, with one state
a world. What needs more than that is refused by name when tasks are made: servers elsewhere, a container, a judge that
is a model, an environment of several agents.
"""

import asyncio
import functools
import hashlib
import inspect
import itertools
import json
from typing import TYPE_CHECKING, Any

import verifiers.v1 as vf
from mcp.server.mcpserver import MCPServer
from verifiers.v1.envs.single_agent import SingleAgentEnv
from verifiers.v1.graph import MessageNode
from verifiers.v1.state import state_cls
from verifiers.v1.trace import AgentInfo, Trace, TraceTask
from verifiers.v1.types import AssistantMessage, UserMessage
from verifiers.v1.utils.loaders import environment_class, taskset_class, taskset_config_type

if TYPE_CHECKING:
    from collections.abc import Callable

    SETUP: dict[str, Any] = {}
    ToolError = Exception

WINDOW = 1 << 14
"""Between two seeds: their quotient numbers the part of the taskset that is asked for."""
ITEM_BYTES = 9_000
given: "list[str]" = []
loop = asyncio.new_event_loop()
states: "dict[Any, Any]" = {}
servers: "dict[str, tuple[Any, str]]" = {}
"""The server of a tool, and its name there, by the name that a model calls."""


def tasks_from(position: int) -> Any:
    return itertools.islice(taskset(), position, None)


def taskset() -> Any:
    """The package's taskset, with its own configuration as it is without settings."""
    config = taskset_config_type(SETUP["package"])(id=SETUP["package"])
    return taskset_class(SETUP["package"])(config)


def needs(task: Any) -> str:
    """What it needs that there is not here; nothing when a question and an answer are enough."""
    if environment_class(SETUP["package"]) is not SingleAgentEnv:
        return "an environment of its own"
    if task.NEEDS_CONTAINER or type(task).setup is not vf.Task.setup or type(task).finalize is not vf.Task.finalize:
        return "a container"
    if any(getattr(one.config, "url", None) for one in toolsets_of(task)):
        return "a server elsewhere"
    if task.plugged_judges():
        return "a judge that is a model"
    if any("runtime" in inspect.signature(reward).parameters for reward in task.hooks("reward")):
        return "a container where it scores"
    return "" if task.hooks("reward") else "a reward"


def toolsets_of(task: Any) -> "list[Any]":
    shared = taskset()
    return [*task.toolsets(task.config), *shared.toolsets(shared.config)]


def state_of(kind: Any) -> Any:
    """The world's one state of that class: what tools write to it, rewards read."""
    return states.setdefault(kind, kind())


def kept_state(toolset: Any) -> Any:
    """Gives a toolset the world's state, in place of a channel to the framework."""
    state = state_of(toolset._state_cls)

    async def pull() -> Any:
        return state

    async def push(_before: bytes) -> None:
        return None

    toolset._pull_state, toolset._push_state = pull, push
    return toolset


def serve_tools(task: Any) -> "list[Any]":
    """Makes the task's tools ready, once; returns them as they describe themselves."""
    found: list[Any] = []
    for toolset in map(kept_state, toolsets_of(task)):
        server = MCPServer(toolset.server_name or "tools")
        toolset.register(server)
        loop.run_until_complete(toolset.setup())
        loop.run_until_complete(toolset.setup_task(task))
        for tool in loop.run_until_complete(server.list_tools()):
            name = f"{toolset.server_name}_{tool.name}" if toolset.server_name else tool.name
            servers[name] = (server, tool.name)
            schema = getattr(tool, "input_schema", None) or getattr(tool, "inputSchema", None)
            found.append({"name": name, "description": tool.description or "", "arguments": schema})
    return found


def asked_of(task: Any) -> str:
    """The question, with the tools that a model may use for it."""
    servers.clear()
    tools = serve_tools(task)
    listed = "\n".join(json.dumps(tool, ensure_ascii=False, sort_keys=True) for tool in tools)
    return f"{question_of(task)}\n\nTools, by `use_tool`:\n{listed}" if tools else question_of(task)


def use_tool(name: str, arguments: "dict[str, Any]") -> str:
    played()
    if name not in servers:
        raise ToolError(f"unknown tool {name!r}: the tools are {', '.join(servers) or 'none'}")
    server, called = servers[name]
    try:
        result = loop.run_until_complete(server.call_tool(called, arguments))
    except Exception as error:
        raise ToolError(f"{type(error).__name__}: {error}"[:500]) from error
    parts: Any = getattr(result, "content", result[0] if isinstance(result, tuple) else result)
    text = "\n".join(str(getattr(part, "text", part)) for part in parts)
    if getattr(result, "is_error", False) or getattr(result, "isError", False):
        raise ToolError(text[:500])
    return text[:6_000]


def task_of(item: "dict[str, Any]") -> Any:
    return next(iter(tasks_from(place(item["seed"], item["size"], item["index"]))))


@functools.cache
def played() -> "tuple[Any, str]":
    """The world's task, its tools ready, and what a model is asked."""
    task = task_of(SETUP["item"])
    return task, asked_of(task)


def question_of(task: Any) -> str:
    return "\n\n".join(part for part in (task.data.system_prompt, task.data.prompt_text) if part)


def place(seed: int, size: int, index: int) -> int:
    return seed // WINDOW * size + index


def list_sets() -> str:
    return json.dumps({SETUP["package"]: 1})


def make_items(name: str, level: int, seed: int, size: int, first: int) -> str:
    if name != SETUP["package"]:
        raise ToolError(f"this package holds {SETUP['package']} and nothing else")
    found: list[dict[str, Any]] = []
    taken = 0
    for index, task in enumerate(itertools.islice(tasks_from(place(seed, size, first)), size - first), first):
        if what := needs(task):
            raise ToolError(f"a task of {name} needs {what}, which there is not here")
        question = asked_of(task)
        found.append({"index": index, "question": question, "answer": "", "tools": bool(servers)})
        taken += len(json.dumps(found[-1], ensure_ascii=False).encode())
        if taken > ITEM_BYTES and len(found) > 1:
            found.pop()
            break
    if not found:
        raise ToolError(f"{name} has no more tasks")
    return json.dumps(found, ensure_ascii=False)


def give_answer(answer: str) -> str:
    if given:
        raise ToolError("an answer has been given already")
    given.append(answer)
    return "the answer has been taken"


def reward() -> float:
    if not given:
        return 0.0
    item = SETUP["item"]
    task, asked = played()
    if hashlib.sha256(asked.encode()).hexdigest() != item["asked"]:
        raise RuntimeError(f"item {item['index']} of {item['name']} is another one than was asked")
    trace = Trace(
        task=TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash),
        agent=AgentInfo(config=vf.AgentConfig()),
        state=state_of(state_cls(type(task))),
        nodes=[
            MessageNode(message=UserMessage(content=question_of(task))),
            MessageNode(parent=0, message=AssistantMessage(content=given[0]), sampled=True),
        ],
        is_completed=True,
    )
    asyncio.run(task.score(trace))
    return float(trace.reward)


PLAYS: "dict[str, Callable[..., str]]" = {"use_tool": use_tool, "give_answer": give_answer}
