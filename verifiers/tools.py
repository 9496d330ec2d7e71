"""The programs of the verifiers: what a broker's settings have to name, so that hostile input is held in boxes."""

from __future__ import annotations

from pathlib import Path

from runtime.programs import Program
from verifiers.lean import toolchain
from verifiers.workers.program import verifier_program
from verifiers.workers.service import MEMORY_MIB


def programs(lean: Path | None = None, projects: tuple[Path, ...] = ()) -> tuple[Program, ...]:
    """The deciders' worker, and Lean's where there is a Lean: the one in that folder, or the one that is found."""
    found = toolchain.find(lean, projects=projects)
    worker = verifier_program(MEMORY_MIB)
    return (worker,) if found is None else (worker, toolchain.program(found))
