"""The verifiers' worker as a program of the runtime: what a broker's settings have to name."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from runtime.programs import Program
from verifiers.workers.process import COMMAND, ROOT

NAME = "verifier"
SYSTEM = tuple(map(Path, ("/usr", "/lib", "/lib64")))
OURS = ("verifiers", "runtime")
"""All of our own code that it needs; the rest of the folder where that lies is not seen."""


def python_folders() -> tuple[Path, ...]:
    """Where this interpreter, its packages and the libraries under it lie."""
    wanted = [*SYSTEM, Path(sys.prefix), Path(sys.base_prefix), *(ROOT / name for name in OURS)]
    return tuple(dict.fromkeys(folder for folder in wanted if folder.is_dir()))


def python_environment() -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT), "LD_LIBRARY_PATH": sysconfig.get_config_var("LIBDIR") or "/usr/lib"}


def verifier_program(memory_mib: int) -> Program:
    """`memory_mib`: of one worker."""
    return Program(
        name=NAME,
        argv=(sys.executable, *COMMAND, str(memory_mib), "0"),
        folders=python_folders(),
        environment=python_environment(),
    )
