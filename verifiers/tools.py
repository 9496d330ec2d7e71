"""Programs that a broker's settings must name so that verifiers can run hostile input in boxes."""

from __future__ import annotations

from pathlib import Path

from runtime.programs import Program
from verifiers.lean import toolchain
from verifiers.workers.program import verifier_program
from verifiers.workers.service import MEMORY_MIB


def programs(lean: Path | None = None, projects: tuple[Path, ...] = ()) -> tuple[Program, ...]:
    """Returns the text worker's program, and Lean's if a toolchain is installed (in folder `lean`, if given)."""
    found = toolchain.find(lean, projects=projects)
    worker = verifier_program(MEMORY_MIB)
    return (worker,) if found is None else (worker, toolchain.program(found))
