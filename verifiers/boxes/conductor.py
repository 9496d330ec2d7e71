"""The seam between the checker and what conducts a check: sandboxes, a toolchain, a model.

A kind whose specs are `conducted` names a function that makes its conductor from these parts; the checker makes each
part when it is first asked for, and closes all of them together.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from runtime.sandbox import SessionPool
from verifiers.contract.verdict import Verdict

if TYPE_CHECKING:
    from verifiers.boxes.box import ToolBoxes


class Conductor(Protocol):
    """Checks submissions of one kind. Safe to use from several threads."""

    def verify(self, spec: Any, submission: str, seconds: float) -> Verdict:
        """Raises SpecError for a spec that cannot be used, SandboxError where the infrastructure failed."""

    def close(self) -> None: ...


class ConductorParts(Protocol):
    """What a conductor may be made of."""

    judge: Any
    """For what only a model can grade: a `verifiers.checklists.judge.Judge`, or None."""
    lean: Path | None
    """The folder of a toolchain; None: the one that is found."""
    lean_projects: tuple[Path, ...]
    workers: int
    """Submissions that are checked at once."""

    @property
    def isolation(self) -> str:
        """The backend of the sessions, as a verdict names it."""

    def boxes(self) -> ToolBoxes:
        """Boxes with a program of ours in them. Nothing is started before one is asked for."""

    def sessions(self) -> SessionPool:
        """Where code that a model wrote runs."""

    def service(self) -> Conductor:
        """The worker that decides texts."""
