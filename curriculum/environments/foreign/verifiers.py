"""Loads a taskset of the package verifiers, from the owner's package, and has it score an answer. It runs in the guest.

What always holds: tasks come from the package's own `load()` and scores from its own `Task.score`, over a trace of the
question and of the one answer. What needs more than that is refused by name when tasks are made: servers of tools,
a container, a judge that is a model, an environment of several agents.
"""

import asyncio
import hashlib
import inspect
import itertools
import json
from typing import TYPE_CHECKING, Any

import verifiers.v1 as vf
from verifiers.v1.envs.single_agent import SingleAgentEnv
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import AgentInfo, Trace, TraceTask
from verifiers.v1.types import AssistantMessage, UserMessage
from verifiers.v1.utils.loaders import environment_class, taskset_class

if TYPE_CHECKING:
    from collections.abc import Callable

    SETUP: dict[str, Any] = {}
    ToolError = Exception

WINDOW = 1 << 14
"""Between two seeds: their quotient numbers the part of the taskset that is asked for."""
ITEM_BYTES = 9_000
given: "list[str]" = []


def tasks_from(position: int) -> Any:
    taskset = taskset_class(SETUP["package"])(vf.TasksetConfig(id=SETUP["package"]))
    return itertools.islice(taskset, position, None)


def needs(task: Any) -> str:
    """What it needs that there is not here; nothing when a question and an answer are enough."""
    if environment_class(SETUP["package"]) is not SingleAgentEnv:
        return "an environment of its own"
    if task.NEEDS_CONTAINER or type(task).setup is not vf.Task.setup or type(task).finalize is not vf.Task.finalize:
        return "a container"
    taskset = taskset_class(SETUP["package"])
    if task.toolsets(task.config) or taskset.toolsets(vf.TasksetConfig(id=SETUP["package"])):
        return "servers of tools"
    if task.plugged_judges():
        return "a judge that is a model"
    if any("runtime" in inspect.signature(reward).parameters for reward in task.hooks("reward")):
        return "a container where it scores"
    return "" if task.hooks("reward") else "a reward"


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
        found.append({"index": index, "question": question_of(task), "answer": ""})
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
    task = next(iter(tasks_from(place(item["seed"], item["size"], item["index"]))))
    question = question_of(task)
    if hashlib.sha256(question.encode()).hexdigest() != item["asked"]:
        raise RuntimeError(f"item {item['index']} of {item['name']} is another one than was asked")
    trace = Trace(
        task=TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash),
        agent=AgentInfo(config=vf.AgentConfig()),
        nodes=[
            MessageNode(message=UserMessage(content=question)),
            MessageNode(parent=0, message=AssistantMessage(content=given[0]), sampled=True),
        ],
        is_completed=True,
    )
    asyncio.run(task.score(trace))
    return float(trace.reward)


PLAYS: "dict[str, Callable[..., str]]" = {"give_answer": give_answer}
