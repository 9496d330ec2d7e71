"""Makes rows from an owner's tasks for an MCP server, each with the server's tools and a built-in check.

Invariants: a task's check and answer never enter a sandbox with the server. The tools are those the server listed,
twice alike, in sandboxes where nothing else ran. A row has a built-in check; or it names the server's scoring tool, and
its spec passes nothing (`FOREIGN_SPEC`).

Beside the columns of an owner's problem (`curriculum.own.columns`) a task may have `arguments` (of the server's start),
`tools` (those the model may call), and `score`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic import Field, ValidationError

from curriculum.adapters import ADAPTERS
from curriculum.contract.errors import CurriculumError
from curriculum.environments.foreign import FOREIGN_SPEC
from curriculum.environments.mcp import MCP, MOST_ARGUMENTS, Argument, ServerSetup
from curriculum.environments.mcp.listing import MOST_TOOLS, ListedPage, ServerListing, listing_of, read_page
from curriculum.foreign.making import CALLER, LeftOut
from curriculum.own.columns import RowError, question_of, row_of
from curriculum.own.rows import QUESTION_CHARS, OwnRow
from curriculum.worlds.world import World
from runtime.errors import MACHINE_ERRORS, InfrastructureError
from runtime.model import FrozenModel
from runtime.sandbox import Priority, SessionPool

TURNS = 30
"""Calls of the server's tools per task."""
PYTHON = "python"
SCORED = "the server scores it, so it is never trained on: add such tasks from a separate file"


class GivenTask(NamedTuple):
    """Task for an MCP server from its owner. `values` is None if the row is unreadable, and `problem` says why."""

    origin: str
    values: Mapping[str, Any] | None
    problem: str = ""


class _Asks(FrozenModel):
    """Start arguments, tools and scoring that a given task asks of its MCP server."""

    arguments: tuple[Argument | int, ...] = Field(default=(), max_length=MOST_ARGUMENTS)
    tools: tuple[str, ...] = Field(default=(), max_length=MOST_TOOLS + 1)
    """Empty: all."""
    score: str = ""


def rows_given(
    pool: SessionPool, package: str, given: Iterable[GivenTask], *, say: Callable[[int], object] = lambda made: None
) -> tuple[list[OwnRow], list[LeftOut]]:
    """Makes rows from an owner's tasks for an MCP server; also returns the tasks left out, with reasons. Raises
    CurriculumError if none is left, and what `SessionPool.open` raises."""
    if not package:
        raise CurriculumError(
            "no package is named", hint="name your package that contains the server (`assay curriculum adapter ls`)"
        )
    MCP.read({"package": package})
    if why := ADAPTERS[MCP.name].missing(package):
        raise CurriculumError(f"the server cannot run here: {why}")
    servers: dict[tuple[str, ...], ServerListing | str] = {}
    rows: dict[str, OwnRow] = {}
    left_out: list[LeftOut] = []
    for task in given:
        try:
            row = _row(pool, package, task, servers)
            if row.key in rows:
                raise RowError("its question exists already: other arguments do not make another question")
            rows[row.key] = row
        except CurriculumError as error:
            left_out.append(LeftOut(task.origin, f"{error}{f': {error.hint}' if error.hint else ''}"))
        say(len(rows))
    scored = [row for row in rows.values() if row.spec is FOREIGN_SPEC]
    if len(scored) < len(rows):  # one of them would keep the whole taskset from being trained on
        left_out += [LeftOut(row.origin, SCORED) for row in scored]
        rows = {key: row for key, row in rows.items() if row.spec is not FOREIGN_SPEC}
    if not rows:
        raise CurriculumError(f"no task was made: {left_out[0].reason}" if left_out else "no task was given")
    return list(rows.values()), left_out


def _row(
    pool: SessionPool, package: str, task: GivenTask, servers: dict[tuple[str, ...], ServerListing | str]
) -> OwnRow:
    """Makes the row of an owner's task for an MCP server, listing the server's tools once per start arguments. Raises
    RowError and CurriculumError."""
    if task.values is None:
        raise RowError(task.problem)
    asks = _asks(task.values)
    problem = _scored(task) if asks.score else row_of(task.values, "auto", task.origin)
    arguments = tuple(map(str, asks.arguments))
    if arguments not in servers:
        servers[arguments] = _listed(pool, package, arguments)
    found = servers[arguments]
    if isinstance(found, str):
        raise RowError(found)
    tools = {tool.called: tool for tool in found.tools}
    wanted = [name for name in asks.tools or tools if name not in (PYTHON, asks.score)]
    if unknown := next((name for name in (*wanted, asks.score) if name and name not in tools), ""):
        raise RowError(f"the server has no tool {unknown[:40]!a}; it has {', '.join(tools)}")
    setup = ServerSetup(
        package=package,
        arguments=arguments,
        listed=found.digest,
        tools=tuple(tools[name] for name in dict.fromkeys(wanted)),
        score=asks.score,
    )
    names = tuple(tool.name for tool in setup.tools)
    if not names:
        raise RowError("it offers the model no tool of the server")
    return problem.model_copy(
        update={
            "environment": MCP.name,
            "world": setup.model_dump(mode="json"),
            "tools": (*names, PYTHON) if PYTHON in asks.tools else names,
            "turns": TURNS,
        }
    )


def _asks(values: Mapping[str, Any]) -> _Asks:
    named = {str(name).strip().lower(): value for name, value in values.items()}
    try:
        return _Asks.model_validate(
            {name: named[name] for name in _Asks.model_fields if named.get(name) not in (None, "")}
        )
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise RowError(f"invalid {where}: {error.errors()[0]['msg']}") from None


def _scored(task: GivenTask) -> OwnRow:
    """Makes the row of a task that only the MCP server scores. Raises RowError if the task also has a check."""
    assert task.values is not None
    given = any(value and str(name).strip().lower() == "spec" for name, value in task.values.items())
    with suppress(RowError):
        given = given or bool(row_of(task.values, "auto", task.origin))
    if given:
        raise RowError("it has both a check and a server's score: remove one of them")
    try:
        return OwnRow(question=question_of(task.values), spec=FOREIGN_SPEC, origin=task.origin)
    except ValidationError:
        raise RowError(f"it has no question, or one longer than {QUESTION_CHARS:,} characters") from None


def _listed(pool: SessionPool, package: str, arguments: tuple[str, ...]) -> ServerListing | str:
    """Lists the tools of an MCP server twice, each time started anew. Returns the list if both agree, else the reason
    why no tasks can be made."""
    try:
        first, second = (_ask(pool, package, arguments) for _ in range(2))
    except CurriculumError as error:
        return f"{error}{f': {error.hint}' if error.hint else ''}"
    except MACHINE_ERRORS:
        raise
    except InfrastructureError as error:
        return str(error)
    return first if first == second else "the server lists different tools the second time"


def _ask(pool: SessionPool, package: str, arguments: tuple[str, ...]) -> ServerListing:
    setup = ServerSetup(package=package, arguments=arguments).model_dump(mode="json")
    with World.open(pool, MCP, setup, caller=CALLER, priority=Priority.JOB) as world:
        world.begun.result()
        pages: list[ListedPage] = []
        count = 0
        while not pages or count < pages[0].count:
            reply = world.call("list_served_tools", {"first": count})
            if reply.failed:
                raise CurriculumError(reply.text)
            pages.append(read_page(reply.text))
            count += len(pages[-1].tools)
    return listing_of(pages)
