"""Interface of environments: the tools that a task offers beside Python, and the world that their calls change.

A world is a program that runs in its own sandbox and answers calls as plain data. The model's Python runs in another
sandbox and cannot reach it. Invariants: a world is made from the environment's program, its files and the task's setup
alone, so the same task starts with the same world everywhere; arguments reach it only as JSON; it answers with text.
Each environment has a folder and a row in `curriculum.environments`; no other code depends on its subject.

The program is the source of a module for the guest's Python. It runs in the folder that holds the files; `SETUP`, the
task's setup, and the exception `ToolError` are defined before it runs. It defines

    def call(tool: str, arguments: dict) -> str    one call of a tool; ToolError(text) for a mistake of the model
    def submission() -> str                        for tasks whose answer is the final world; called once

and may be forked between two calls, so it keeps nothing outside its own memory and folder. `curriculum.worlds` runs it:

- the start of the program and each call have the usual time limit per call (2 s unless configured) of their own time,
  which excludes waiting for processors: a world must bound the work that the model can request. A call that takes
  longer gets SIGURG, has one more second, and then breaks the world, and the rollout is lost. No clock in the guest
  excludes that waiting: read none;
- any exception but `ToolError` also breaks the world; what the program prints is dropped;
- 12,000 bytes of a call's text are kept, less the size of `STATE`; a submission must fit that limit when packed (about
  40,000 characters of prose), or it is dropped;
- `STATE`, if the program defines it, is plain JSON data, at most 8,000 bytes packed. It belongs to the rollout: when
  `call` or `submission` begins, it is what the rollout's last call left (one that ended in `ToolError` left it
  unchanged), and the host carries it from call to call. No model sees it;
- rollouts share a shareable world, so it leaves its files and the plain data of its module, except `STATE`, unchanged
  (no counter, no history): a digest checks that whenever a rollout ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from pydantic import Field

from runtime.model import FrozenModel
from runtime.profile import PackageSet


class ToolSchema(FrozenModel):
    """Description of a tool as the model sees it."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")
    description: str
    parameters: dict[str, Any]
    """JSON Schema of the arguments object. Arguments that do not fit never reach the world."""


class Environment(Protocol):
    """Makes worlds of one kind, whose tools a task offers."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int:
        """Version number of the environment. Changes whenever the same setup and calls give another answer."""

    @property
    def tools(self) -> Sequence[ToolSchema]:
        """Tools of all worlds of this environment. A task offers those that it names."""

    @property
    def shareable(self) -> bool:
        """True if tool calls change nothing but a world's `STATE`; a task's rollouts may then share one world."""

    @property
    def program(self) -> str:
        """Source of the module that runs in the world's sandbox."""

    def files(self, setup: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Returns the world's initial files, by plain name. Pure; raises CurriculumError for a wrong setup."""

    def missing(self) -> str:
        """Returns the reason why the environment's worlds cannot be made on this machine; empty if they can."""


@runtime_checkable
class NeedsUserland(Protocol):
    """Environment whose worlds have the distribution's shell and small programs in their sandbox."""

    @property
    def userland(self) -> Literal[True]: ...


@runtime_checkable
class NeedsPackages(Protocol):
    """Environment whose worlds use their own package set instead of the usual one."""

    def packages(self, setup: Mapping[str, Any]) -> PackageSet | None:
        """Returns the package set of the world made from `setup`; None if not installed here."""


@runtime_checkable
class BringsTools(Protocol):
    """Environment whose worlds have tools that their setup declares."""

    def brought(self, setup: Mapping[str, Any]) -> Sequence[ToolSchema]:
        """Returns the tools that a world's `setup` declares. Pure; raises CurriculumError for a wrong setup."""


def tools_in(environment: Environment, setup: Mapping[str, Any]) -> Sequence[ToolSchema]:
    """Returns all tools of the world made from `setup`. Raises CurriculumError for a wrong setup."""
    return (*environment.tools, *(environment.brought(setup) if isinstance(environment, BringsTools) else ()))


class MadeCall(NamedTuple):
    """Tool call of a rollout, with its result."""

    tool: str
    arguments: Mapping[str, Any]
    failed: bool = False
    reached: bool = True
    """False if the arguments did not fit the tool's schema, so the world was not called."""
    text: str = ""


@runtime_checkable
class NamesFailures(Protocol):
    """Environment that classifies a rollout's failures from its calls."""

    def failure_modes(
        self, setup: Mapping[str, Any], calls: Sequence[MadeCall], *, answered: bool, passed: bool
    ) -> Mapping[str, int]:
        """Counts each of the environment's failure modes in a rollout's tool calls; includes zeros."""
