"""The text worker as a program of the runtime, for a broker's settings."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from common.plugins.allowed import NO_PLUGINS, VARIABLE, listed
from runtime.programs import Program
from verifiers.workers.process import COMMAND, ROOT

NAME = "verifier"
SYSTEM = tuple(map(Path, ("/usr", "/lib", "/lib64")))
OURS = ("verifiers", "runtime", "common")
"""Packages of this project that are visible to the worker; the rest of their parent folder is hidden."""


def python_folders() -> tuple[Path, ...]:
    """Returns the folders of this interpreter, its packages and its libraries."""
    packages = [Path(folder) for folder in sys.path if Path(folder).name in ("site-packages", "dist-packages")]
    wanted = [*SYSTEM, Path(sys.prefix), Path(sys.base_prefix), *packages, *(ROOT / name for name in OURS)]
    return tuple(dict.fromkeys(folder for folder in wanted if folder.is_dir()))


def python_environment() -> dict[str, str]:
    paths = {"PYTHONPATH": str(ROOT), "LD_LIBRARY_PATH": sysconfig.get_config_var("LIBDIR") or "/usr/lib"}
    return {**paths, VARIABLE: listed(), **NO_PLUGINS}


def verifier_program(memory_mib: int) -> Program:
    """Returns the text worker's program, for a broker. `memory_mib` is the limit of one worker."""
    return Program(
        name=NAME,
        argv=(sys.executable, *COMMAND, str(memory_mib), "0"),
        folders=python_folders(),
        environment=python_environment(),
    )
