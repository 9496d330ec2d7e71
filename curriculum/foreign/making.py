"""Makes an owner's rows from items that another framework's environment generates in a sandbox.

Invariants: guest output is untrusted text; an item is used only if it is plain, bounded JSON with a question and an
answer, and its check is built in or `FOREIGN_SPEC`. A guest that hangs, exits or returns invalid items stops the
generation, with that reason. An environment that begins differently the second time is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from curriculum.adapters import ADAPTERS, adapter_named
from curriculum.contract.errors import CurriculumError
from curriculum.environments.foreign import (
    FOREIGN,
    FOREIGN_SPEC,
    MOST_ITEMS,
    USE_TOOL,
    ForeignEnvironment,
    ForeignItem,
    ForeignSetup,
)
from curriculum.own.rows import LEVELS, QUESTION_CHARS, OwnRow
from curriculum.worlds.world import World
from runtime.model import FrozenModel
from runtime.sandbox import Priority, SessionPool
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.verdict import FOREIGN_REWARD
from verifiers.exact.spec import ExactSpec
from verifiers.registry.spec import Spec

STRIDE = 1 << 14
"""Distance between the seeds of two windows: more than a data set may have items."""
BATCHES = (1 << 31) // (STRIDE * LEVELS)
assert STRIDE >= MOST_ITEMS


def seed_of(batch: int, level: int) -> int:
    """Returns the first seed of a batch's items at a level. Raises CurriculumError for an invalid batch."""
    if not (0 <= batch < BATCHES and 0 <= level < LEVELS):
        raise CurriculumError(f"invalid batch {batch}", hint=f"choose one from 0 to {BATCHES - 1}")
    return (batch * LEVELS + level) * STRIDE


def window(batch: int, level: int, size: int) -> range:
    """Returns the seeds of a batch's `size` items at a level. Raises CurriculumError for an invalid size."""
    if not 1 <= size <= MOST_ITEMS:
        raise CurriculumError(f"invalid number of items per level ({size})", hint=f"ask for 1 to {MOST_ITEMS}")
    return range(seed_of(batch, level), seed_of(batch, level) + size)


class OwnCheck(StrEnum):
    INTEGER = "integer"
    RATIONAL = "rational"
    TEXT = "text"


DECIDED: dict[str, OwnCheck] = {
    # defined by arithmetic
    "basic_arithmetic": OwnCheck.INTEGER,
    "chain_sum": OwnCheck.INTEGER,
    "products": OwnCheck.INTEGER,
    "lcm": OwnCheck.INTEGER,
    "leg_counting": OwnCheck.INTEGER,
    "simple_equations": OwnCheck.INTEGER,
    "decimal_chain_sum": OwnCheck.RATIONAL,
    "dice": OwnCheck.RATIONAL,
    # counted
    "count_primes": OwnCheck.INTEGER,
    # one text made from another
    "base_conversion": OwnCheck.TEXT,
    "bitwise_arithmetic": OwnCheck.TEXT,
    "caesar_cipher": OwnCheck.TEXT,
    "spell_backward": OwnCheck.TEXT,
    "string_insertion": OwnCheck.TEXT,
    "string_manipulation": OwnCheck.TEXT,
}
INTEGER = re.compile(r"-?[0-9]{1,40}", re.ASCII)
RATIONAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40}|/[1-9][0-9]{0,39})?", re.ASCII)
LINE = re.compile(r"[^\x00-\x1f\x7f]{1,400}")

_FORMS: dict[OwnCheck, tuple[re.Pattern[str], Callable[[str], Spec]]] = {
    OwnCheck.INTEGER: (INTEGER, lambda answer: AnswerSpec(expected=answer)),
    OwnCheck.RATIONAL: (RATIONAL, lambda answer: AnswerSpec(expected=answer)),
    OwnCheck.TEXT: (LINE, lambda answer: ExactSpec(expected=answer)),
}


def check_of(name: str, answer: str) -> Spec | None:
    """Returns the spec that checks an item of a foreign data set: a built-in kind, or `FOREIGN_SPEC`. None if the
    answer does not have the data set's known form, so the item cannot be checked."""
    decided = DECIDED.get(name)
    if decided is None:
        return FOREIGN_SPEC
    pattern, spec = _FORMS[decided]
    return spec(answer.strip()) if pattern.fullmatch(answer.strip()) else None


