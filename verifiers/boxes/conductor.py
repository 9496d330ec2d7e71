"""Interface between the checker and the conductors of checks, which use sandboxes, a toolchain or a model.

A kind whose specs are `conducted` names a function that makes its conductor from these parts; the checker makes each
part on first use and closes all of them together.
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
        """Returns the verdict on a submission. Raises SpecError for a bad spec, SandboxError if boxes fail."""

    def close(self) -> None: ...


class ConductorParts(Protocol):
    """Boxes, sandboxes and text worker from which a conductor can be made."""

    judge: Any
    """Grader for items that need a model: a `verifiers.checklists.judge.Judge`, or None."""
    lean: Path | None
    """Toolchain folder; None to search for one."""
    lean_projects: tuple[Path, ...]
    require_kernel_floor: bool
    """True if proofs count only from a kernel without known holes."""
    workers: int
    """Submissions that are checked concurrently."""

    @property
    def isolation(self) -> str:
        """Name of the sandbox backend of the sessions, as verdicts give it."""

    def boxes(self) -> ToolBoxes:
        """Returns the starter of sandboxes for our own programs. The first box starts the broker."""

    def sessions(self) -> SessionPool:
        """Returns the pool of sandboxes for code that a model wrote."""

    def service(self) -> Conductor:
        """Returns the worker that verifies submissions from their text alone."""
