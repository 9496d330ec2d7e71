"""Tests an environment's worlds: identical at first, isolated from each other, intact after hostile calls.

Invariants: a world that leaks, hangs or breaks is a sentence in the report, never an exception. Errors of the machine
are exceptions: they say nothing about the world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, cycle, islice
from typing import Any

from curriculum.contract.environment import Environment
from curriculum.contract.taskset import TaskDraft
from curriculum.worlds.tool_schema import BYTES
from curriculum.worlds.world import World
from runtime.errors import MACHINE_ERRORS, SandboxError
from runtime.sandbox import SessionPool

AT_ONCE = 8
"""Worlds of one task that are open concurrently."""
FLOOD = 40
"""Calls that are sent without waiting for replies."""
HOSTILE: tuple[object, ...] = (None, [], {"x": "y" * 100_000}, {"": {"a": [[[[[]]]]]}}, "../../etc/passwd", 10**30)


def try_worlds(drafts: Sequence[TaskDraft], environments: Mapping[str, Environment], pool: SessionPool) -> list[str]:
    """Attacks and compares the worlds of these drafts in sandboxes. Returns their faults, as sentences."""
    found: list[str] = []
    for draft in drafts:
        if draft.environment in environments:
            found += _tried(draft, environments[draft.environment], pool)
    return found


def _tried(draft: TaskDraft, environment: Environment, pool: SessionPool) -> list[str]:
    what = f"the world of {draft.key[:60]!r}"
    opened: list[World] = []
    try:
        for _ in range(AT_ONCE):
            opened.append(World.open(pool, environment, draft.world, caller="certify"))  # noqa: PERF401 - closed below
        first = [world.start_digest() for world in opened]
        digests = [one.result() for one in first]
        if len(set(digests)) != 1:
            return [f"{what} differs from one start to the next"]
        busy, *others = opened
        running = [
            busy.start(tool.name, arguments)
            for tool in busy.tools
            for arguments in flood(tool.parameters, max(2, FLOOD // len(busy.tools)))
        ]
        for reply in running:
            reply.result()
        busy.digest()
        if [world.digest() for world in others] != digests[1:]:
            return [f"{what} changes when another world is called"]
        return []
    except MACHINE_ERRORS:
        raise
    except SandboxError as error:
        return [f"{what} broke: {error}"]
    finally:
        for world in opened:
            world.close()


def flood(parameters: Mapping[str, Any], count: int) -> Iterator[object]:
    """Yields `count` tool arguments to attack a world with, alternating schema-valid and hostile. Rejected arguments
    never reach a world, so cannot change it."""
    fits = plain_arguments(parameters)
    return islice(chain.from_iterable((fits, other) for other in cycle(HOSTILE)), count)


def plain_arguments(parameters: Mapping[str, Any], most: int = BYTES) -> dict[str, Any]:
    """Returns the simplest tool arguments that a schema allows, in at most `most` values or characters. References are
    not followed; a schema that requires more than a call may hold gets less."""
    properties, required = parameters.get("properties", {}), parameters.get("required", ())
    return {name: _plain(properties.get(name, {}), most // len(required)) for name in required}


def _plain(schema: Any, most: int) -> Any:
    if not isinstance(schema, Mapping) or most < 1:  # `true` takes everything
        return "x"
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "integer" | "number":
            return schema.get("minimum", min(1, schema.get("maximum", 1)))
        case "boolean":
            return False
        case "array":
            count = int(min(schema.get("minItems", 0), most))
            return [_plain(schema.get("items", {}), most // max(1, count))] * count
        case "object":
            return plain_arguments(schema, most)
        case "null":
            return None
    return "x" * max(1, int(min(schema.get("minLength", 1), most)))


def tried_in(environments: Mapping[str, Environment], pool: SessionPool) -> Callable[[Sequence[TaskDraft]], list[str]]:
    """Returns a function that tests the worlds of drafts in these environments and this pool, for `certify`."""
    return lambda drafts: try_worlds(drafts, environments, pool)