ANSWER_CHARS = 4_000
CALLER = "adapter"
LICENCES = {"reasoning_gym": "Apache-2.0"}
TURNS = {"reasoning_gym": 1, "openenv": 30, "verifiers": 1}
"""Calls per task, besides Python."""
TOOL_TURNS = 12
"""Calls per task with tools of its own."""
HOW = {
    "reasoning_gym": "\n\nGive the answer, in the form that is asked for and nothing else, by the tool `give_answer`.",
    "verifiers": "\n\nGive your final answer by the tool `give_answer`.",
    "openenv": "\n\nAct by the tool `step`, one action a call; `state` says what state it is in.",
}


class MadeItem(FrozenModel):
    """Item as a guest reports it: untrusted text."""

    index: int = Field(ge=0)
    question: str = Field(min_length=1, max_length=QUESTION_CHARS)
    answer: str = Field(max_length=ANSWER_CHARS)
    asked: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    tools: bool = False
    """True if the item has tools of its own, which `use_tool` calls."""


class LeftOut(NamedTuple):
    """Item from which no task was made, with the reason."""

    origin: str
    reason: str


class SetSummary(FrozenModel):
    name: str
    levels: int
    decided_by: str
    """Built-in kind of check, or `foreign_reward`: only the environment's own score."""

    @classmethod
    def of(cls, adapter: str, name: str, levels: int) -> SetSummary:
        decided = DECIDED.get(name) if adapter == "reasoning_gym" else None
        kind = FOREIGN_REWARD if decided is None else ("exact" if decided is OwnCheck.TEXT else "answer")
        return cls(name=name, levels=levels, decided_by=kind)


_ITEMS = TypeAdapter(list[MadeItem])
_SETS = TypeAdapter(dict[str, int])


def environment_of(adapter: str, package: str) -> ForeignEnvironment:
    """Returns the environment of an adapter. Raises CurriculumError if it makes no items or lacks its packages."""
    named = adapter_named(adapter)
    if named.tasks_given:
        hint = f"add your own: `assay curriculum adapter add {adapter} TASKS.jsonl --package NAME`"
        raise CurriculumError(f"{adapter} makes no tasks of its own", hint=hint)
    if adapter not in FOREIGN:
        raise CurriculumError(f"{adapter} makes no tasks of its own", hint=f"choose one of {', '.join(FOREIGN)}")
    FOREIGN[adapter].read({"package": package})
    if why := named.missing(package):
        raise CurriculumError(f"{adapter} cannot make tasks here: {why}")
    return FOREIGN[adapter]


def list_sets(pool: SessionPool, adapter: str, package: str = "") -> dict[str, int]:
    """Asks a foreign framework in a sandbox for its data sets. Returns their numbers of levels by name. Raises
    CurriculumError, InfrastructureError."""
    environment = environment_of(adapter, package)
    with _opened(pool, environment, package) as world:
        try:
            return _SETS.validate_json(_said(world, "list_sets", {}))
        except ValidationError as error:
            raise CurriculumError(
                f"{adapter} returned an invalid list of data sets: {error.errors()[0]['msg']}"
            ) from error


def source_of(adapter: str, name: str, package: str, batch: int | None) -> tuple[str, str]:
    """Returns the source of rows made with an adapter, in words, and their licence, if known. `batch` is None for tasks
    that were given."""
    version = next(pin for pin in ADAPTERS[adapter].pins if pin.partition("==")[0].replace("-", "_") == adapter)
    of = f", package {package}" if package else ""
    numbered = "" if batch is None else f", batch {batch}"
    return f"{version}{of}, {name}{numbered}", LICENCES.get(adapter, "")


