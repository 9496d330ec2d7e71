"""The seam for environments: what tools a task offers beside Python, and the world that their calls change.

A world is a program that runs in a sandbox of its own and answers calls as plain data. The model's Python runs in
another sandbox and cannot reach it. What always holds: a world is made from the environment's program, its files and
the task's setup alone, so that the same task begins with the same world everywhere; arguments reach it as JSON and as
nothing else; what it answers is text. Each environment has a folder and a row in `curriculum.environments`; nobody
else knows what it is about.

The program is the source of a module for the guest's Python. It runs in the folder that holds the files; `SETUP`, the
task's setup, and the exception `ToolError` are defined before it runs. It defines

    def call(tool: str, arguments: dict) -> str    one call of a tool; ToolError(text) for what the model did wrong
    def submission() -> str                        for tasks whose answer is what became of the world; asked once

and may be forked between two calls, so it keeps nothing outside its own memory and folder. `curriculum.worlds` runs it:

- the start of the program and each call have the seconds of any call (2 unless the configuration says otherwise) of
  their own time: a world bounds what the model can have it do, for a call that takes longer gets SIGURG, has a second
  more, and then breaks the world, and the rollout is lost. No clock in the guest tells what others took: read none;
- any exception but `ToolError` breaks the world likewise; what the program prints is dropped;
- of a call's text 12,000 bytes are kept, less what `STATE` takes; a submission has to fit there packed (some 40,000
  letters of prose), or it is none;
- `STATE`, where the program defines it, is plain data as JSON has it, of which 8,000 bytes are kept packed. It belongs
  to the rollout: it is what the rollout's last call left whenever `call` or `submission` begins (what `ToolError` ended
  has left nothing), and the host carries it from call to call. No model is shown it;
- rollouts share a world that is shareable, so it keeps its files and the plain data of its module but `STATE` as they
  were (no counter, no history): that is checked, by a digest, whenever a rollout ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from pydantic import Field

from runtime.model import FrozenModel
from runtime.profile import PackageSet


class ToolSchema(FrozenModel):
    """What a model is told of a tool."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")
    description: str
    parameters: dict[str, Any]
    """A JSON Schema of an object: the arguments. Those that do not fit it never reach the world."""


class Environment(Protocol):
    """Makes worlds of one sort."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int:
        """Changes whenever the same setup and calls give another answer."""

    @property
    def tools(self) -> Sequence[ToolSchema]:
        """Lists what all of its worlds can be asked. A task offers those of them that it names."""

    @property
    def shareable(self) -> bool:
        """Says whether no call changes more of a world than its `STATE`; then the rollouts of a task may share one."""

    @property
    def program(self) -> str:
        """The source of the module that runs in the world's sandbox."""

    def files(self, setup: Mapping[str, Any]) -> Mapping[str, bytes]:
        """What lies in the world's folder at first, by plain name. Pure; raises CurriculumError for a wrong setup."""

    def missing(self) -> str:
        """Why its worlds cannot be made on this machine, in a sentence; empty when they can."""


@runtime_checkable
class NeedsUserland(Protocol):
    """An environment whose worlds have the distribution's shell and small programs in their sandbox."""

    @property
    def userland(self) -> Literal[True]: ...


@runtime_checkable
class NeedsPackages(Protocol):
    """An environment whose guests have a set of packages of their own, in place of the usual ones."""

    def packages(self, setup: Mapping[str, Any]) -> PackageSet | None:
        """Those of the world that is made from `setup`. None where they are not installed here."""


@runtime_checkable
class BringsTools(Protocol):
    """An environment whose worlds have tools that the setup declares, each its own."""

    def brought(self, setup: Mapping[str, Any]) -> Sequence[ToolSchema]:
        """Those of the world that is made from `setup`. Pure; raises CurriculumError for a wrong setup."""


def tools_in(environment: Environment, setup: Mapping[str, Any]) -> Sequence[ToolSchema]:
    """All that such a world can be asked. Raises CurriculumError for a wrong setup."""
    return (*environment.tools, *(environment.brought(setup) if isinstance(environment, BringsTools) else ()))


class MadeCall(NamedTuple):
    """What a rollout called of its world, and what came of it."""

    tool: str
    arguments: Mapping[str, Any]
    failed: bool = False
    reached: bool = True
    """False where the arguments did not fit the tool's schema, and the world was not asked."""
    text: str = ""


@runtime_checkable
class NamesFailures(Protocol):
    """An environment that says how a rollout went wrong, from its calls."""

    def failure_modes(
        self, setup: Mapping[str, Any], calls: Sequence[MadeCall], *, answered: bool, passed: bool
    ) -> Mapping[str, int]:
        """How often each of its modes occurs; all of them, zeros too."""
