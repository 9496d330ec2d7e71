"""The environment `terminal`: a shell in its own sandbox, and files to work on.

Invariants: a command reaches the shell of the world's sandbox and nothing else; the declared files are judged as they
are when the conversation has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import resources
from typing import Any, Literal

from pydantic import Field, ValidationError

from common.bounded_models import first_fault
from curriculum.contract.environment import ToolSchema
from curriculum.contract.errors import CurriculumError
from runtime.errors import RefusedError
from runtime.package_sets import set_folder
from runtime.profile import PackageSet, SetDigest
from runtime.sandbox import NO_FILES
from verifiers.contract.spec_data import SpecData
from verifiers.files.spec import MOST_FILES, FilePath, PlacedFile, PlacePath

TERMINAL_OPENING = "You have a terminal: the tool run_command runs a command with sh in /work."
RUN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "minLength": 1, "maxLength": 8000},
        "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 60},
    },
    "required": ["command"],
    "additionalProperties": False,
}


class TerminalSetup(SpecData):
    files: tuple[PlacedFile, ...] = Field(max_length=200)
    """Initial files of /work."""
    declared: tuple[FilePath, ...] = Field(min_length=1, max_length=MOST_FILES)
    seconds: float = Field(default=1.5, gt=0, le=60)
    """Largest `timeout` of a command, in seconds. Without one, the sandboxes' limit per call (2 s unless set) applies
    to its own time, computing or idle: time that others held the processors does not count."""

    folders: tuple[PlacePath, ...] = Field(default=(), max_length=200)
    """Folders that exist at first."""
    variables: tuple[tuple[str, str], ...] = Field(default=(), max_length=100)
    healthcheck: str = Field(default="", max_length=20_000)
    """Command that has to succeed before the work begins; else the world is broken."""
    collect: tuple[str, ...] = Field(default=(), max_length=10)
    """Commands that run once the work is done, before its files are taken. If one fails, there are no files."""
    excluded: tuple[tuple[str, str], ...] = Field(default=(), max_length=100)
    """Folders, and patterns of names below them that are not gathered."""
    gathers: bool = False
    """True if every file that is new, changed or removed is submitted, declared or not."""
    changed: bool = False
    """True if only declared files that differ from the initial ones are submitted."""
    packages: SetDigest | None = None
    """Package set of a `container`."""
    memory_mib: int = Field(default=128, ge=16, le=4_096)
    """Address space of one command in MiB; in a `container`, also its sandbox's extra memory."""


class TerminalEnvironment:
    name = "terminal"
    version = 1
    shareable = False
    userland: Literal[True] = True
    tools: Sequence[ToolSchema] = (
        ToolSchema(
            name="run_command",
            description="Runs a command with sh in /work and gives what it printed and its exit code. Files stay from "
            "one command to the next; processes do not. timeout: the seconds after which it is ended, if less than "
            "usual.",
            parameters=RUN,
        ),
    )

    @cached_property
    def program(self) -> str:
        return resources.files(__package__).joinpath("world.py").read_text(encoding="utf-8")

    def files(self, setup: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Returns no files: the world makes them from the setup. Raises CurriculumError for an invalid setup."""
        try:
            TerminalSetup.model_validate(setup)
        except ValidationError as error:
            raise CurriculumError(f"invalid setup of a terminal: {first_fault(error)}") from error
        return NO_FILES

    def missing(self) -> str:
        return ""


class ContainerEnvironment(TerminalEnvironment):
    """Terminal whose sandbox has a package set of its own: what the Dockerfile of its task installs."""

    name = "container"

    def packages(self, setup: Mapping[str, Any]) -> PackageSet | None:
        """Returns the package set that the setup names; None if not installed here."""
        made = TerminalSetup.model_validate(setup)
        try:
            set_folder(made.packages or "")
        except RefusedError:
            return None
        assert made.packages is not None
        return PackageSet(digest=made.packages, memory_mib=made.memory_mib, call_seconds=made.seconds)


TERMINAL = TerminalEnvironment()
CONTAINER = ContainerEnvironment()