def make_rows(
    pool: SessionPool,
    adapter: str,
    name: str,
    *,
    package: str = "",
    tasks: int,
    batch: int = 0,
    say: Callable[[int], object] = lambda made: None,
) -> tuple[list[OwnRow], list[LeftOut]]:
    """Makes rows of items that a foreign framework generates in a sandbox, `tasks` per level. Also returns the items
    left out, with reasons. Raises CurriculumError, InfrastructureError."""
    environment = environment_of(adapter, package)
    rows: dict[str, OwnRow] = {}
    left_out: list[LeftOut] = []
    for level in range(LEVELS):
        numbers = window(batch, level, tasks)
        setup = {"name": name, "level": level, "seed": numbers.start, "size": tasks}
        where = f"{adapter} {name}, level {level}, seed {numbers.start}"
        items = _items(pool, environment, package, setup)
        while True:
            try:
                item = next(items, None)
            except CurriculumError as error:  # the library lacks this level, not necessarily others
                left_out.append(LeftOut(where, str(error)))
                break
            if item is None:
                break
            origin = f"{where}, item {item.index}"
            row = _row(environment, package, setup, item, origin)
            if row is None:
                left_out.append(LeftOut(origin, f"its answer does not have the form of {name}"))
            elif row.key in rows:
                left_out.append(LeftOut(origin, "its question exists already"))
            else:
                rows[row.key] = row
            say(len(rows))
    if not rows:
        raise CurriculumError(
            f"no task was made of {name[:80]}: {left_out[0].reason}" if left_out else "nothing was made"
        )
    return list(rows.values()), left_out


def level_of(row: OwnRow) -> float:
    """Returns the level that a row's origin names; 0 for adapters whose levels are only parts of a list."""
    made = row.origin.startswith("reasoning_gym ")
    return float(row.origin.partition(", level ")[2].partition(",")[0]) if made else 0.0


def _row(
    environment: ForeignEnvironment, package: str, setup: dict[str, Any], item: MadeItem, origin: str
) -> OwnRow | None:
    spec = check_of(setup["name"], item.answer) if environment.name == "reasoning_gym" else FOREIGN_SPEC
    if spec is None:
        return None
    if spec is not FOREIGN_SPEC:
        return OwnRow(question=item.question, spec=spec, answer=item.answer.strip(), origin=origin)
    asked = item.asked or hashlib.sha256(item.question.encode()).hexdigest()
    world = ForeignSetup(package=package, item=ForeignItem(**setup, index=item.index, asked=asked))
    return OwnRow(
        question=item.question + HOW[environment.name],
        spec=spec,
        origin=origin,
        environment=environment.name,
        world=world.model_dump(mode="json"),
        tools=tuple(tool.name for tool in environment.plays if item.tools or tool is not USE_TOOL),
        turns=TOOL_TURNS if item.tools else TURNS[environment.name],
    )


def _items(
    pool: SessionPool, environment: ForeignEnvironment, package: str, setup: dict[str, Any]
) -> Iterator[MadeItem]:
    if not environment.alone:
        with _opened(pool, environment, package) as world:
            first = 0
            while first < setup["size"]:
                found = read_items(_said(world, "make_items", {**setup, "first": first}), first)
                yield from found
                first = found[-1].index + 1
        return
    for first in range(setup["size"]):  # each in a world of its own, as it will be played
        made = []
        for _ in range(2 if first == 0 else 1):
            with _opened(pool, environment, package) as world:
                made.append(read_items(_said(world, "make_items", {**setup, "first": first}), first)[0])
        if made[0] != made[-1]:
            raise CurriculumError(
                f"{setup['name'][:80]} begins differently the second time", hint="draw all random numbers from the seed"
            )
        yield made[0]


def read_items(text: str, first: int) -> list[MadeItem]:
    """Parses a guest's JSON list of generated items. Raises CurriculumError if it is invalid or does not continue at
    index `first`."""
    try:
        found = _ITEMS.validate_json(text)
    except ValidationError as error:
        raise CurriculumError(f"the generated items are invalid: {error.errors()[0]['msg']}") from error
    if not found or [item.index for item in found] != list(range(first, first + len(found))):
        raise CurriculumError("the generated items are incomplete: some are missing")
    for item in found:
        try:
            (item.question + item.answer).encode()
        except UnicodeEncodeError:
            raise CurriculumError(f"item {item.index} has a lone surrogate, which is not valid text") from None
    return found


def _opened(pool: SessionPool, environment: ForeignEnvironment, package: str) -> World:
    return World.open(pool, environment, {"package": package}, caller=CALLER, priority=Priority.JOB)


def _said(world: World, tool: str, arguments: dict[str, Any]) -> str:
    reply = world.call(tool, arguments)
    if reply.failed:
        raise CurriculumError(reply.text)
    return reply.text
