"""Worlds of other frameworks' environments, each run from its adapter's packages in its own sandbox.

Invariants: none of their code runs outside that sandbox. A world without an item offers only its owner's tools
(`list_sets`, `make_items`); one with an item offers only the model's. If the environment scores the rollout, the world
submits that score, and its spec passes nothing (`FOREIGN_SPEC`): it is a foreign reward, not a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from curriculum.adapters import ADAPTERS
from curriculum.contract.environment import ToolSchema
from curriculum.contract.errors import CurriculumError
from runtime.model import FrozenModel
from runtime.profile import PackageSet
from verifiers.files.spec import FilesSpec, ForeignTest

REWARD_FILE = "reward.json"
"""File of a submission with its score, and nothing else."""
FOREIGN_SPEC = FilesSpec(declared=(REWARD_FILE,), foreign=ForeignTest(rewards=(REWARD_FILE,)))
MOST_ITEMS = 10_000
ANSWER_CHARS = 4_000
LIST_SETS = ToolSchema(
    name="list_sets",
    description="Lists what items can be made of.",
    parameters={"type": "object", "properties": {}, "additionalProperties": False},
)
MAKE_ITEMS = ToolSchema(
    name="make_items",
    description="Makes items, beginning with the given one, as many as fit.",
    parameters={
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 80},
            "level": {"type": "integer", "minimum": 0, "maximum": 4},
            "seed": {"type": "integer", "minimum": 0, "exclusiveMaximum": 1 << 31},
            "size": {"type": "integer", "minimum": 1, "maximum": MOST_ITEMS},
            "first": {"type": "integer", "minimum": 0, "exclusiveMaximum": MOST_ITEMS},
        },
        "required": ["name", "level", "seed", "size", "first"],
        "additionalProperties": False,
    },
)
GIVE_ANSWER = ToolSchema(
    name="give_answer",
    description="Gives the final answer, in its short form. The first one counts.",
    parameters={
        "type": "object",
        "properties": {"answer": {"type": "string", "maxLength": ANSWER_CHARS}},
        "required": ["answer"],
        "additionalProperties": False,
    },
)
USE_TOOL = ToolSchema(
    name="use_tool",
    description="Calls a tool that the task lists.",
    parameters={
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 200}, "arguments": {"type": "object"}},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    },
)
STEP = ToolSchema(
    name="step",
    description="Takes one action in the environment and says what came of it.",
    parameters={
        "type": "object",
        "properties": {"action": {"type": "object", "description": "The action, as the task describes it."}},
        "required": ["action"],
        "additionalProperties": False,
    },
)
STATE = ToolSchema(
    name="state",
    description="Says what state the environment is in.",
    parameters={"type": "object", "properties": {}, "additionalProperties": False},
)


class ForeignItem(FrozenModel):
    """Item of a foreign environment that a world plays."""

    name: str = Field(min_length=1, max_length=80)
    level: int = Field(ge=0, le=4)
    seed: int = Field(ge=0, lt=1 << 31)
    size: int = Field(ge=1, le=MOST_ITEMS)
    index: int = Field(ge=0, lt=MOST_ITEMS)
    asked: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the question: a world that makes another one from the same numbers is broken."""


class ForeignSetup(FrozenModel):
    package: str = Field(default="", pattern=r"^([a-z][a-z0-9_]{0,39})?$")
    """Owner's package that provides the environment, if the adapter takes one."""
    item: ForeignItem | None = None
    """None for a world that makes items."""


@dataclass(frozen=True)
class ForeignEnvironment:
    """Environment that runs the worlds of one adapter; the guest's program is a file beside this one."""

    name: str
    version: int
    plays: tuple[ToolSchema, ...]
    """Tools of the model."""
    alone: bool = False
    """True if each item is made in a world of its own, as it will be played."""
    shareable: bool = False

    @property
    def tools(self) -> Sequence[ToolSchema]:
        return (LIST_SETS, MAKE_ITEMS, *self.plays)

    @property
    def program(self) -> str:
        here = Path(__file__)
        return "\n\n".join(
            here.with_name(f"{name}.py").read_text(encoding="utf-8")
            for name in (*(("serving",) if self.alone else ()), self.name, "answering")
        )

    def files(self, setup: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Returns no files, because the world needs none. Raises CurriculumError for an invalid setup."""
        self.read(setup)
        return {}

    def read(self, setup: Mapping[str, Any]) -> ForeignSetup:
        """Parses the setup of a foreign environment's world. Raises CurriculumError if it is invalid."""
        try:
            asked = ForeignSetup.model_validate(setup)
        except ValidationError as error:
            problem = f"invalid setup of a world of {self.name}: {error.errors()[0]['msg']}"
            raise CurriculumError(problem, hint="give a package and, to play, an item") from error
        if ADAPTERS[self.name].takes_package != bool(asked.package):
            what = "needs a package" if ADAPTERS[self.name].takes_package else "takes no package"
            raise CurriculumError(f"a world of {self.name} {what}", hint="see `assay curriculum adapter ls`")
        return asked

    def packages(self, setup: Mapping[str, Any]) -> PackageSet | None:
        """Returns the adapter's package set, with the owner's package that the setup names."""
        return ADAPTERS[self.name].installed(self.read(setup).package)

    def missing(self) -> str:
        """Returns the reason why the adapter cannot be used here. Empty if it can, or takes an owner's package, which
        each world checks."""
        adapter = ADAPTERS[self.name]
        return "" if adapter.takes_package else adapter.missing()


REASONING_GYM = ForeignEnvironment("reasoning_gym", 1, (GIVE_ANSWER,))
OPENENV = ForeignEnvironment("openenv", 1, (STEP, STATE), alone=True)
VERIFIERS = ForeignEnvironment("verifiers", 2, (USE_TOOL, GIVE_ANSWER))
FOREIGN: dict[str, ForeignEnvironment] = {one.name: one for one in (REASONING_GYM, OPENENV, VERIFIERS)}
"""Environments by adapter."""
